// Normalisation of rows, src (rows, length), and its gradient. LANES items share a row (lanes.h). CENTRED subtracts the
// mean of the row; without it the mean of squares takes the place of the variance.
//   forward  dst = (src − mean)·rstd, rstd = 1/√(variance + epsilon). The row is read three times (mean, squared
//            deviations, result; twice where not CENTRED), once from memory and then from cache: 8 bytes an element.
//   backward diff_src = rstd·(diff_dst − mean(diff_dst) − dst·mean(diff_dst·dst)): 12 bytes an element.
#include "chains.h"
#include "lanes.h"

// TERM(i) summed over the items of a row. One item a row (CPUs) runs 16 chains side by side; TERM16 gives 16 terms.
#if LANES == 1
#define ROW_SUM(value, TERM, TERM16)                                              \
  do {                                                                            \
    ulong i_ = 0;                                                                 \
    float16 chains_ = (float16)(0.0f);                                            \
    for (; i_ + 16 <= length; i_ += 16) chains_ += TERM16(i_);                    \
    JOIN_CHAINS(value, chains_, COMBINE_SUM);                                     \
    for (; i_ < length; ++i_) value += TERM(i_);                                  \
  } while (0)
#else
#define ROW_SUM(value, TERM, TERM16)                                  \
  do {                                                                \
    value = 0.0f;                                                     \
    for (ulong i_ = LANE; i_ < length; i_ += LANES) value += TERM(i_); \
    LANES_REDUCE(value, scratch, COMBINE_SUM);                        \
  } while (0)
#endif

static inline float row_norm_square(float a) { return a * a; }
static inline float16 row_norm_square16(float16 a) { return a * a; }

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_forward(
    __global const float *restrict src, ulong src_offset, __global float *restrict dst, ulong dst_offset,
    __global float *restrict rstds, ulong rstds_offset,
#ifdef CENTRED
    __global float *restrict means, ulong means_offset,
#endif
    ulong rows, ulong length, float epsilon) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW;
  src += src_offset + min(row, rows - 1) * length;
  dst += dst_offset + min(row, rows - 1) * length;
  float mean = 0.0f, squares;
#ifdef CENTRED
#define VALUE(i) src[i]
#define VALUE16(i) vload16(0, src + (i))
  ROW_SUM(mean, VALUE, VALUE16);
  mean /= (float)length;
#endif
#define SQUARE(i) row_norm_square(src[i] - mean)
#define SQUARE16(i) row_norm_square16(vload16(0, src + (i)) - mean)
  ROW_SUM(squares, SQUARE, SQUARE16);
  const float rstd = 1.0f / sqrt(squares / (float)length + epsilon);
  if (row >= rows) return;
  for (ulong i = LANE; i < length; i += LANES) dst[i] = (src[i] - mean) * rstd;
  if (LANE > 0) return;
  rstds[rstds_offset + row] = rstd;
#ifdef CENTRED
  means[means_offset + row] = mean;
#endif
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_backward(
    __global const float *restrict diff_dst, ulong diff_dst_offset, __global const float *restrict dst,
    ulong dst_offset, __global const float *restrict rstds, ulong rstds_offset, __global float *restrict diff_src,
    ulong diff_src_offset, ulong rows, ulong length) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, begin = min(row, rows - 1) * length;
  diff_dst += diff_dst_offset + begin;
  dst += dst_offset + begin;
  diff_src += diff_src_offset + begin;
  float mean = 0.0f, product;
#ifdef CENTRED
#define DIFF(i) diff_dst[i]
#define DIFF16(i) vload16(0, diff_dst + (i))
  ROW_SUM(mean, DIFF, DIFF16);
  mean /= (float)length;
#endif
#define PRODUCT(i) (diff_dst[i] * dst[i])
#define PRODUCT16(i) (vload16(0, diff_dst + (i)) * vload16(0, dst + (i)))
  ROW_SUM(product, PRODUCT, PRODUCT16);
  product /= (float)length;
  if (row >= rows) return;
  const float rstd = rstds[rstds_offset + row];
  for (ulong i = LANE; i < length; i += LANES) diff_src[i] = rstd * (diff_dst[i] - mean - dst[i] * product);
}
