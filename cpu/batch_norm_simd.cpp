// Sums in a fixed number of lanes around a number near the mean of the part, so that what is large and common to all
// values costs no digits; lanes are joined in double after few terms. The order of sums depends on the sizes alone.
#include "batch_norm_simd.hpp"

#include <algorithm>

namespace concord::cpu {
namespace {

constexpr std::int64_t kChannelLanes = 32;
constexpr std::int64_t kTerms = 16;   // values that a lane adds before it goes into double
constexpr std::int64_t kFirst = 256;  // values at least that the number near the mean is taken of

// Calls term(place, sums) of each value of a channel with runs, where `sums` are `kSums` numbers of type Real of the
// value's lane, and adds all lanes to totals.
template <class Real, int kSums, class Term>
[[gnu::always_inline]] inline void sum_runs(const NormPart& part, std::int64_t rows, double* totals, Term term) {
  Real lanes[kSums][kChannelLanes] = {};
  double wide[kSums][kChannelLanes] = {};
  std::int64_t terms = 0;
  const auto join = [&]() __attribute__((always_inline)) {
    for (int k = 0; k < kSums; ++k) {
#pragma omp simd
      for (std::int64_t j = 0; j < kChannelLanes; ++j) {
        wide[k][j] += static_cast<double>(lanes[k][j]);
        lanes[k][j] = 0;
      }
    }
    terms = 0;
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t line = row * part.stride;
    for (std::int64_t begin = 0; begin < part.run; begin += kChannelLanes * kTerms) {
      const std::int64_t end = std::min(part.run, begin + kChannelLanes * kTerms);
      std::int64_t i = begin;
      for (; i + kChannelLanes <= end; i += kChannelLanes) {
#pragma omp simd
        for (std::int64_t j = 0; j < kChannelLanes; ++j) term(line + i + j, lanes, j);
      }
      const std::int64_t rest = end - i;
#pragma omp simd
      for (std::int64_t j = 0; j < rest; ++j) term(line + i + j, lanes, j);
      terms += (end - begin + kChannelLanes - 1) / kChannelLanes;
      if (terms >= kTerms) join();
    }
  }
  join();
  for (int k = 0; k < kSums; ++k) {
    for (const double lane : wide[k]) totals[k] += lane;
  }
}

// How many rows the number near the mean is taken of.
std::int64_t first_rows(const NormPart& part) {
  const std::int64_t rows = part.by_channel ? (kFirst + part.run - 1) / part.run : kFirst / 4;
  return std::min(part.rows, rows);
}

template <class Real, class Stored>
[[gnu::always_inline]] inline Real first_mean_of_runs(const Stored* values, const NormPart& part) {
  const std::int64_t rows = first_rows(part);
  double total = 0;
  const auto add = [&](std::int64_t i, Real(*lanes)[kChannelLanes], std::int64_t j) __attribute__((always_inline)) {
    lanes[0][j] += static_cast<Real>(values[i]);
  };
  sum_runs<Real, 1>(part, rows, &total, add);
  return static_cast<Real>(total / static_cast<double>(rows * part.run));
}

// Rows of channels. Neighbouring rows without gaps are taken as one, so that few channels make long loops too.
struct Fold {
  std::int64_t rows, width;
  explicit Fold(const NormPart& part) : rows(part.stride == part.channels ? kNormChannels / part.channels : 1) {
    rows = std::max<std::int64_t>(1, std::min(rows, part.rows));
    width = rows * part.channels;
  }
};

// Calls function(place, column, width) for each row of the part, or for each fold of them.
template <class Function>
[[gnu::always_inline]] inline void each_row(const NormPart& part, const Fold& fold, std::int64_t rows,
                                            Function function) {
  std::int64_t row = 0;
  for (; row + fold.rows <= rows; row += fold.rows) function(row * part.stride, fold.width);
  for (; row < rows; ++row) function(row * part.stride, part.channels);
}

// `values` by channel as often as a fold has rows.
template <class Real, class From>
[[gnu::always_inline]] inline void repeat(const From* values, const NormPart& part, const Fold& fold, Real* repeated) {
  for (std::int64_t j = 0; j < fold.width; ++j) repeated[j] = static_cast<Real>(values[j % part.channels]);
}

// Calls term(place, column, sums, column) of each value and adds the columns of each channel to totals (kSums,
// channels).
template <class Real, int kSums, class Term>
[[gnu::always_inline]] inline void sum_columns(const NormPart& part, const Fold& fold, std::int64_t rows,
                                               double (*totals)[kNormChannels], Term term) {
  Real sums[kSums][kNormChannels];
  for (int k = 0; k < kSums; ++k) std::fill_n(sums[k], fold.width, Real(0));
  std::int64_t terms = 0;
  const auto join = [&]() __attribute__((always_inline)) {
    for (int k = 0; k < kSums; ++k) {
      for (std::int64_t first = 0; first < fold.width; first += part.channels) {
#pragma omp simd
        for (std::int64_t j = 0; j < part.channels; ++j) totals[k][j] += static_cast<double>(sums[k][first + j]);
      }
      std::fill_n(sums[k], fold.width, Real(0));
    }
    terms = 0;
  };
  each_row(
      part, fold, rows, [&](std::int64_t place, std::int64_t width) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) term(place + j, sums, j);
        if (++terms == kTerms) join();
      });
  join();
}

