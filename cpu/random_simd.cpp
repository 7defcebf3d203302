// Many blocks of Philox at a time, word by word, so that the rounds become vector instructions.
#include "random_simd.hpp"

#include <algorithm>

#include "shared/philox.h"

namespace concord::cpu {

namespace {

constexpr std::int64_t kRowBlocks = 64;  // several vectors, whose chains of rounds do not wait for each other

using Words = std::uint32_t[4][kRowBlocks];

/// One round over the counters in `words`.
[[gnu::always_inline]] inline void round_of(std::uint32_t k0, std::uint32_t k1, Words& words) {
#pragma omp simd
  for (std::int64_t i = 0; i < kRowBlocks; ++i) {
    const philox_block next = philox_round({{words[0][i], words[1][i], words[2][i], words[3][i]}}, k0, k1);
    words[0][i] = next.word[0];
    words[1][i] = next.word[1];
    words[2][i] = next.word[2];
    words[3][i] = next.word[3];
  }
}

/// All rounds of Philox4x32-10.
[[gnu::always_inline]] inline void philox_rounds(std::uint64_t seed, Words& words) {
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < PHILOX_ROUNDS; ++round) {
    round_of(k0, k1, words);
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

CONCORD_SIMD void keep_below(const float* numbers, float limit, float kept, std::int64_t n, float* dst) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dst[i] = numbers[i] < limit ? kept : 0.0F;
}

CONCORD_SIMD void dropout_factors(const attention_dropout& dropout, const DrawnSquares& squares, float kept,
                                  float* dst) {
  constexpr std::int64_t kSide = DRAWN_SQUARE, kSquares = kRowBlocks / DRAWN_BLOCKS;  // drawn at a time
  const std::int64_t pitch = kSide * squares.columns;
  for (std::int64_t unit = 0; unit < squares.rows * squares.columns; unit += kSquares) {
    const std::int64_t row = unit / squares.columns, column = unit % squares.columns;
    Words words;
    for (std::int64_t i = 0; i < kRowBlocks; ++i) {
      words[0][i] =
          (squares.column + static_cast<std::uint32_t>(column)) * DRAWN_BLOCKS + static_cast<std::uint32_t>(i);
      words[1][i] = squares.row + static_cast<std::uint32_t>(row);
      words[2][i] = dropout.purpose;
      words[3][i] = dropout.step;
    }
    for (std::int64_t round = 0; round < ATTENTION_PHILOX_ROUNDS; ++round) {
      round_of(dropout.keys[2 * round], dropout.keys[2 * round + 1], words);
    }
    // The four blocks of a row have eight neighbouring keys in each word.
    for (std::int64_t group = 0; group < kRowBlocks / 4; ++group) {
      for (std::int64_t w = 0; w < 4; ++w) {
        float* to = dst + (row * kSide + group % 8 + w % 2 * 8) * pitch + (column + group / 8) * kSide + w / 2 * 8;
#pragma omp simd
        for (std::int64_t j = 0; j < 8; ++j) {
          const std::uint32_t word = words[w][4 * group + j / 2];
          to[j] = (word << (j % 2 == 0 ? 16U : 0U)) < dropout.limit ? kept : 0.0F;
        }
      }
    }
  }
}

}  // namespace concord::cpu
