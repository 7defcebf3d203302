// GpuModel: what products are planned by before anything was measured on a device — how fast its units and its memory
// should be, and what its groups share. Used by Context and by every implementation that multiplies in tiles.
#pragma once

#include <cstdint>
#include <string_view>

#include "concord/opencl/driver/capability.hpp"
#include "concord/opencl/driver/matrix_cores.hpp"

namespace concord::opencl {

/// What a device says of itself.
struct GpuFacts {
  std::string_view vendor{}, name{};  // CL_DEVICE_VENDOR, CL_DEVICE_NAME
  Capability capability{};
  WaveUnits wave_units = WaveUnits::none;
  bool is_gpu = true;
  std::int64_t compute_units = 1;
  std::int64_t megahertz = 0;  // CL_DEVICE_MAX_CLOCK_FREQUENCY
};

/// A unit is what takes work-groups: a multiprocessor (NVIDIA), a compute unit or, where the driver counts these, a
/// work group processor (AMD), a core (Intel, whose devices count its vector engines).
struct GpuModel {
  std::string_view generation;
  std::int64_t units;
  double products_a_second;  // fp32 multiplications and additions of a unit outside matrix cores, at most
  double matrix_a_second, matrix_fp32_a_second;  // of its matrix cores, factors of 16 and of 32 bits; 0 for none
  double bytes_a_second;                         // that memory reaches, of the whole device
  std::int64_t local_memory;                     // bytes that the groups of a unit share
  std::int64_t item_registers;  // of 32 bits, the most with which enough items are resident to hide latency
  bool has_shallow_tiles;       // local memory, not registers, is what limits the groups of a unit
};

/// The generation by what the vendors' documents say of it; a device that belongs to none is planned for as the unit
/// that was measured.
[[nodiscard]] GpuModel gpu_model(const GpuFacts& facts);

/// What the option plan_as of CONCORD_DEBUG names in place of what the device says: a processor of AMD ("gfx1030"), a
/// compute capability of NVIDIA ("sm_89"), or "xe-lp", "xe-hpg", "xe-hpc", "xe2" of Intel. For plans alone: which
/// kernels a device can run stays as it is. Units and clock are the device's. \throws ArgumentError when the name is
/// none of these.
[[nodiscard]] GpuFacts plan_as(std::string_view name, GpuFacts facts);

/// Of a unit of the NVIDIA H200 on which tiles were measured: outside its matrix cores, on them by mma.sync with
/// factors of 16 bits, and local memory.
inline constexpr double kMeasuredProductsASecond = 128 * 1.98e9, kMeasuredMatrixASecond = 1232 * 1.98e9;
inline constexpr std::int64_t kMeasuredLocalMemory = std::int64_t{228} * 1024;

}  // namespace concord::opencl
