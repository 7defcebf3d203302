// Cumulative sums over the middle axis of src (outer, length, inner). EXCLUSIVE leaves an element's own value out,
// REVERSE runs from the end. LANES items share a row (shared/lanes.h), a run of neighbouring elements each: its sum, the sums of
// the lanes before it, then the result. 12 bytes an element, 8 of them from memory.
#include "shared/lanes.h"

#ifdef REVERSE
#define AT(i) ((length - 1 - (i)) * inner)
#else
#define AT(i) ((i)*inner)
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void scan_sum(
    __global const float *restrict src, ulong src_offset, __global float *restrict dst, ulong dst_offset, ulong rows,
    ulong length, ulong inner) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, outer = min(row, rows - 1) / inner;
  const ulong base = outer * length * inner + (min(row, rows - 1) - outer * inner);
  src += src_offset + base;
  dst += dst_offset + base;
  const ulong run = (length + LANES - 1) / LANES, begin = min(length, run * LANE), end = min(length, begin + run);
  float sum = 0.0f;
#if LANES > 1
  const uint item = (uint)get_local_id(0);
  for (ulong i = begin; i < end; ++i) sum += src[AT(i)];
  scratch[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint step = 1; step < LANES; step *= 2) {
    const float before = LANE >= step ? scratch[item - step * LANE_DISTANCE] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[item] += before;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = LANE > 0 ? scratch[item - LANE_DISTANCE] : 0.0f;
#endif
  if (row >= rows) return;
  for (ulong i = begin; i < end; ++i) {
    const float value = src[AT(i)];
#ifdef EXCLUSIVE
    dst[AT(i)] = sum;
    sum += value;
#else
    sum += value;
    dst[AT(i)] = sum;
#endif
  }
}
