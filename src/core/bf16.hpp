// Numbers in bfloat16: the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// The bits of a number rounded to bfloat16: to the nearest, ties to even. Infinities stay, and NaN stays NaN.
[[gnu::always_inline]] inline std::uint16_t bf16_bits(float value) {
  const auto full = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = full + 0x7fffU + ((full >> 16) & 1U);
  return static_cast<std::uint16_t>((value != value ? 0x7fc00000U : rounded) >> 16);
}

/// A stored number.
struct Bf16 {
  std::uint16_t bits = 0;
  // NOLINTNEXTLINE(google-explicit-constructor): reads as a float wherever one is expected
  [[gnu::always_inline]] operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  friend bool operator==(const Bf16&, const Bf16&) = default;
};

/// A number rounded to bfloat16.
[[nodiscard]] inline Bf16 to_bf16(float number) { return {bf16_bits(number)}; }

}  // namespace concord
