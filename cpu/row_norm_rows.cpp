// Sums of a row in a fixed number of lanes, so that their order does not depend on the machine, then in double.
#include "row_norm_rows.hpp"

#include <algorithm>
#include <cmath>

namespace concord::cpu {
namespace {

constexpr std::int64_t kLanes = 32;
constexpr std::int64_t kPiece = 4096;  // values summed in float

// The sum of term(i) over [0, n).
template <class Term>
[[gnu::always_inline]] inline double row_sum(std::int64_t n, Term term) {
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t end = std::min(n, begin + kPiece);
    float lanes[kLanes] = {};
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += term(i + j);
    }
    for (; i < end; ++i) lanes[i % kLanes] += term(i);
    for (const float lane : lanes) total += static_cast<double>(lane);
  }
  return total;
}

}  // namespace

CONCORD_SIMD void row_norm_forward(const float* src, std::int64_t n, bool centred, float epsilon, float* dst,
                                   float* mean, float* rstd) {
  const auto count = static_cast<double>(n);
  const auto value = [&](std::int64_t i) __attribute__((always_inline)) { return src[i]; };
  const float middle = centred ? static_cast<float>(row_sum(n, value) / count) : 0.0F;
  const auto square = [&](std::int64_t i) __attribute__((always_inline)) {
    return (src[i] - middle) * (src[i] - middle);
  };
  const double squares = row_sum(n, square) / count;
  const auto scale = static_cast<float>(1 / std::sqrt(squares + static_cast<double>(epsilon)));
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dst[i] = (src[i] - middle) * scale;
  *mean = middle;
  *rstd = scale;
}

CONCORD_SIMD void row_norm_backward(const float* diff_dst, const float* dst, std::int64_t n, bool centred, float rstd,
                                    float* diff_src) {
  const auto count = static_cast<double>(n);
  const auto value = [&](std::int64_t i) __attribute__((always_inline)) { return diff_dst[i]; };
  const auto product = [&](std::int64_t i) __attribute__((always_inline)) { return diff_dst[i] * dst[i]; };
  const float mean = centred ? static_cast<float>(row_sum(n, value) / count) : 0.0F;
  const auto slope = static_cast<float>(row_sum(n, product) / count);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) diff_src[i] = rstd * (diff_dst[i] - mean - dst[i] * slope);
}

}  // namespace concord::cpu
