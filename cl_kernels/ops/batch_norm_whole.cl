// Batch normalisation of src (images, channels, plane) over images and plane, and its gradient, in one launch: a group
// (ops/batch_norm_groups.h) sums all values of a channel and then writes them. As in batch_norm.cl for one part.
//   HELD  turns that hold all values of an item: src (and diff_dst) are read once and stay in registers
//         forward  8 bytes an element; backward 12
//   without it they are read again, after the sums in the opposite order: what the group read last is in the caches
// dst and diff_src may be src or diff_dst: all reads of other items' values are in front of a barrier, the own ones in front
// of the write.
#include "ops/batch_norm_groups.h"

#define WHOLE_FORWARD_NUMBERS(NUMBER)                                                                            \
  NUMBER(ulong, src_offset) NUMBER(ulong, scale_offset) NUMBER(ulong, shift_offset) NUMBER(ulong, dst_offset)    \
  NUMBER(ulong, means_offset) NUMBER(ulong, variances_offset) SIZES(NUMBER) NUMBER(float, epsilon)
#define WHOLE_BACKWARD_NUMBERS(NUMBER)                                                                           \
  NUMBER(ulong, src_offset) NUMBER(ulong, diff_dst_offset) NUMBER(ulong, scale_offset)                           \
  NUMBER(ulong, means_offset) NUMBER(ulong, variances_offset) NUMBER(ulong, diff_src_offset)                     \
  NUMBER(ulong, diff_scale_offset) NUMBER(ulong, diff_shift_offset) SIZES(NUMBER) NUMBER(float, epsilon)
typedef struct { WHOLE_FORWARD_NUMBERS(NUMBER_MEMBER) } whole_forward_numbers;
typedef struct { WHOLE_BACKWARD_NUMBERS(NUMBER_MEMBER) } whole_backward_numbers;

#define OWN_CHANNEL                                                                       \
  const uint item = (uint)get_local_id(0), channel = (uint)get_group_id(0), end = values; \
  const uint line = channel * plane

// The place i of value `at`; no place exceeds 2^32 − 1.
#define LOCATE_VALUE(value)                                                          \
  const uint at = value, image = (mul_hi(at, plane_multiplier) + at) >> plane_shift; \
  const uint i = line + at + image * stride

// HOLD reads all values of an operand, TURNS goes through those of the item `first`. BRING(x, …, k) takes value k of a turn
// from `held`, or reads it: in the writes from the place i, in the sums from the one that LOCATE_SUM finds.
#ifdef HELD
#define HOLD(held, operand)                                    \
  value_t held[HELD * UNROLL];                                 \
  _Pragma("unroll") for (uint k = 0; k < HELD * UNROLL; ++k) { \
    const uint e = item;                                       \
    LOCATE_VALUE(TURN_VALUE(k));                                   \
    held[k] = operand[i];                                      \
  }
#define TURNS(first) _Pragma("unroll") for (uint t = 0, e = first; t < HELD; ++t, e += UNROLL * THREADS)
#define BRING(x, held, operand, k) x[k] = held[t * UNROLL + (k)]
#define LOCATE_SUM(k)
#else
#define HOLD(held, operand)
#define TURNS(first) for (uint e = first; e < end; e += UNROLL * THREADS)
#define BRING(x, held, operand, k) x[k] = operand[i]
#define LOCATE_SUM(k) LOCATE_VALUE(end - 1 - TURN_VALUE(k))
#endif

