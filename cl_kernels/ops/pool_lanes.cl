// Max and average pooling by windows of many pixels: LANES items a window (shared/lanes.h), LANE_COLUMNS of them along its
// rows, then a tree. Definitions and numbers are those of ops/pool.cl. Bytes: 4 a pixel of a window, 4 or 8 an element of
// dst; one operation a pixel.
#include "ops/candidate.h"
#include "ops/pool_numbers.h"
#include "shared/lanes.h"

// The window `row`, an element of dst, and its pixels (p, r, q) that the lane has. Lanes without a window work for the last
// one.
#define FIND_WINDOW \
  const uint row = (uint)get_group_id(0) * ROWS + ROW, element = min(row, count - 1); \
  const uint dst_row = index_divide(element, item_width, item_width_multiplier, item_width_shift); \
  const int x = (int)(element - dst_row * item_width); \
  SPLIT_ROW(dst_row) \
  const int front = BEGIN_D(z), top = BEGIN_H(y), left = BEGIN_W(x); \
  const int back = END_D(z, front), bottom = END_H(y, top), right = END_W(x, left); \
  const int lane_row = (int)(LANE / LANE_COLUMNS), lane_column = (int)(LANE % LANE_COLUMNS); \
  src += src_offset + (ulong)plane * (depth * height * width)
#define EACH_PIXEL \
  for (int p = front; p < back; p += DILATION_D) \
    for (int r = top + lane_row * DILATION_H; r < bottom; r += LANES / LANE_COLUMNS * DILATION_H) \
      for (int q = left + lane_column * DILATION_W; q < right; q += LANE_COLUMNS * DILATION_W) \
        if (IS_PIXEL)
#if defined(NO_EDGES) || defined(ADAPTIVE)
#define IS_PIXEL true
#else
#define IS_PIXEL ((uint)p < (uint)depth && (uint)r < (uint)height && (uint)q < (uint)width)
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void pool_max_forward(
    __global const float *restrict src, __global float *restrict dst, __global int *restrict indices,
    const max_forward_numbers numbers) {
  MAX_FORWARD_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(candidate, scratch);
  FIND_WINDOW;
  candidate best = {-INFINITY, -1};
  EACH_PIXEL {
    const int here = (p * height + r) * width + q;
    const candidate other = {src[here], here};
    best = better(best, other);
  }
  LANES_REDUCE(best, scratch, better);
  if (LANE > 0 || row >= count) return;
  dst[dst_offset + row] = best.value;
  indices[indices_offset + row] = best.place;
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void pool_average_forward(
    __global const float *restrict src, __global float *restrict dst, const average_forward_numbers numbers) {
  AVERAGE_FORWARD_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(float, scratch);
  FIND_WINDOW;
  float sum = 0.0f;
  EACH_PIXEL sum += src[(p * height + r) * width + q];
  LANES_REDUCE(sum, scratch, COMBINE_SUM);
  if (LANE > 0 || row >= count) return;
  dst[dst_offset + row] = sum / WINDOW_SIZE(front, back, top, bottom, left, right);
}
