// Runs of the counter-based stream of cl_kernels/shared/philox.h, compiled for several vector widths. Used by random
// and by the dropout of attention.
#pragma once

#include <cstdint>

#include "shared/attention_dropout.h"

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

/// dst = kept where a number is below `limit`, else 0; n of them.
void keep_below(const float* numbers, float limit, float kept, std::int64_t n, float* dst);

/// Squares of 16 queries by 16 keys of one head (cl_kernels/shared/attention_dropout.h): `rows` by `columns` of them
/// from `row` and `column` on. The number of columns is even.
struct DrawnSquares {
  std::uint32_t row, column;
  std::int64_t rows, columns;
};

/// dst (16·rows, 16·columns): `kept` for the weights that dropout keeps, else 0.
void dropout_factors(const attention_dropout& dropout, const DrawnSquares& squares, float kept, float* dst);

}  // namespace concord::cpu
