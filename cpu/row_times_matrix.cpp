// Row times matrix: several columns at a time, so that as many sums run beside each other as hide the latency of one.
#include "row_times_matrix.hpp"

#include <algorithm>

namespace concord::cpu {
namespace {

constexpr std::int64_t kLanes = 16;

/// kColumns columns from j on, whose weights lie along k: sums by lanes, added up at the end.
template <std::int64_t kColumns>
[[gnu::always_inline]] inline void dot_columns(const RowTimesMatrix& s, std::int64_t j) {
  const float* weights = s.weights + j * s.k;
  float sums[kColumns][kLanes] = {};
  const std::int64_t whole = s.k / kLanes * kLanes;
  for (std::int64_t p = 0; p < whole; p += kLanes) {
#pragma GCC unroll 8
    for (std::int64_t c = 0; c < kColumns; ++c) {
#pragma omp simd
      for (std::int64_t x = 0; x < kLanes; ++x) sums[c][x] += s.row[p + x] * weights[c * s.k + p + x];
    }
  }
  for (std::int64_t c = 0; c < kColumns; ++c) {
    for (std::int64_t p = whole; p < s.k; ++p) sums[c][p - whole] += s.row[p] * weights[c * s.k + p];
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::int64_t x = 0; x < half; ++x) sums[c][x] += sums[c][x + half];
    }
    s.dst[j + c] = sums[c][0];
  }
}

/// kColumns columns from j on, whose weights of one k are neighbours.
template <std::int64_t kColumns>
[[gnu::always_inline]] inline void add_rows(const RowTimesMatrix& s, std::int64_t j) {
  const float* weights = s.weights + j;
  float sums[kColumns] = {};
  for (std::int64_t p = 0; p < s.k; ++p) {
    const float left = s.row[p];
#pragma omp simd
    for (std::int64_t x = 0; x < kColumns; ++x) sums[x] += left * weights[p * s.n + x];
    // One column's products are not made ahead of its sums (GCC 13 does), so that they are fused as in wider blocks.
    if constexpr (kColumns == 1) asm volatile("");
  }
  std::copy_n(sums, kColumns, s.dst + j);
}

}  // namespace

CONCORD_SIMD void row_times_matrix(const RowTimesMatrix& s, std::int64_t begin, std::int64_t end) {
  std::int64_t j = begin;
  if (s.transposed) {
    for (; j + 4 <= end; j += 4) dot_columns<4>(s, j);
    for (; j < end; ++j) dot_columns<1>(s, j);
  } else {
    for (; j + 4 * kLanes <= end; j += 4 * kLanes) add_rows<4 * kLanes>(s, j);
    for (; j + kLanes <= end; j += kLanes) add_rows<kLanes>(s, j);
    for (; j < end; ++j) add_rows<1>(s, j);
  }
}

}  // namespace concord::cpu
