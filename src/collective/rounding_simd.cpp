// Conversions for each width of vectors. They have the same bits.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "concord/collective/rounding.hpp"
#include "concord/core/parallel.hpp"

namespace concord::collective {
namespace {

// A loop for each type: compilers make no versions of templates.
CONCORD_SIMD void round_block(const float* values, float scale, Bf16* rounded, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) rounded[i].bits = bf16_bits(values[i] * scale);
}
CONCORD_SIMD void round_block(const float* values, float scale, Fp16* rounded, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) rounded[i].bits = fp16_bits(values[i] * scale);
}
CONCORD_SIMD void widen_block(const Bf16* rounded, float scale, float* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] = rounded[i] * scale;
}
CONCORD_SIMD void widen_block(const Fp16* rounded, float scale, float* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] = rounded[i] * scale;
}
CONCORD_SIMD void add_block(const Bf16* values, float* sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += values[i];
}
CONCORD_SIMD void add_block(const Fp16* values, float* sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += values[i];
}
CONCORD_SIMD void add_block(const float* values, float* sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += values[i];
}

/// The bits of the largest finite magnitude: bits have the order of magnitudes.
CONCORD_SIMD std::int32_t largest_in_block(const float* values, std::size_t n) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(values[i]) & 0x7fffffff;
    largest = std::max(largest, bits < 0x7f800000 ? bits : 0);
  }
  return largest;
}

template <class Number>
void round_blocks(std::span<const float> values, float scale, std::span<Number> rounded) {
  for_blocks(values.size(), [&](std::size_t, std::size_t first, std::size_t count) {
    round_block(values.data() + first, scale, rounded.data() + first, count);
  });
}

template <class Number>
void widen_blocks(std::span<const Number> rounded, float scale, std::span<float> values) {
  for_blocks(values.size(), [&](std::size_t, std::size_t first, std::size_t count) {
    widen_block(rounded.data() + first, scale, values.data() + first, count);
  });
}

}  // namespace

void round_run(const float* values, Bf16* rounded, std::size_t n) { round_block(values, 1, rounded, n); }
void round_run(const float* values, Fp16* rounded, std::size_t n) { round_block(values, 1, rounded, n); }
void add_run(const Bf16* values, float* sums, std::size_t n) { add_block(values, sums, n); }
void add_run(const Fp16* values, float* sums, std::size_t n) { add_block(values, sums, n); }
void add_run(const float* values, float* sums, std::size_t n) { add_block(values, sums, n); }

void round_scaled(std::span<const float> values, float scale, std::span<Bf16> rounded) {
  round_blocks(values, scale, rounded);
}
void round_scaled(std::span<const float> values, float scale, std::span<Fp16> rounded) {
  round_blocks(values, scale, rounded);
}
void widen_scaled(std::span<const Bf16> rounded, float scale, std::span<float> values) {
  widen_blocks(rounded, scale, values);
}
void widen_scaled(std::span<const Fp16> rounded, float scale, std::span<float> values) {
  widen_blocks(rounded, scale, values);
}

void round_in_place(std::span<float> values, Precision precision, float before, float after) {
  constexpr std::size_t kRun = 1024;
  with_number_of(precision, [&]<class Number>(Number) {
    for_blocks(values.size(), [&](std::size_t, std::size_t first, std::size_t count) {
      std::array<Number, kRun> rounded;
      for (std::size_t done = 0; done < count; done += kRun) {
        float* const numbers = values.data() + first + done;
        const std::size_t some = std::min(kRun, count - done);
        round_block(numbers, before, rounded.data(), some);
        widen_block(rounded.data(), after, numbers, some);
      }
    });
  });
}

float largest_magnitude(std::span<const float> values) {
  std::vector<std::int32_t> largest(blocks_of(values.size()));
  for_blocks(values.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    largest[block] = largest_in_block(values.data() + first, count);
  });
  return largest.empty() ? 0 : std::bit_cast<float>(*std::ranges::max_element(largest));
}

float scale_to_fp16(float largest, int ranks) {
  if (largest == 0) return 1;
  constexpr int kTop = 15, kMost = 126;  // 2^15, and what fp32 has the inverse of
  int exponent = 0;                      // largest < 2^exponent
  static_cast<void>(std::frexp(largest, &exponent));
  const int bits = std::bit_width(static_cast<unsigned>(ranks) - 1);
  return std::ldexp(1.0F, std::clamp(kTop - bits - exponent, -kMost, kMost));
}

}  // namespace concord::collective
