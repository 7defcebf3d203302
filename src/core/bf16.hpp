// Numbers in bfloat16: the upper half of a float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

struct Bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(const Bf16&, const Bf16&) = default;
};

[[nodiscard]] inline float to_float(Bf16 number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(number.bits) << 16);
}
/// Rounds to nearest, ties to even. NaN stays NaN.
[[nodiscard]] inline Bf16 to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (std::isnan(number)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace concord
