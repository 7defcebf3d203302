// GpuModel: the expected speed of a GPU's compute units and memory, and the resources that work-groups share. The
// backend plans matrix multiplications with it before it has measurements. Used by Context and by every tiled GEMM.
#pragma once

#include <cstdint>
#include <string_view>

#include "concord/opencl/driver/capability.hpp"
#include "concord/opencl/driver/matrix_cores.hpp"

namespace concord::opencl {

/// The properties that a device reports.
struct GpuFacts {
  std::string_view vendor{}, name{};  // CL_DEVICE_VENDOR, CL_DEVICE_NAME
  Capability capability{};
  WaveUnits wave_units = WaveUnits::none;
  bool is_gpu = true;
  std::int64_t compute_units = 1;
  std::int64_t megahertz = 0;  // CL_DEVICE_MAX_CLOCK_FREQUENCY
};

/// A unit runs work-groups: a multiprocessor (NVIDIA), a compute unit or, where the driver counts those, a work group
/// processor (AMD), a core (Intel, whose drivers count vector engines).
struct GpuModel {
  std::string_view generation;
  std::int64_t units;
  double products_a_second;  // fp32 multiplications and additions of a unit outside matrix cores, at most
  double matrix_a_second, matrix_fp32_a_second;  // of its matrix cores in 16 and 32 bits; 0 for none
  double bytes_a_second;                         // the bandwidth that the device reaches
  std::int64_t local_memory;                     // bytes, shared by the groups of a unit
  std::int64_t item_registers;                   // of 32 bits; with more, too few items are resident to hide latency
  bool has_shallow_tiles;                        // local memory, not registers, limits the groups of a unit
};

/// The generation of a device by the vendors' documents. An unknown device gets the model of the GPU that was measured.
[[nodiscard]] GpuModel gpu_model(const GpuFacts& facts);

/// Replaces the reported properties by those of the GPU that the option plan_as of CONCORD_DEBUG names: an AMD
/// processor ("gfx1030"), an NVIDIA compute capability ("sm_89"), or "xe-lp", "xe-hpg", "xe-hpc", "xe2" for Intel.
/// Units and clock stay those of the device. The option affects plans only, not which kernels the device can run.
/// \throws ArgumentError for another name.
[[nodiscard]] GpuFacts plan_as(std::string_view name, GpuFacts facts);

/// Rates and local memory of one unit of the NVIDIA H200 on which tiles were measured: outside the matrix cores, and on
/// them by mma.sync in 16 bits.
inline constexpr double kMeasuredProductsASecond = 128 * 1.98e9, kMeasuredMatrixASecond = 1232 * 1.98e9;
inline constexpr std::int64_t kMeasuredLocalMemory = std::int64_t{228} * 1024;

}  // namespace concord::opencl
