// Sums of a row in a fixed number of lanes, so that their order does not depend on the machine, then in double. A row
// whose squares leave fp32 is done in double throughout.
#include "row_norm_simd.hpp"

#include <algorithm>
#include <cmath>

namespace concord::cpu {
namespace {

constexpr std::int64_t kNormLanes = 32;
constexpr std::int64_t kNormPiece = 16 * kNormLanes;  // values summed before the lanes go into double

struct Sums {
  double first = 0, second = 0;
};

// The sums of term(i, first, second), which adds to both, over [0, n).
template <class Real, class Term>
[[gnu::always_inline]] inline Sums row_sums(std::int64_t n, Term term) {
  double firsts[kNormLanes] = {}, seconds[kNormLanes] = {};
  for (std::int64_t begin = 0; begin < n; begin += kNormPiece) {
    const std::int64_t end = std::min(n, begin + kNormPiece);
    Real first[kNormLanes] = {}, second[kNormLanes] = {};
    std::int64_t i = begin;
    for (; i + kNormLanes <= end; i += kNormLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kNormLanes; ++j) term(i + j, first[j], second[j]);
    }
    for (; i < end; ++i) term(i, first[i % kNormLanes], second[i % kNormLanes]);
#pragma omp simd
    for (std::int64_t j = 0; j < kNormLanes; ++j) {
      firsts[j] += static_cast<double>(first[j]);
      seconds[j] += static_cast<double>(second[j]);
    }
  }
  Sums total;
  for (const double lane : firsts) total.first += lane;
  for (const double lane : seconds) total.second += lane;
  return total;
}

// The first of two steps to the mean: a sum leaves a rounding, which the mean of what is left then finds.
template <class Real, class Stored>
[[gnu::always_inline]] inline Real rough_mean(const Stored* values, std::int64_t n) {
  const auto add = [&](std::int64_t i, Real & sum, Real&) __attribute__((always_inline)) {
    sum += static_cast<Real>(values[i]);
  };
  return static_cast<Real>(row_sums<Real>(n, add).first / static_cast<double>(n));
}

// False where squares have left fp32, or would have to be known better than they are.
bool keeps_digits(double variance, float epsilon) { return variance < 1e36 && (variance > 1e-28 || epsilon > 1e-20F); }

template <class Real, class Stored>
[[gnu::always_inline]] inline bool forward(const Stored* src, std::int64_t n, bool centred, float epsilon, Stored* dst,
                                           float* mean, float* rstd) {
  const auto count = static_cast<double>(n);
  const Real middle = centred ? rough_mean<Real>(src, n) : Real(0);
  const auto deviation = [&](std::int64_t i, Real & sum, Real & squares) __attribute__((always_inline)) {
    const Real d = static_cast<Real>(src[i]) - middle;
    sum += d;
    squares += d * d;
  };
  const Sums sums = row_sums<Real>(n, deviation);
  const double rest = centred ? sums.first / count : 0.0;
  double variance = sums.second / count - rest * rest;
  if (variance < 0) variance = 0;  // NaN stays
  if (sizeof(Real) == sizeof(float) && !keeps_digits(variance, epsilon)) return false;
  const double root = 1 / std::sqrt(variance + static_cast<double>(epsilon));
  const auto scale = static_cast<Real>(root), offset = static_cast<Real>(rest);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    put(dst[i], static_cast<float>(((static_cast<Real>(src[i]) - middle) - offset) * scale));
  }
  *mean = std::isfinite(middle) ? static_cast<float>(static_cast<double>(middle) + rest) : static_cast<float>(middle);
  *rstd = static_cast<float>(root);
  return true;
}

template <class Real, class Stored>
[[gnu::always_inline]] inline bool backward(const Stored* diff_dst, const Stored* dst, std::int64_t n, bool centred,
                                            float rstd, Stored* diff_src) {
  const auto count = static_cast<double>(n);
  const Real middle = centred ? rough_mean<Real>(diff_dst, n) : Real(0);
  // The mean of dst is 0, so that subtracting that of diff_dst first changes no product but its rounding.
  const auto deviation = [&](std::int64_t i, Real & sum, Real & products) __attribute__((always_inline)) {
    const Real d = static_cast<Real>(diff_dst[i]) - middle;
    sum += d;
    products += d * static_cast<Real>(dst[i]);
  };
  const Sums sums = row_sums<Real>(n, deviation);
  if (sizeof(Real) == sizeof(float) && !(std::isfinite(sums.first) && std::isfinite(sums.second))) return false;
  const auto offset = centred ? static_cast<Real>(sums.first / count) : Real(0);
  const auto slope = static_cast<Real>(sums.second / count), factor = static_cast<Real>(rstd);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const Real d = (static_cast<Real>(diff_dst[i]) - middle) - offset;
    put(diff_src[i], static_cast<float>(factor * (d - static_cast<Real>(dst[i]) * slope)));
  }
  return true;
}

}  // namespace

CONCORD_SIMD void row_norm_forward(const float* src, std::int64_t n, bool centred, float epsilon, float* dst,
                                   float* mean, float* rstd) {
  if (forward<float>(src, n, centred, epsilon, dst, mean, rstd)) return;
  forward<double>(src, n, centred, epsilon, dst, mean, rstd);
}
CONCORD_SIMD void row_norm_backward(const float* diff_dst, const float* dst, std::int64_t n, bool centred, float rstd,
                                    float* diff_src) {
  if (backward<float>(diff_dst, dst, n, centred, rstd, diff_src)) return;
  backward<double>(diff_dst, dst, n, centred, rstd, diff_src);
}

CONCORD_SIMD void row_norm_forward(const Bf16* src, std::int64_t n, bool centred, float epsilon, Bf16* dst, float* mean,
                                   float* rstd) {
  if (forward<float>(src, n, centred, epsilon, dst, mean, rstd)) return;
  forward<double>(src, n, centred, epsilon, dst, mean, rstd);
}
CONCORD_SIMD void row_norm_backward(const Bf16* diff_dst, const Bf16* dst, std::int64_t n, bool centred, float rstd,
                                    Bf16* diff_src) {
  if (backward<float>(diff_dst, dst, n, centred, rstd, diff_src)) return;
  backward<double>(diff_dst, dst, n, centred, rstd, diff_src);
}

}  // namespace concord::cpu
