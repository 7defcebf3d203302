// Softmax loops: along a contiguous row with a fixed number of lanes, or over rows of neighbouring columns; so the
// order of sums does not depend on the machine.
#include "softmax_simd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shared/formulas.h"

namespace concord::cpu {
namespace {

constexpr std::int64_t kRowLanes = 16;
constexpr std::int64_t kSoftmaxPiece = 2048;  // elements summed in float

/// The largest of n neighbours; NaN if any is.
[[gnu::always_inline]] inline float row_largest(const float* src, std::int64_t n) {
  float lanes[kRowLanes];
  std::fill_n(lanes, kRowLanes, -std::numeric_limits<float>::infinity());
  const std::int64_t whole = n / kRowLanes * kRowLanes;
  for (std::int64_t i = 0; i < whole; i += kRowLanes) {
#pragma omp simd
    for (std::int64_t j = 0; j < kRowLanes; ++j) lanes[j] = concord_maximum(lanes[j], src[i + j]);
  }
  for (std::int64_t i = whole; i < n; ++i) lanes[i - whole] = concord_maximum(lanes[i - whole], src[i]);
  float largest = lanes[0];
  for (const float lane : lanes) largest = concord_maximum(largest, lane);
  return largest;
}

/// Σ term(i) over n elements.
template <class Term>
[[gnu::always_inline]] inline double row_sum(std::int64_t n, Term term) {
  double sum = 0;
  for (std::int64_t piece = 0; piece < n; piece += kSoftmaxPiece) {
    const std::int64_t end = std::min(n, piece + kSoftmaxPiece), whole = piece + (end - piece) / kRowLanes * kRowLanes;
    float lanes[kRowLanes] = {};
    for (std::int64_t i = piece; i < whole; i += kRowLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kRowLanes; ++j) lanes[j] += term(i + j);
    }
    for (std::int64_t i = whole; i < end; ++i) lanes[i - whole] += term(i);
    for (const float lane : lanes) sum += static_cast<double>(lane);
  }
  return sum;
}

/// Σ exp(src - largest) over n neighbours. Terms of 1 apart: beside them the others are all there is of its logarithm.
[[gnu::always_inline]] inline double row_total(std::int64_t n, const float* src, float largest) {
  const double ones = row_sum(
      n, [=](std::int64_t i) __attribute__((always_inline)) { return src[i] - largest == 0 ? 1.0F : 0.0F; });
  const double others = row_sum(
      n, [=](std::int64_t i) __attribute__((always_inline)) {
        const float below = src[i] - largest;
        return below == 0 ? 0.0F : concord_exp(below);
      });
  return ones + others;
}

[[gnu::always_inline]] inline void row_forward(std::int64_t n, bool log, const float* src, float* dst) {
  const float largest = row_largest(src, n);
  if (log) {
    const auto log_sum = static_cast<float>(std::log(row_total(n, src, largest)));
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = src[i] - largest - log_sum;
    return;
  }
  const double total = row_sum(
      n, [=](std::int64_t i) __attribute__((always_inline)) { return dst[i] = concord_exp(src[i] - largest); });
  const auto sum = static_cast<float>(total);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dst[i] /= sum;
}

[[gnu::always_inline]] inline float log_slope(float diff, float dst, float sum) {
  const float slope = diff - concord_exp(dst) * sum;
  return diff == 0 && sum == 0 ? 0.0F : slope;
}

[[gnu::always_inline]] inline void row_backward(std::int64_t n, bool log, const float* diff_dst, const float* dst,
                                                float* diff_src) {
  if (log) {
    const auto sum = static_cast<float>(row_sum(
        n, [=](std::int64_t i) __attribute__((always_inline)) { return diff_dst[i]; }));
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) diff_src[i] = log_slope(diff_dst[i], dst[i], sum);
    return;
  }
  const auto sum = static_cast<float>(row_sum(
      n, [=](std::int64_t i) __attribute__((always_inline)) { return diff_dst[i] * dst[i]; }));
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) diff_src[i] = dst[i] * (diff_dst[i] - sum);
}