template <class Real, class Stored>
[[gnu::always_inline]] inline void first_mean_of_columns(const Stored* values, const NormPart& part, const Fold& fold,
                                                         double (*totals)[kNormChannels], Real* mean) {
  const std::int64_t rows = first_rows(part);
  std::fill_n(totals[0], part.channels, 0.0);
  const auto add = [&](std::int64_t i, Real(*sums)[kNormChannels], std::int64_t j) __attribute__((always_inline)) {
    sums[0][j] += static_cast<Real>(values[i]);
  };
  sum_columns<Real, 1>(part, fold, rows, totals, add);
  for (std::int64_t j = 0; j < fold.width; ++j) {
    mean[j] = static_cast<Real>(totals[0][j % part.channels] / static_cast<double>(rows));
  }
}

template <class Real, class Stored>
[[gnu::always_inline]] inline void statistics(const Stored* src, const NormPart& part, double* mean, double* squares) {
  const auto count = static_cast<double>(part.count());
  const auto finish = [&](std::int64_t j, Real near, double sum, double square) __attribute__((always_inline)) {
    const double rest = sum / count;
    mean[j] = static_cast<double>(near) + rest;
    squares[j] = square - rest * sum;
    if (squares[j] < 0) squares[j] = 0;  // NaN stays
  };
  if (part.by_channel) {
    const Real near = first_mean_of_runs<Real>(src, part);
    double totals[2] = {};
    const auto add = [&](std::int64_t i, Real(*lanes)[kChannelLanes], std::int64_t j) __attribute__((always_inline)) {
      const Real d = static_cast<Real>(src[i]) - near;
      lanes[0][j] += d;
      lanes[1][j] += d * d;
    };
    sum_runs<Real, 2>(part, part.rows, totals, add);
    finish(0, near, totals[0], totals[1]);
    return;
  }
  const Fold fold(part);
  Real near[kNormChannels];
  double totals[2][kNormChannels];
  first_mean_of_columns(src, part, fold, totals, near);
  for (auto& total : totals) std::fill_n(total, part.channels, 0.0);
  const auto add = [&](std::int64_t i, Real(*sums)[kNormChannels], std::int64_t j) __attribute__((always_inline)) {
    const Real d = static_cast<Real>(src[i]) - near[j];
    sums[0][j] += d;
    sums[1][j] += d * d;
  };
  sum_columns<Real, 2>(part, fold, part.rows, totals, add);
  for (std::int64_t j = 0; j < part.channels; ++j) finish(j, near[j], totals[0][j], totals[1][j]);
}

template <class Real, class Stored>
[[gnu::always_inline]] inline void backward_sums(const Stored* src, const Stored* diff_dst, const NormPart& part,
                                                 const float* mean, NormSums* result) {
  if (part.by_channel) {
    const Real near = first_mean_of_runs<Real>(diff_dst, part), middle = static_cast<Real>(*mean);
    double totals[3] = {};
    const auto add = [&](std::int64_t i, Real(*lanes)[kChannelLanes], std::int64_t j) __attribute__((always_inline)) {
      const Real d = static_cast<Real>(diff_dst[i]) - near, x = static_cast<Real>(src[i]) - middle;
      lanes[0][j] += d;
      lanes[1][j] += d * x;
      lanes[2][j] += x;
    };
    sum_runs<Real, 3>(part, part.rows, totals, add);
    *result = {static_cast<double>(near), totals[0], totals[1], totals[2]};
    return;
  }
  const Fold fold(part);
  Real near[kNormChannels], middle[kNormChannels];
  double totals[3][kNormChannels];
  first_mean_of_columns(diff_dst, part, fold, totals, near);
  repeat(mean, part, fold, middle);
  for (auto& total : totals) std::fill_n(total, part.channels, 0.0);
  const auto add = [&](std::int64_t i, Real(*sums)[kNormChannels], std::int64_t j) __attribute__((always_inline)) {
    const Real d = static_cast<Real>(diff_dst[i]) - near[j], x = static_cast<Real>(src[i]) - middle[j];
    sums[0][j] += d;
    sums[1][j] += d * x;
    sums[2][j] += x;
  };
  sum_columns<Real, 3>(part, fold, part.rows, totals, add);
  for (std::int64_t j = 0; j < part.channels; ++j) {
    result[j] = {static_cast<double>(near[j]), totals[0][j], totals[1][j], totals[2][j]};
  }
}

