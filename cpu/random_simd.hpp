// Runs of the counter-based stream of cl_kernels/shared/philox.h, compiled for several vector widths. Used by random
// and by the dropout of attention.
#pragma once

#include <cstdint>

namespace concord::cpu {

struct RandomStream {
  std::uint64_t seed;
  std::uint32_t step, purpose;
};

/// Rows of blocks of four numbers; row r begins with block first + r·step.
struct RandomRows {
  std::uint64_t first;
  std::int64_t rows, blocks, step;
};

/// dst (rows, 4·blocks): in row r the uniform numbers of indices 4·(first + r·step) and on.
void random_uniforms(const RandomStream& stream, const RandomRows& rows, float* dst);

}  // namespace concord::cpu
