// WaveUnits: the kind of matrix cores of an AMD or Intel GPU, from the properties that it reports. Used by Context,
// discovery and gemm/wave.
#pragma once

#include <boost/compute/device.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "concord/core/types.hpp"

namespace concord::opencl {

/// The kinds that cl_kernels/gemm/wave/units.h distinguishes. mfma_first is MFMA without bf16 multiplication.
enum class WaveUnits : std::uint8_t { none, mfma_first, mfma, wmma, wmma_12, dpas_8, dpas_16 };

/// The kind by CL_DEVICE_VENDOR and by the processor that AMD's drivers report as CL_DEVICE_NAME
/// ("gfx90a:sramecc+:xnack-").
[[nodiscard]] WaveUnits amd_wave_units(std::string_view vendor, std::string_view name);
/// The kind by the device's extensions and sub-group sizes; the matrix cores use the smallest size.
[[nodiscard]] WaveUnits intel_wave_units(std::string_view extensions, std::span<const std::size_t> sub_groups);
/// Asks the driver; Context::wave_units has the answer. None for a device that the user limits to plain OpenCL C, or to
/// smaller work-groups or less local memory than it has.
[[nodiscard]] WaveUnits wave_units_of(const boost::compute::device& device);

/// The instruction's name: "MFMA".
[[nodiscard]] std::string_view name_of(WaveUnits units);
/// Lanes of a wave.
[[nodiscard]] std::int64_t lanes_of(WaveUnits units);
/// Whether the matrix cores support this precision. Only MFMA supports fp32, and tf32 as fp32.
[[nodiscard]] bool multiply_in(WaveUnits units, Precision precision);

}  // namespace concord::opencl