template <class Stored>
[[gnu::always_inline]] inline void forward(const Stored* src, const NormPart& part, const float* mean,
                                           const float* factor, const float* shift, Stored* dst) {
  if (part.by_channel) {
    const float m = *mean, f = *factor, s = *shift;
    for (std::int64_t row = 0; row < part.rows; ++row) {
      const Stored* const from = src + row * part.stride;
      Stored* const to = dst + row * part.stride;
#pragma omp simd
      for (std::int64_t i = 0; i < part.run; ++i) put(to[i], (from[i] - m) * f + s);
    }
    return;
  }
  const Fold fold(part);
  float m[kNormChannels], f[kNormChannels], s[kNormChannels];
  repeat(mean, part, fold, m);
  repeat(factor, part, fold, f);
  repeat(shift, part, fold, s);
  each_row(
      part, fold, part.rows, [&](std::int64_t place, std::int64_t width) __attribute__((always_inline)) {
        const Stored* const from = src + place;
        Stored* const to = dst + place;
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) put(to[j], (from[j] - m[j]) * f[j] + s[j]);
      });
}

template <class Stored>
[[gnu::always_inline]] inline void backward(const Stored* src, const Stored* diff_dst, const NormPart& part,
                                            const NormGradient& by, Stored* diff_src) {
  if (part.by_channel) {
    const float f = *by.factor, d = *by.diff_mean, m = *by.mean, s = *by.slope, r = *by.rest;
    for (std::int64_t row = 0; row < part.rows; ++row) {
      const std::int64_t line = row * part.stride;
      const Stored *const x = src + line, *const diff = diff_dst + line;
      Stored* const to = diff_src + line;
#pragma omp simd
      for (std::int64_t i = 0; i < part.run; ++i) put(to[i], f * (((diff[i] - d) - (x[i] - m) * s) + r));
    }
    return;
  }
  const Fold fold(part);
  float f[kNormChannels], d[kNormChannels], m[kNormChannels], s[kNormChannels], r[kNormChannels];
  repeat(by.factor, part, fold, f);
  repeat(by.diff_mean, part, fold, d);
  repeat(by.mean, part, fold, m);
  repeat(by.slope, part, fold, s);
  repeat(by.rest, part, fold, r);
  each_row(
      part, fold, part.rows, [&](std::int64_t place, std::int64_t width) __attribute__((always_inline)) {
        const Stored *const x = src + place, *const diff = diff_dst + place;
        Stored* const to = diff_src + place;
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) {
          put(to[j], f[j] * (((diff[j] - d[j]) - (x[j] - m[j]) * s[j]) + r[j]));
        }
      });
}

}  // namespace

CONCORD_SIMD void batch_norm_statistics(const float* src, const NormPart& part, bool wide, double* mean,
                                        double* squares) {
  wide ? statistics<double>(src, part, mean, squares) : statistics<float>(src, part, mean, squares);
}
CONCORD_SIMD void batch_norm_forward(const float* src, const NormPart& part, const float* mean, const float* factor,
                                     const float* shift, float* dst) {
  forward(src, part, mean, factor, shift, dst);
}
CONCORD_SIMD void batch_norm_backward_sums(const float* src, const float* diff_dst, const NormPart& part, bool wide,
                                           const float* mean, NormSums* sums) {
  wide ? backward_sums<double>(src, diff_dst, part, mean, sums) : backward_sums<float>(src, diff_dst, part, mean, sums);
}
CONCORD_SIMD void batch_norm_backward(const float* src, const float* diff_dst, const NormPart& part,
                                      const NormGradient& by, float* diff_src) {
  backward(src, diff_dst, part, by, diff_src);
}

CONCORD_SIMD void batch_norm_statistics(const Bf16* src, const NormPart& part, bool wide, double* mean,
                                        double* squares) {
  wide ? statistics<double>(src, part, mean, squares) : statistics<float>(src, part, mean, squares);
}
CONCORD_SIMD void batch_norm_forward(const Bf16* src, const NormPart& part, const float* mean, const float* factor,
                                     const float* shift, Bf16* dst) {
  forward(src, part, mean, factor, shift, dst);
}
CONCORD_SIMD void batch_norm_backward_sums(const Bf16* src, const Bf16* diff_dst, const NormPart& part, bool wide,
                                           const float* mean, NormSums* sums) {
  wide ? backward_sums<double>(src, diff_dst, part, mean, sums) : backward_sums<float>(src, diff_dst, part, mean, sums);
}
CONCORD_SIMD void batch_norm_backward(const Bf16* src, const Bf16* diff_dst, const NormPart& part,
                                      const NormGradient& by, Bf16* diff_src) {
  backward(src, diff_dst, part, by, diff_src);
}

}  // namespace concord::cpu
