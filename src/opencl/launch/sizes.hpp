// Arithmetic of sizes: shapes count in std::int64_t, buffers and launches in std::size_t.
#pragma once

#include <cstddef>
#include <cstdint>

namespace concord::opencl {

/// Of positive numbers.
[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// The least multiple of `unit` that is not below `value`.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return divide_up(value, unit) * unit;
}
/// Where a buffer begins within another; kernels read whole vectors.
inline constexpr std::size_t kBufferAlign = 256;
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
}
/// Greatest number of work-groups of a launch along its second and third index, as in CUDA's grids. NVIDIA's OpenCL of
/// driver 580 supports 1,000,003; older drivers were not tested.
inline constexpr std::int64_t kMostGroups = 65535;
[[nodiscard]] constexpr std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }
/// Arguments of kernels.
[[nodiscard]] constexpr std::uint32_t as_uint(std::int64_t value) { return static_cast<std::uint32_t>(value); }
[[nodiscard]] constexpr std::uint64_t as_ulong(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace concord::opencl