/// function(row's offset) for all rows of columns.
template <class Function>
[[gnu::always_inline]] inline void for_rows(const SoftmaxBlock& b, Function function) {
  for (std::int64_t r = 0; r < b.length; ++r) function(r * b.stride);
}

/// sums[j] = Σ term(offset of row and column), for the columns of a block.
template <class Term>
[[gnu::always_inline]] inline void column_sums(const SoftmaxBlock& b, double* sums, Term term) {
  std::fill_n(sums, b.lanes, 0.0);
  for_rows(
      b, [&](std::int64_t row) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t j = 0; j < b.lanes; ++j) sums[j] += static_cast<double>(term(row + j, j));
      });
}

[[gnu::always_inline]] inline void columns_forward(const SoftmaxBlock& b, bool log, const float* src, float* dst) {
  float largest[kSoftmaxLanes], divisor[kSoftmaxLanes];
  double sums[kSoftmaxLanes];
  std::fill_n(largest, b.lanes, -std::numeric_limits<float>::infinity());
  for_rows(
      b, [&](std::int64_t row) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t j = 0; j < b.lanes; ++j) largest[j] = concord_maximum(largest[j], src[row + j]);
      });
  if (log) {
    column_sums(
        b, sums, [&](std::int64_t at, std::int64_t j) __attribute__((always_inline)) {
          return concord_exp(src[at] - largest[j]);
        });
    for (std::int64_t j = 0; j < b.lanes; ++j) divisor[j] = static_cast<float>(std::log(sums[j]));
    for_rows(
        b, [&](std::int64_t row) __attribute__((always_inline)) {
#pragma omp simd
          for (std::int64_t j = 0; j < b.lanes; ++j) dst[row + j] = src[row + j] - largest[j] - divisor[j];
        });
    return;
  }
  column_sums(
      b, sums, [&](std::int64_t at, std::int64_t j) __attribute__((always_inline)) {
        return dst[at] = concord_exp(src[at] - largest[j]);
      });
  for (std::int64_t j = 0; j < b.lanes; ++j) divisor[j] = static_cast<float>(sums[j]);
  for_rows(
      b, [&](std::int64_t row) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t j = 0; j < b.lanes; ++j) dst[row + j] /= divisor[j];
      });
}

[[gnu::always_inline]] inline void columns_backward(const SoftmaxBlock& b, bool log, const float* diff_dst,
                                                    const float* dst, float* diff_src) {
  float sum[kSoftmaxLanes];
  double sums[kSoftmaxLanes];
  column_sums(
      b, sums, [&](std::int64_t at, std::int64_t) __attribute__((always_inline)) {
        return log ? diff_dst[at] : diff_dst[at] * dst[at];
      });
  for (std::int64_t j = 0; j < b.lanes; ++j) sum[j] = static_cast<float>(sums[j]);
  for_rows(
      b, [&](std::int64_t row) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t j = 0; j < b.lanes; ++j) {
          const float diff = diff_dst[row + j], value = dst[row + j];
          diff_src[row + j] = log ? log_slope(diff, value, sum[j]) : value * (diff - sum[j]);
        }
      });
}

}  // namespace

CONCORD_SIMD SoftmaxTotal softmax_total(const float* src, std::int64_t n) {
  const float largest = row_largest(src, n);
  return {largest, row_total(n, src, largest)};
}

CONCORD_SIMD void softmax_forward_block(const SoftmaxBlock& block, bool log, const float* src, float* dst) {
  if (block.stride == 1) {
    row_forward(block.length, log, src, dst);
  } else {
    columns_forward(block, log, src, dst);
  }
}

CONCORD_SIMD void softmax_backward_block(const SoftmaxBlock& block, bool log, const float* diff_dst, const float* dst,
                                         float* diff_src) {
  if (block.stride == 1) {
    row_backward(block.length, log, diff_dst, dst, diff_src);
  } else {
    columns_backward(block, log, diff_dst, dst, diff_src);
  }
}

}  // namespace concord::cpu
