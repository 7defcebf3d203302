// Normalisation of rows, src (rows, length), and its gradient. LANES items share a row (shared/lanes.h). CENTRED subtracts the
// mean of the row; without it the mean of squares takes the place of the variance.
//   forward  dst = (src − mean)·rstd, rstd = 1/√(variance + epsilon). The row is read three times (mean and largest value,
//            deviations and their squares, result), once from memory and then from cache: 8 bytes an element.
//   backward diff_src = rstd·(diff_dst − mean(diff_dst) − dst·mean(diff_dst·dst)): 12 bytes an element.
// A mean is found in two steps: a sum leaves a rounding, which the mean of the deviations finds; both are subtracted.
// Deviations are multiplied by a power of two, `unit`, that brings the row's largest value to [1, 2), or that with which
// epsilon is about 1 where that is less: so no square that counts leaves fp32. First sums add the part `share` (a power of
// two) of each value and do not overflow where the mean does not.
// The text in front may give the first result an epilogue (gemm_epilogue), for row m and place n_inner.
#include "shared/chains.h"
#include "shared/lanes.h"
#include "ops/norm_rstd.h"
#include "ops/row_norm.h"

#ifndef EPILOGUE_IS_EXPRESSION
#define EPILOGUE_PARAMETERS
#define EPILOGUE(value, z, m, n_outer, n_inner) (value)
#endif

