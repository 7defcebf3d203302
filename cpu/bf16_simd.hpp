// Numbers in bf16: the upper half of a float. Loops of our own read them as floats and round results to the nearest,
// ties to even. Used by the families that keep values in 16 bits.
#pragma once

#include <bit>
#include <cstdint>

namespace concord::cpu {

/// The bits of a number rounded to bf16. Infinities and NaN stay what they are.
[[gnu::always_inline]] inline std::uint16_t bf16_bits(float value) {
  const auto full = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = full + 0x7fffU + ((full >> 16) & 1U);
  return static_cast<std::uint16_t>((value != value ? 0x7fc00000U : rounded) >> 16);
}

/// A stored number.
struct Bf16 {
  std::uint16_t bits;
  // NOLINTNEXTLINE(google-explicit-constructor): reads as a float wherever one is expected
  [[gnu::always_inline]] operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};
static_assert(sizeof(Bf16) == 2);

/// to = value, rounded to the stored type. Writes a member, since GCC does not vectorise copies of structures.
[[gnu::always_inline]] inline void put(float& to, float value) { to = value; }
[[gnu::always_inline]] inline void put(Bf16& to, float value) { to.bits = bf16_bits(value); }

/// dst[i] = src[i] for i in [0, n).
void bf16_load(const Bf16* src, float* dst, std::int64_t n);
/// dst[i] = src[i], rounded, for i in [0, n).
void bf16_store(const float* src, Bf16* dst, std::int64_t n);
/// values[i] = max(values[i], 0) for i in [0, n). NaN stays.
void bf16_relu(Bf16* values, std::int64_t n);

}  // namespace concord::cpu
