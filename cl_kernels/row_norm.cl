// Normalisation of rows, src (rows, length), and its gradient. LANES items share a row (lanes.h). CENTRED subtracts the
// mean of the row; without it the mean of squares takes the place of the variance.
//   forward  dst = (src − mean)·rstd, rstd = 1/√(variance + epsilon). The row is read three times (mean, deviations and
//            their squares, result; twice where not CENTRED), once from memory and then from cache: 8 bytes an element.
//   backward diff_src = rstd·(diff_dst − mean(diff_dst) − dst·mean(diff_dst·dst)): 12 bytes an element.
// A mean is found in two steps: a sum leaves a rounding, which the mean of the deviations finds; both are subtracted.
#include "chains.h"
#include "lanes.h"

// ADD(i, first, second) adds to both sums, which the items of a row then share. One item a row (CPUs) runs 16 chains side
// by side, where READ gives 16 values.
#if LANES == 1
#define PIECE 4096  // values whose sum is one term of the row's, so that roundings do not grow with the length
#define ROW_SUMS(first, second, ADD)                                                   \
  do {                                                                                 \
    first = second = 0.0f;                                                             \
    for (ulong i_ = 0; i_ < length;) {                                                 \
      const ulong end_ = min(length, i_ + PIECE);                                      \
      float16 firsts_ = (float16)(0.0f), seconds_ = (float16)(0.0f);                   \
      float first_, second_;                                                           \
      for (; i_ + 16 <= end_; i_ += 16) ADD(READ16, i_, float16, firsts_, seconds_);   \
      JOIN_CHAINS(first_, firsts_, COMBINE_SUM);                                       \
      JOIN_CHAINS(second_, seconds_, COMBINE_SUM);                                     \
      for (; i_ < end_; ++i_) ADD(READ1, i_, float, first_, second_);                  \
      first += first_;                                                                 \
      second += second_;                                                               \
    }                                                                                  \
  } while (0)
#else
#define ROW_SUMS(first, second, ADD)                                                                 \
  do {                                                                                               \
    float2 sums_ = (float2)(0.0f);                                                                   \
    for (ulong i_ = LANE; i_ < length; i_ += LANES) ADD(READ1, i_, float, sums_.x, sums_.y);         \
    LANES_REDUCE(sums_, scratch, COMBINE_SUM);                                                       \
    first = sums_.x;                                                                                 \
    second = sums_.y;                                                                                \
  } while (0)
#endif
#define READ1(values, i) values[i]
#define READ16(values, i) vload16(0, values + (i))

#define ADD_VALUE(READ, i, type, sum, unused) sum += READ(values, i)
#define ADD_DEVIATION(READ, i, type, sum, squares) \
  do {                                             \
    const type d_ = READ(values, i) - middle;      \
    sum += d_;                                     \
    squares += d_ * (d_ * share);                  \
  } while (0)
#define ADD_PRODUCT(READ, i, type, sum, products) \
  do {                                            \
    const type d_ = READ(values, i) - middle;     \
    sum += d_;                                    \
    products += d_ * READ(dst, i);                \
  } while (0)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_forward(
    __global const float *restrict src, ulong src_offset, __global float *restrict dst, ulong dst_offset,
    __global float *restrict rstds, ulong rstds_offset,
#ifdef CENTRED
    __global float *restrict means, ulong means_offset,
#endif
    ulong rows, ulong length, float epsilon) {
  LANES_SCRATCH(float2, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW;
  __global const float *restrict values = src + src_offset + min(row, rows - 1) * length;
  dst += dst_offset + min(row, rows - 1) * length;
  const float share = 1.0f / (float)length;  // of each square in the variance, which so stays below the end of fp32
  float middle = 0.0f, sum, squares;
#ifdef CENTRED
  ROW_SUMS(sum, squares, ADD_VALUE);
  middle = sum / (float)length;
#endif
  ROW_SUMS(sum, squares, ADD_DEVIATION);
#ifdef CENTRED
  const float rest = sum / (float)length;
#else
  const float rest = 0.0f;
#endif
  const float variance = squares - rest * rest;
  const float rstd = 1.0f / sqrt((variance < 0.0f ? 0.0f : variance) + epsilon);  // NaN stays
  if (row >= rows) return;
  for (ulong i = LANE; i < length; i += LANES) dst[i] = ((values[i] - middle) - rest) * rstd;
  if (LANE > 0) return;
  rstds[rstds_offset + row] = rstd;
#ifdef CENTRED
  means[means_offset + row] = middle + rest;
#endif
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_backward(
    __global const float *restrict diff_dst, ulong diff_dst_offset, __global const float *restrict dst,
    ulong dst_offset, __global const float *restrict rstds, ulong rstds_offset, __global float *restrict diff_src,
    ulong diff_src_offset, ulong rows, ulong length) {
  LANES_SCRATCH(float2, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, begin = min(row, rows - 1) * length;
  __global const float *restrict values = diff_dst + diff_dst_offset + begin;
  dst += dst_offset + begin;
  diff_src += diff_src_offset + begin;
  float middle = 0.0f, rest = 0.0f, sum, product;
#ifdef CENTRED
  ROW_SUMS(sum, product, ADD_VALUE);
  middle = sum / (float)length;
#endif
  // The mean of dst is 0, so that subtracting that of diff_dst first changes no product but its rounding.
  ROW_SUMS(sum, product, ADD_PRODUCT);
#ifdef CENTRED
  rest = sum / (float)length;
#endif
  product /= (float)length;
  if (row >= rows) return;
  const float rstd = rstds[rstds_offset + row];
  for (ulong i = LANE; i < length; i += LANES) {
    diff_src[i] = rstd * (((values[i] - middle) - rest) - dst[i] * product);
  }
}