// ADD(i, first, second) adds to both numbers, which the items of a row then share by COMBINE. One item a row (CPUs) runs
// 16 chains side by side, where READ gives 16 values. A chain is joined after few terms, so that roundings do not grow
// with the length.
#define COMBINE_SUM_AND_LARGEST(a, b) ((float2)((a).x + (b).x, fmax((a).y, (b).y)))
#define COMBINE_LARGER(a, b) fmax((a), (b))
#define TERMS 16
#if LANES == 1
#define ADD_PIECE_SUM(high, low, piece) ADD_EXACTLY(float16, high, low, piece)
#define ADD_PIECE_LARGER(high, low, piece) high = fmax(high, piece)
#define ROW_SUMS(first, second, ADD, SECOND, COMBINE)                                       \
  do {                                                                                      \
    float16 firsts_ = (float16)(0.0f), seconds_ = (float16)(0.0f);                          \
    float16 first_low_ = (float16)(0.0f), second_low_ = (float16)(0.0f);                    \
    ulong i_ = 0;                                                                           \
    while (i_ + 16 <= length) {                                                             \
      const ulong end_ = min(length, i_ + TERMS * 16);                                      \
      float16 first_piece_ = (float16)(0.0f), second_piece_ = (float16)(0.0f);              \
      for (; i_ + 16 <= end_; i_ += 16) ADD(READ16, i_, float16, first_piece_, second_piece_); \
      ADD_PIECE_SUM(firsts_, first_low_, first_piece_);                                     \
      ADD_PIECE_##SECOND(seconds_, second_low_, second_piece_);                             \
    }                                                                                       \
    float low_;                                                                             \
    JOIN_CHAINS(first, firsts_, COMBINE_SUM);                                               \
    JOIN_CHAINS(low_, first_low_, COMBINE_SUM);                                             \
    first += low_;                                                                          \
    JOIN_CHAINS(second, seconds_, COMBINE_##SECOND);                                        \
    JOIN_CHAINS(low_, second_low_, COMBINE_SUM);                                            \
    second += low_;                                                                         \
    for (; i_ < length; ++i_) ADD(READ1, i_, float, first, second);                         \
  } while (0)
#else
#define ROW_SUMS(first, second, ADD, SECOND, COMBINE)                                        \
  do {                                                                                               \
    float2 sums_ = (float2)(0.0f);                                                                   \
    for (ulong i_ = LANE; i_ < length;) {                                                            \
      const ulong end_ = min(length, i_ + TERMS * LANES);                                            \
      float2 terms_ = (float2)(0.0f);                                                                \
      for (; i_ < end_; i_ += LANES) ADD(READ1, i_, float, terms_.x, terms_.y);                      \
      sums_ = COMBINE(sums_, terms_);                                                                \
    }                                                                                                \
    LANES_REDUCE(sums_, scratch, COMBINE);                                                           \
    first = sums_.x;                                                                                 \
    second = sums_.y;                                                                                \
  } while (0)
#endif
#define READ1(values, i) values[i]
#define READ16(values, i) vload16(0, values + (i))

#define ADD_VALUE(READ, i, type, sum, unused) sum += READ(values, i) * share
#define ADD_VALUE_AND_LARGEST(READ, i, type, sum, largest) \
  do {                                                     \
    const type v_ = READ(values, i);                       \
    sum += v_ * share;                                     \
    largest = fmax(largest, fabs(v_));                     \
  } while (0)
#define ADD_DEVIATION(READ, i, type, sum, squares)    \
  do {                                                \
    const type d_ = READ(values, i) * unit - middle;  \
    sum += d_;                                        \
    squares += d_ * d_;                               \
  } while (0)
#define ADD_PRODUCT(READ, i, type, sum, products) \
  do {                                            \
    const type d_ = READ(values, i) - middle;     \
    sum += d_ * share;                            \
    products += d_ * (READ(dst, i) * share);      \
  } while (0)

#define SIZES(NUMBER) NUMBER(ulong, rows) NUMBER(ulong, length)
typedef struct { FORWARD_NUMBERS(NUMBER_MEMBER) } forward_numbers;
typedef struct { BACKWARD_NUMBERS(NUMBER_MEMBER) } backward_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_forward(
    __global const float *restrict src, __global float *restrict dst, __global float *restrict rstds,
    MEANS_OPERAND const forward_numbers numbers EPILOGUE_PARAMETERS) {
  FORWARD_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(float2, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW;
  __global const float *restrict values = src + src_offset + min(row, rows - 1) * length;
  dst += dst_offset + min(row, rows - 1) * length;
  const float count = (float)length;
  float sum, largest, squares;
  ROW_SUMS(sum, largest, ADD_VALUE_AND_LARGEST, LARGER, COMBINE_SUM_AND_LARGEST);
  const float unit = norm_unit(largest, most_unit);
  float middle = 0.0f, rest = 0.0f;
#ifdef CENTRED
  middle = sum / (count * share) * unit;
#endif
  ROW_SUMS(sum, squares, ADD_DEVIATION, SUM, COMBINE_SUM);
#ifdef CENTRED
  rest = sum / count;
#endif
  const float variance = squares / count - rest * rest;
  const float rstd = norm_rstd(variance < 0.0f ? 0.0f : variance, unit, epsilon);  // NaN stays
  if (row >= rows) return;
  for (ulong i = LANE; i < length; i += LANES) {
    dst[i] = EPILOGUE(((values[i] * unit - middle) - rest) * rstd, 0, row, 0, i);
  }
  if (LANE > 0) return;
  rstds[rstds_offset + row] = rstd * unit;
#ifdef CENTRED
  means[means_offset + row] = (fabs(middle) == INFINITY ? middle : middle + rest) / unit;
#endif
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_backward(
    __global const float *restrict diff_dst, __global const float *restrict dst,
    __global const float *restrict rstds, __global float *restrict diff_src,
    const backward_numbers numbers EPILOGUE_PARAMETERS) {
  BACKWARD_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(float2, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, begin = min(row, rows - 1) * length;
  __global const float *restrict values = diff_dst + diff_dst_offset + begin;
  dst += dst_offset + begin;
  diff_src += diff_src_offset + begin;
  const float count = (float)length * share;
  float middle = 0.0f, rest = 0.0f, sum, product;
#ifdef CENTRED
  ROW_SUMS(sum, product, ADD_VALUE, SUM, COMBINE_SUM);
  middle = sum / count;
#endif
  // The mean of dst is 0, so that subtracting that of diff_dst first changes no product but its rounding.
  ROW_SUMS(sum, product, ADD_PRODUCT, SUM, COMBINE_SUM);
#ifdef CENTRED
  rest = sum / count;
#endif
  product /= count;
  if (row >= rows) return;
  const float rstd = rstds[rstds_offset + row];
  for (ulong i = LANE; i < length; i += LANES) {
    diff_src[i] = EPILOGUE(rstd * (((values[i] - middle) - rest) - dst[i] * product), 0, row, 0, i);
  }
}
