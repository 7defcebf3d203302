// Reductions of src (outer, length, inner) to dst (outer, parts, inner): part p covers [p·part, (p+1)·part) of `length`.
// KIND is SUM, MAXIMUM or MINIMUM. Every element is read once (4 bytes, 1 FLOP); the order is fixed.
// An item reduces UNROLL values as a tree and joins them to what it has; sums keep the roundings of that.
//   reduce_lanes   GPUs: LANES items a row (lanes.h), part / LANES values each.
//   reduce_rows    CPUs, inner = 1: an item owns one row, WIDTH values side by side.
//   reduce_columns CPUs, inner > 1: an item owns WIDTH neighbouring rows.
//   reduce_argmax  over all of `length`: the first largest value's place; the first NaN wins.
#include "chains.h"
#include "lanes.h"

#define CONCAT_(x, y) x##y
#define CONCAT(x, y) CONCAT_(x, y)
#define COMBINE CONCAT(COMBINE_, KIND)
#define NEUTRAL_SUM 0.0f
#define NEUTRAL_MAXIMUM -INFINITY
#define NEUTRAL_MINIMUM INFINITY
#define NEUTRAL CONCAT(NEUTRAL_, KIND)
#define WIDTH 16
#define UNROLL 8  // reads in flight, a power of two

// Joins what a tree has reduced to `value`. Sums keep the roundings of this in `low`, which is nothing to add where the
// sum is infinite.
#define JOIN_SUM(type, value, low, tree) ADD_EXACTLY(type, value, low, tree)
#define JOIN_MAXIMUM(type, value, low, tree) value = COMBINE_MAXIMUM(value, tree)
#define JOIN_MINIMUM(type, value, low, tree) value = COMBINE_MINIMUM(value, tree)
#define JOIN CONCAT(JOIN_, KIND)
#define WITH_LOW(value, low) ((low) == (low) ? (value) + (low) : (value))

// Reduces what LOAD(k) reads, k < UNROLL, as a tree, and joins it to `value`: few roundings, and none of equal terms.
#define JOIN_TREE(type, value, low, LOAD)                                             \
  do {                                                                                \
    type tree_[UNROLL];                                                               \
    _Pragma("unroll") for (uint k_ = 0; k_ < UNROLL; ++k_) tree_[k_] = LOAD(k_);      \
    _Pragma("unroll") for (uint step_ = UNROLL / 2; step_ > 0; step_ /= 2) {          \
      _Pragma("unroll") for (uint k_ = 0; k_ < step_; ++k_)                           \
        tree_[k_] = COMBINE(tree_[k_], tree_[k_ + step_]);                            \
    }                                                                                 \
    JOIN(type, value, low, tree_[0]);                                                 \
  } while (0)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void reduce_lanes(
    __global const float *restrict src, ulong src_offset, __global float *restrict dst, ulong dst_offset, ulong outputs,
    ulong length, ulong part, ulong parts, ulong inner) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, output = min(row, outputs - 1);
  const ulong outer_part = output / inner, outer = outer_part / parts, begin = (outer_part - outer * parts) * part;
  const ulong end = min(length, begin + part);
  src += src_offset + outer * length * inner + (output - outer_part * inner);
#define LOAD(k) src[(i + (k) * LANES) * inner]
  float value = NEUTRAL, low = 0.0f;
  ulong i = begin + LANE;
  for (; i + (UNROLL - 1) * LANES < end; i += UNROLL * LANES) JOIN_TREE(float, value, low, LOAD);
  for (; i < end; i += LANES) JOIN(float, value, low, LOAD(0));
#undef LOAD
  value = WITH_LOW(value, low);
  LANES_REDUCE(value, scratch, COMBINE);
  if (LANE == 0 && row < outputs) dst[dst_offset + row] = value;
}

__kernel void reduce_rows(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                          ulong dst_offset, ulong length, ulong part, ulong parts) {
  const ulong row = get_global_id(0), outer = row / parts, begin = (row - outer * parts) * part;
  const ulong count = min(length, begin + part) - begin;
  src += src_offset + outer * length + begin;
  float value = NEUTRAL, low = 0.0f;
  ulong i = 0;
  if (count >= WIDTH) {
#define LOAD(k) vload16(0, src + i + (k) * WIDTH)
    float16 values = (float16)(NEUTRAL), lows = (float16)(0.0f);
    for (; i + UNROLL * WIDTH <= count; i += UNROLL * WIDTH) JOIN_TREE(float16, values, lows, LOAD);
    for (; i + WIDTH <= count; i += WIDTH) JOIN(float16, values, lows, LOAD(0));
#undef LOAD
    JOIN_CHAINS(value, values, COMBINE);
    JOIN_CHAINS(low, lows, COMBINE_SUM);
  }
  for (; i < count; ++i) JOIN(float, value, low, src[i]);
  dst[dst_offset + row] = WITH_LOW(value, low);
}

__kernel void reduce_columns(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                             ulong dst_offset, ulong length, ulong part, ulong parts, ulong inner) {
  const ulong column = get_global_id(0) * WIDTH, outer_part = get_global_id(1);
  const ulong outer = outer_part / parts, begin = (outer_part - outer * parts) * part, end = min(length, begin + part);
  src += src_offset + outer * length * inner + column;
  dst += dst_offset + outer_part * inner + column;
  if (column + WIDTH <= inner) {
#define LOAD(k) vload16(0, src + (i + (k)) * inner)
    float16 value = (float16)(NEUTRAL), low = (float16)(0.0f);
    ulong i = begin;
    for (; i + UNROLL <= end; i += UNROLL) JOIN_TREE(float16, value, low, LOAD);
    for (; i < end; ++i) JOIN(float16, value, low, LOAD(0));
#undef LOAD
    vstore16(WITH_LOW(value, low), 0, dst);
  } else {
#define LOAD(k) src[(i + (k)) * inner + j]
    for (ulong j = 0; column + j < inner; ++j) {
      float value = NEUTRAL, low = 0.0f;
      ulong i = begin;
      for (; i + UNROLL <= end; i += UNROLL) JOIN_TREE(float, value, low, LOAD);
      for (; i < end; ++i) JOIN(float, value, low, LOAD(0));
      dst[j] = WITH_LOW(value, low);
    }
#undef LOAD
  }
}

typedef struct {
  float value;
  int place;  // -1: none yet
} candidate;

static inline candidate better(candidate a, candidate b) {
  const int a_nan = a.value != a.value, b_nan = b.value != b.value;
  const int tie = a.value == b.value || (a_nan && b_nan);
  const int b_wins = b.place >= 0 && (a.place < 0 || (tie ? b.place < a.place : b_nan || (!a_nan && b.value > a.value)));
  return b_wins ? b : a;
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void reduce_argmax(
    __global const float *restrict src, ulong src_offset, __global int *restrict dst, ulong dst_offset, ulong outputs,
    ulong length, ulong inner) {
  LANES_SCRATCH(candidate, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, output = min(row, outputs - 1), outer = output / inner;
  src += src_offset + outer * length * inner + (output - outer * inner);
  candidate best = {0.0f, -1};
  for (ulong i = LANE; i < length; i += LANES) {
    const candidate next = {src[i * inner], (int)i};
    best = better(best, next);
  }
  LANES_REDUCE(best, scratch, better);
  if (LANE == 0 && row < outputs) dst[dst_offset + row] = best.place;
}
