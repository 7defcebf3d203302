// Sixteen blocks of Philox at a time, word by word, so that the rounds become vector instructions.
#include "random_rows.hpp"

#include <algorithm>

#include "philox.h"

namespace concord::cpu {

CONCORD_SIMD void random_uniforms(const RandomStream& stream, std::uint64_t block, std::int64_t blocks, float* dst) {
  constexpr std::int64_t kBlocks = 16;
  for (std::int64_t begin = 0; begin < blocks; begin += kBlocks) {
    float numbers[4][kBlocks];
#pragma omp simd
    for (std::int64_t i = 0; i < kBlocks; ++i) {
      const philox_block words =
          philox4x32(block + static_cast<std::uint64_t>(begin + i), stream.purpose, stream.step, stream.seed);
      for (std::int64_t x = 0; x < 4; ++x) numbers[x][i] = static_cast<float>(words.word[x] >> 8) * 0x1p-24F;
    }
    for (std::int64_t i = 0; i < std::min(kBlocks, blocks - begin); ++i) {
      for (std::int64_t x = 0; x < 4; ++x) dst[4 * (begin + i) + x] = numbers[x][i];
    }
  }
}

}  // namespace concord::cpu
