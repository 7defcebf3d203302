// The product of one row with a matrix, the dense layers of a network that sees one sample: each weight is read once,
// as fast as memory brings it. Used by matmul; compiled for several vector widths.
#pragma once

#include <cstdint>

namespace concord::cpu {

/// dst (n) = row (k) · weights (k, n), stored row-major or, when `transposed`, as (n, k).
struct RowTimesMatrix {
  const float* row;
  const float* weights;
  float* dst;
  std::int64_t k, n;
  bool transposed;
};

/// Columns begin … end of the result. The bits of a column do not depend on which others are computed with it.
void row_times_matrix(const RowTimesMatrix& product, std::int64_t begin, std::int64_t end);

}  // namespace concord::cpu
