// Numbers in IEEE half precision. Without branches and without subnormal numbers of fp32, so that a compiler makes
// vector code of loops, and no mode of the processor takes small numbers for 0.
#pragma once

#include <bit>
#include <cstdint>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// The bits of a number rounded to fp16: to the nearest, ties to even. From 65520 on it is infinite. NaN stays NaN.
[[gnu::always_inline]] inline std::uint16_t fp16_bits(float value) {
  const auto full = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = full & 0x7fffffffU;
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  const std::uint32_t normal = rounded >= 0x47800000U ? 0x7c00U : (rounded - 0x38000000U) >> 13;
  // Below 2^-14: beside 0.5, fp32 has the steps of fp16's subnormal numbers.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t finite = magnitude < 0x38800000U ? small : normal;
  return static_cast<std::uint16_t>((full >> 16 & 0x8000U) | (magnitude > 0x7f800000U ? 0x7e00U : finite));
}

/// A stored number.
struct Fp16 {
  std::uint16_t bits = 0;
  // NOLINTNEXTLINE(google-explicit-constructor): reads as a float wherever one is expected
  [[gnu::always_inline]] operator float() const {
    const std::uint32_t magnitude = bits & 0x7fffU, sign = (bits & 0x8000U) << 16;
    const std::uint32_t bias = magnitude >= 0x7c00U ? 224U << 23 : 112U << 23;
    const auto small =
        std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
    return std::bit_cast<float>(sign | (magnitude < 0x400U ? small : (magnitude << 13) + bias));
  }
  friend bool operator==(const Fp16&, const Fp16&) = default;
};

/// A number rounded to fp16.
[[nodiscard]] inline Fp16 to_fp16(float number) { return {fp16_bits(number)}; }

}  // namespace concord
