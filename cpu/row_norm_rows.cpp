// Sums of a row in a fixed number of lanes, so that their order does not depend on the machine, then in double.
#include "row_norm_rows.hpp"

#include <algorithm>
#include <cmath>

namespace concord::cpu {
namespace {

constexpr std::int64_t kLanes = 32;
constexpr std::int64_t kPiece = 4096;  // values summed in float

struct Sums {
  double first = 0, second = 0;
};

// The sums of term(i, first, second), which adds to both, over [0, n).
template <class Term>
[[gnu::always_inline]] inline Sums row_sums(std::int64_t n, Term term) {
  Sums total;
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t end = std::min(n, begin + kPiece);
    float first[kLanes] = {}, second[kLanes] = {};
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kLanes; ++j) term(i + j, first[j], second[j]);
    }
    for (; i < end; ++i) term(i, first[i % kLanes], second[i % kLanes]);
    for (const float lane : first) total.first += static_cast<double>(lane);
    for (const float lane : second) total.second += static_cast<double>(lane);
  }
  return total;
}

// The mean of values in two steps: their sum leaves a rounding, which the mean of what is left finds.
template <class Get>
[[gnu::always_inline]] inline float rough_mean(std::int64_t n, Get get) {
  const auto add = [&](std::int64_t i, float& sum, float&) __attribute__((always_inline)) { sum += get(i); };
  return static_cast<float>(row_sums(n, add).first / static_cast<double>(n));
}

}  // namespace

CONCORD_SIMD void row_norm_forward(const float* src, std::int64_t n, bool centred, float epsilon, float* dst,
                                   float* mean, float* rstd) {
  // Squares are added up as 2^-8 of their size: a lane adds 128 of them before it is joined in double.
  constexpr float kRoot = 0x1p-4F;
  constexpr double kSquares = 0x1p8;
  const auto count = static_cast<double>(n);
  const auto value = [&](std::int64_t i) __attribute__((always_inline)) { return src[i]; };
  const float middle = centred ? rough_mean(n, value) : 0.0F;
  const auto deviation = [&](std::int64_t i, float& sum, float& squares) __attribute__((always_inline)) {
    const float d = src[i] - middle;
    sum += d;
    squares += (d * kRoot) * (d * kRoot);
  };
  const Sums sums = row_sums(n, deviation);
  const double rest = centred ? sums.first / count : 0.0;
  const double variance = std::max(kSquares * sums.second / count - rest * rest, 0.0);
  const auto scale = static_cast<float>(1 / std::sqrt(variance + static_cast<double>(epsilon)));
  const auto offset = static_cast<float>(rest);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dst[i] = ((src[i] - middle) - offset) * scale;
  *mean = static_cast<float>(static_cast<double>(middle) + rest);
  *rstd = scale;
}

CONCORD_SIMD void row_norm_backward(const float* diff_dst, const float* dst, std::int64_t n, bool centred, float rstd,
                                    float* diff_src) {
  const auto count = static_cast<double>(n);
  const auto value = [&](std::int64_t i) __attribute__((always_inline)) { return diff_dst[i]; };
  const float middle = centred ? rough_mean(n, value) : 0.0F;
  // The mean of dst is 0, so that subtracting that of diff_dst first changes no product but its rounding.
  const auto deviation = [&](std::int64_t i, float& sum, float& products) __attribute__((always_inline)) {
    const float d = diff_dst[i] - middle;
    sum += d;
    products += d * dst[i];
  };
  const Sums sums = row_sums(n, deviation);
  const auto offset = centred ? static_cast<float>(sums.first / count) : 0.0F;
  const auto slope = static_cast<float>(sums.second / count);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) diff_src[i] = rstd * (((diff_dst[i] - middle) - offset) - dst[i] * slope);
}

}  // namespace concord::cpu
