// What the files of batch normalisation share: numbers of a channel that keep what is common to all its values
// apart from what differs, and squares that do not leave fp32.
//
// Deviations are multiplied by `unit` before they are squared: 1, or a power of two where squares would over- or underflow.
// A mean is a pair: a number of fp32 and what is left of it.
#ifndef CONCORD_BATCH_NORM_H
#define CONCORD_BATCH_NORM_H

#include "ops/norm_rstd.h"
#include "shared/numbers.h"

// The numbers of the kernels of batch_norm.cl and batch_norm_contiguous.cl; SIZES is their file's.
#define STATISTICS_NUMBERS(NUMBER) NUMBER(ulong, src_offset) NUMBER(ulong, sums_offset) SIZES(NUMBER) NUMBER(float, epsilon)
#define FORWARD_NUMBERS(NUMBER)                                                                                \
  NUMBER(ulong, src_offset) NUMBER(ulong, sums_offset) NUMBER(ulong, scale_offset) NUMBER(ulong, shift_offset) \
  NUMBER(ulong, dst_offset) NUMBER(ulong, means_offset) NUMBER(ulong, variances_offset) SIZES(NUMBER)          \
  NUMBER(float, epsilon)
#define BACKWARD_SUMS_NUMBERS(NUMBER)                                                  \
  NUMBER(ulong, src_offset) NUMBER(ulong, diff_dst_offset) NUMBER(ulong, means_offset) \
  NUMBER(ulong, variances_offset) NUMBER(ulong, sums_offset) SIZES(NUMBER) NUMBER(float, epsilon)
#define BACKWARD_NUMBERS(NUMBER)                                                                                 \
  NUMBER(ulong, src_offset) NUMBER(ulong, diff_dst_offset) NUMBER(ulong, scale_offset)                           \
  NUMBER(ulong, means_offset) NUMBER(ulong, variances_offset) NUMBER(ulong, sums_offset)                         \
  NUMBER(ulong, diff_src_offset) NUMBER(ulong, diff_scale_offset) NUMBER(ulong, diff_shift_offset) SIZES(NUMBER) \
  NUMBER(float, epsilon)

#define UNIT_OF_LARGE 0x1p-74f
#define UNIT_OF_SMALL 0x1p66f

// The unit for a channel or part whose variance is found to be this with unit 1. Values that differ may have squares of 0;
// that counts where epsilon is as small.
static inline float batch_norm_unit(float variance, float epsilon) {
  const bool is_small = variance < 1e-28f && (variance > 0.0f || epsilon < 1e-28f);
  return is_small ? UNIT_OF_SMALL : !(variance < 1e36f) ? UNIT_OF_LARGE : 1.0f;
}

// (base + offset) as a number of fp32 and what is left, whichever of them is larger.
static inline float2 batch_norm_pair(float base, float offset) {
  const float sum = base + offset, part = sum - base;
  return (float2)(sum, (base - (sum - part)) + (offset - part));
}

// Statistics of a part: its mean as a pair, Σ (deviation·unit)², unit.
// Those of a channel are joined around the mean of its first part (Chan, Golub and LeVeque, "Updating Formulae and a
// Pairwise Algorithm …", 1979): Σ count·difference and Σ squares, both in `unit`, of which no part has a smaller one. `ratio`
// is unit over the part's own.
static inline float2 batch_norm_joined_in(float4 part, float4 first, float count, float unit, float ratio) {
  const float difference = ((part.x - first.x) + (part.y - first.y)) * unit;
  return (float2)(count * difference, part.z * ratio * ratio + count * difference * difference);
}
static inline float2 batch_norm_joined_part(float4 part, float4 first, float count, float unit) {
  return batch_norm_joined_in(part, first, count, unit, unit / part.w);
}

// What dst is computed with: (src − mean)·factor + added.
typedef struct {
  float mean, factor, added, variance;
} norm_factors;
static inline norm_factors batch_norm_factors(float4 first, float2 total, float count, float unit, float scale, float shift,
                                              float epsilon) {
  const float offset = total.x / count, rest = total.y - offset * total.x;
  const float variance = (rest < 0.0f ? 0.0f : rest) / count;  // NaN stays
  const float2 mean = batch_norm_pair(first.x, first.y + offset / unit);
  const float factor = scale * (norm_rstd(variance, unit, epsilon) * unit);
  return (norm_factors){mean.x, factor, shift - mean.y * factor, variance / unit / unit};
}

// The number that sums of diff_dst are taken around: one near their mean, if a few of them tell that it is far from 0. Around
// another one sums would be larger than they are.
static inline float batch_norm_base(float near, float least, float largest) {
  return fabs(near) > largest - least ? near : 0.0f;
}

// Sums of a part for the gradient, with x = (src − mean)·unit and d = diff_dst − base: Σ d, Σ d·x, Σ x, Σ x²; the base stands behind them. Here they are of another base.
static inline float4 batch_norm_rebased(float4 sums, float count, float lifted) {
  return sums + (float4)(count * lifted, lifted * sums.z, 0.0f, 0.0f);
}

// What diff_src is computed with: factor·((diff_dst − diff_mean) − (src − mean)·slope + rest).
typedef struct {
  float factor, diff_mean, slope, rest, diff_scale, diff_shift;
} gradient_factors;
// Σ (src − mean) finds what the rounding of the mean has left. A variance that fp32 does not hold is found by Σ x².
static inline gradient_factors batch_norm_gradient_factors(float4 sums, float base, float count, float variance, float unit,
                                                           float scale, float epsilon) {
  const float d = sums.x / count, x = sums.z / count;
  const float found = sums.w / count - x * x;
  const float own = unit == 1.0f ? variance : (found < 0.0f ? 0.0f : found);  // NaN stays
  const float rstd = norm_rstd(own, unit, epsilon), product = sums.y - d * sums.z;
  const float slope = product / count * rstd * rstd;
  const float2 mean = batch_norm_pair(base, d);
  return (gradient_factors){scale * (rstd * unit), mean.x, slope * unit, x * slope - mean.y, product * rstd,
                            count * base + sums.x};
}

#endif
