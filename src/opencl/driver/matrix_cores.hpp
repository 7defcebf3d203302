// WaveUnits: which matrix cores a GPU of AMD or Intel has, by what the device says of itself. Used by Context,
// discovery and gemm/wave.
#pragma once

#include <boost/compute/device.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "concord/core/types.hpp"

namespace concord::opencl {

/// As cl_kernels/gemm/wave/units.h tells them apart; mfma_first is MFMA without products of bf16 numbers.
enum class WaveUnits : std::uint8_t { none, mfma_first, mfma, wmma, wmma_12, dpas_8, dpas_16 };

/// By CL_DEVICE_VENDOR and the processor that AMD's drivers give as CL_DEVICE_NAME ("gfx90a:sramecc+:xnack-").
[[nodiscard]] WaveUnits amd_wave_units(std::string_view vendor, std::string_view name);
/// By the device's extensions and sizes of sub-groups, of which the units take the smallest.
[[nodiscard]] WaveUnits intel_wave_units(std::string_view extensions, std::span<const std::size_t> sub_groups);
/// Asks the driver; Context::wave_units has the answer. None where the device is held to plain OpenCL C, or to smaller
/// work-groups or less local memory than it has.
[[nodiscard]] WaveUnits wave_units_of(const boost::compute::device& device);

/// The instruction's name: "MFMA".
[[nodiscard]] std::string_view name_of(WaveUnits units);
/// Lanes of a wave.
[[nodiscard]] std::int64_t lanes_of(WaveUnits units);
/// Whether they multiply in this precision: fp32 and tf32 as fp32 with MFMA alone.
[[nodiscard]] bool multiply_in(WaveUnits units, Precision precision);

}  // namespace concord::opencl
