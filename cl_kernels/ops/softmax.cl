// Softmax over the middle axis of src (outer, length, inner), and its gradient. LANES items share a row (shared/lanes.h) and read it
// three times (largest value, sum of exponentials, result), once from memory and then from cache: 8 bytes an element.
// The largest value is subtracted first, so no exponential overflows. LOG gives the logarithm.
//   forward  dst = exp(x − max) / Σ exp(x − max);            LOG: x − max − log Σ exp(x − max)
//   backward diff_src = dst·(diff_dst − Σ diff_dst·dst);     LOG: diff_dst − exp(dst)·Σ diff_dst, 0 where both are 0
#include "shared/lanes.h"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void softmax_forward(
    __global const float *restrict src, ulong src_offset, __global float *restrict dst, ulong dst_offset, ulong rows,
    ulong length, ulong inner) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, outer = min(row, rows - 1) / inner;
  const ulong begin = outer * length * inner + (min(row, rows - 1) - outer * inner);
  src += src_offset + begin;
  dst += dst_offset + begin;
  float largest = -INFINITY;
  for (ulong i = LANE; i < length; i += LANES) largest = COMBINE_MAXIMUM(largest, src[i * inner]);
  LANES_REDUCE(largest, scratch, COMBINE_MAXIMUM);
  float sum = 0.0f;
  for (ulong i = LANE; i < length; i += LANES) sum += exp(src[i * inner] - largest);
  LANES_REDUCE(sum, scratch, COMBINE_SUM);
  if (row >= rows) return;
#ifdef LOG
  const float log_sum = log(sum);
  for (ulong i = LANE; i < length; i += LANES) dst[i * inner] = src[i * inner] - largest - log_sum;
#else
  for (ulong i = LANE; i < length; i += LANES) dst[i * inner] = exp(src[i * inner] - largest) / sum;
#endif
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void softmax_backward(
    __global const float *restrict diff_dst, ulong diff_dst_offset, __global const float *restrict dst, ulong dst_offset,
    __global float *restrict diff_src, ulong diff_src_offset, ulong rows, ulong length, ulong inner) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, outer = min(row, rows - 1) / inner;
  const ulong begin = outer * length * inner + (min(row, rows - 1) - outer * inner);
  diff_dst += diff_dst_offset + begin;
  dst += dst_offset + begin;
  diff_src += diff_src_offset + begin;
  float sum = 0.0f;
#ifdef LOG
  for (ulong i = LANE; i < length; i += LANES) sum += diff_dst[i * inner];
#else
  for (ulong i = LANE; i < length; i += LANES) sum += diff_dst[i * inner] * dst[i * inner];
#endif
  LANES_REDUCE(sum, scratch, COMBINE_SUM);
  if (row >= rows) return;
#ifdef LOG
  for (ulong i = LANE; i < length; i += LANES) {
    const float diff = diff_dst[i * inner], slope = diff - exp(dst[i * inner]) * sum;
    diff_src[i * inner] = diff == 0.0f && sum == 0.0f ? 0.0f : slope;
  }
#else
  for (ulong i = LANE; i < length; i += LANES) diff_src[i * inner] = dst[i * inner] * (diff_dst[i * inner] - sum);
#endif
}
