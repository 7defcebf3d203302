// Many blocks of Philox at a time, word by word, so that the rounds become vector instructions.
#include "random_simd.hpp"

#include <algorithm>

#include "shared/philox.h"

namespace concord::cpu {

namespace {

constexpr std::int64_t kRowBlocks = 64;  // several vectors, whose chains of rounds do not wait for each other

using Words = std::uint32_t[4][kRowBlocks];

/// All rounds over the counters in `words`.
[[gnu::always_inline]] inline void philox_rounds(std::uint64_t seed, Words& words) {
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < PHILOX_ROUNDS; ++round) {
#pragma omp simd
    for (std::int64_t i = 0; i < kRowBlocks; ++i) {
      const philox_block next = philox_round({{words[0][i], words[1][i], words[2][i], words[3][i]}}, k0, k1);
      words[0][i] = next.word[0];
      words[1][i] = next.word[1];
      words[2][i] = next.word[2];
      words[3][i] = next.word[3];
    }
    k0 += PHILOX_STEP_0;
    k1 += PHILOX_STEP_1;
  }
}

}  // namespace

CONCORD_SIMD void random_uniforms(const RandomStream& stream, const RandomRows& rows, float* dst) {
  std::int64_t row = 0, column = 0;
  for (std::int64_t left = rows.rows * rows.blocks; left > 0; left -= kRowBlocks) {
    Words words;
    for (std::int64_t i = 0; i < kRowBlocks; ++i) {
      const std::uint64_t block = rows.first + static_cast<std::uint64_t>(row * rows.step + column);
      words[0][i] = static_cast<std::uint32_t>(block);
      words[1][i] = static_cast<std::uint32_t>(block >> 32);
      words[2][i] = stream.purpose;
      words[3][i] = stream.step;
      if (++column == rows.blocks) column = 0, ++row;
    }
    philox_rounds(stream.seed, words);
    float numbers[4 * kRowBlocks];
    for (std::int64_t i = 0; i < kRowBlocks; ++i) {
      // Signed, as vectors convert: 24 bits fit.
      for (std::int64_t x = 0; x < 4; ++x) {
        numbers[4 * i + x] = static_cast<float>(static_cast<std::int32_t>(words[x][i] >> 8)) * 0x1p-24F;
      }
    }
    const std::int64_t count = 4 * std::min(kRowBlocks, left);
    std::copy_n(numbers, count, dst);
    dst += count;
  }
}

}  // namespace concord::cpu