// A zero that compilers do not know, from local memory. They compute again what depends on it, where else they would keep
// numbers that take more registers than the values: the places of the reads for the writes, and deviations for a sum in
// another unit.
#define UNKNOWN_ZERO                  \
  __local uint zero;                  \
  if (item == 0) zero = values >> 31; \
  barrier(CLK_LOCAL_MEM_FENCE)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_whole(
    __global const value_t *restrict src, __global const float *restrict scale, __global const float *restrict shift,
    __global value_t *restrict dst, __global float *restrict means, __global float *restrict variances,
    const whole_forward_numbers numbers EPILOGUE_PARAMETERS) {
  WHOLE_FORWARD_NUMBERS(NUMBER_CONSTANT)
  __local float2 scratch[THREADS + ROOT];
  __local float2 reference[3];
  OWN_CHANNEL;
  UNKNOWN_ZERO;
  src += src_offset;
  dst += dst_offset;
  HOLD(held, src)
  const float count = (float)values * WIDTH;
  float unit = 1.0f, near = 0.0f;
  float4 found;
  item_sums all;
  do {
    all = NO_SUMS;
    TURNS(item) {
      value_t x[UNROLL];
#pragma unroll
      for (uint k = 0; k < UNROLL; ++k) {
        LOCATE_SUM(k);
        BRING(x, held, src, k);
      }
      if (e == item) near = batch_norm_middle(x) + (float)zero;
      batch_norm_add(&all, x, e, end, near, unit);
    }
  } while (!batch_norm_join_items(&found, &unit, all, near, batch_norm_count(item, 0, end), count, epsilon, scratch,
                                  reference));
  const norm_factors by = batch_norm_factors(found, (float2)(0.0f, found.z), count, found.w, scale[scale_offset + channel],
                                             shift[shift_offset + channel], epsilon);
  const float mean = by.mean, factor = by.factor, added = by.added;
  if (item == 0) {
    means[means_offset + channel] = mean;
    variances[variances_offset + channel] = by.variance;
  }
  TURNS(item + zero) {
    value_t x[UNROLL];
    uint places[UNROLL];
    EPILOGUE_OPERANDS
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE_VALUE(TURN_VALUE(k));
      places[k] = i;
      BRING(x, held, src, k);
      EPILOGUE_READ(k, image, i)
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      if (INSIDE(k)) dst[places[k]] = EPILOGUE((x[k] - mean) * factor + added, k);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_whole_backward(
    __global const value_t *restrict src, __global const value_t *restrict diff_dst,
    __global const float *restrict scale, __global const float *restrict means,
    __global const float *restrict variances, __global value_t *restrict diff_src, __global float *restrict diff_scale,
    __global float *restrict diff_shift, const whole_backward_numbers numbers EPILOGUE_PARAMETERS) {
  WHOLE_BACKWARD_NUMBERS(NUMBER_CONSTANT)
  __local float4 scratch[THREADS + ROOT];
  OWN_CHANNEL;
  UNKNOWN_ZERO;
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
  HOLD(held, src)
  HOLD(held_diff, diff_dst)
  value_t near[UNROLL];
#pragma unroll
  for (uint k = 0; k < UNROLL; ++k) {
    LOCATE_VALUE(min(k, end - 1));
    near[k] = diff_dst[i];
  }
  const float base = batch_norm_base_of(near), count = (float)values * WIDTH;
  const float mean = means[means_offset + channel], variance = variances[variances_offset + channel];
  const float unit = batch_norm_unit(variance, epsilon);
  gradient_sums all = NO_GRADIENT_SUMS;
  TURNS(item) {
    value_t x[UNROLL], d[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE_SUM(k);
      BRING(d, held_diff, diff_dst, k);
      BRING(x, held, src, k);
    }
    batch_norm_add_gradient(&all, x, d, e, end, mean, unit, base);
  }
  const float4 total = batch_norm_join_gradient(all, scratch);
  const gradient_factors by =
      batch_norm_gradient_factors(total, base, count, variance, unit, scale[scale_offset + channel], epsilon);
  if (item == 0) {
    diff_scale[diff_scale_offset + channel] = by.diff_scale;
    diff_shift[diff_shift_offset + channel] = by.diff_shift;
  }
  TURNS(item + zero) {
    value_t x[UNROLL], d[UNROLL];
    uint places[UNROLL];
    EPILOGUE_OPERANDS
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE_VALUE(TURN_VALUE(k));
      places[k] = i;
      BRING(d, held_diff, diff_dst, k);
      BRING(x, held, src, k);
      EPILOGUE_READ(k, image, i)
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      const value_t diff = by.factor * ((d[k] - by.diff_mean) - (x[k] - mean) * by.slope + by.rest);
      if (INSIDE(k)) diff_src[places[k]] = EPILOGUE(diff, k);
    }
  }
}
