// Batch normalisation of src (images, channels, plane) over images and plane, and its gradient, by work-groups in two
// launches (batch_norm_whole.cl has one). The values of a channel are cut into `parts` (THREADS at most) of `part` values.
// A group (ops/batch_norm_groups.h) owns one part of one channel: sums of every part, then every group joins the sums of
// its channel's parts and writes its own part.
//   forward   reads src twice, writes dst: 12 bytes an element
//   backward  reads src and diff_dst twice, writes diff_src: 20 bytes an element
// The sums run through memory from its end, so that they begin with what was written last and leave in the cache what
// the second launch begins with.
// Parts are joined around the mean of part 0, so that a join loses no more digits than there are parts. The order of all
// sums depends on the sizes alone.
#include "ops/batch_norm_groups.h"

typedef struct { STATISTICS_NUMBERS(NUMBER_MEMBER) } statistics_numbers;
typedef struct { FORWARD_NUMBERS(NUMBER_MEMBER) } forward_numbers;
typedef struct { BACKWARD_SUMS_NUMBERS(NUMBER_MEMBER) } backward_sums_numbers;
typedef struct { BACKWARD_NUMBERS(NUMBER_MEMBER) } backward_numbers;

// What every kernel begins with: its part is [begin, end) of the channel's values.
#define PLACE(channel_number, part_number_)                                                   \
  const uint item = (uint)get_local_id(0), parts = (uint)get_num_groups(1);                   \
  const uint channel = (channel_number), part_number = (part_number_);                        \
  const uint begin = part_number * part, end = min(values, begin + part);                     \
  const ulong line = (ulong)channel * plane
#define FORWARDS PLACE((uint)get_group_id(0), (uint)get_group_id(1))
#define BACKWARDS                                                                             \
  PLACE((uint)(get_num_groups(0) - 1 - get_group_id(0)), (uint)(get_num_groups(1) - 1 - get_group_id(1)))

// The place i of value `at`.
#define LOCATE_VALUE(value)                                                          \
  const uint at = value, image = (mul_hi(at, plane_multiplier) + at) >> plane_shift; \
  const ulong i = line + at + (ulong)image * stride
#define LOCATE(k) LOCATE_VALUE(TURN_VALUE(k))
#define TURNS for (uint e = begin + item; e < end; e += UNROLL * THREADS)

// sums (channels, parts): the mean as a pair, Σ (deviation·unit)², unit.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_statistics(
    __global const value_t *restrict src, __global float4 *restrict sums, const statistics_numbers numbers) {
  STATISTICS_NUMBERS(NUMBER_CONSTANT)
  __local float2 scratch[THREADS + ROOT];
  __local float2 reference[3];
  BACKWARDS;
  src += src_offset;
  const float count = batch_norm_count(item, begin, end), whole = (float)((end - begin) * WIDTH);
  float unit = 1.0f, shift = 0.0f;
  float4 found;
  item_sums all;
  do {
    all = NO_SUMS;
    TURNS {
      value_t x[UNROLL];
#pragma unroll
      for (uint k = 0; k < UNROLL; ++k) {
        LOCATE(k);
        x[k] = src[i];
      }
      if (e == begin + item) shift = batch_norm_middle(x);
      batch_norm_add(&all, x, e, end, shift, unit);
    }
  } while (!batch_norm_join_items(&found, &unit, all, shift, count, whole, epsilon, scratch, reference));
  if (item == 0) sums[sums_offset + channel * parts + part_number] = found;
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_forward(
    __global const value_t *restrict src, __global const float4 *restrict sums, __global const float *restrict scale,
    __global const float *restrict shift, __global value_t *restrict dst, __global float *restrict means,
    __global float *restrict variances, const forward_numbers numbers EPILOGUE_PARAMETERS) {
  FORWARD_NUMBERS(NUMBER_CONSTANT)
  __local float2 scratch[THREADS + ROOT];
  FORWARDS;
  sums += sums_offset + channel * parts;
  const float count = (float)values * WIDTH;
  const float4 first = sums[0];
  float unit = first.w;
  float2 total = (float2)(0.0f, first.z);
  if (parts > 1) {
    const uint p = min(item, parts - 1);
    const float4 other = sums[p];
    const float weight = (float)min(part, values - p * part) * WIDTH;
    total = batch_norm_joined_part(other, first, weight, 1.0f);
    if (other.w != 1.0f) total = (float2)(NAN);  // not summed in this unit
    if (item >= parts) total = (float2)(0.0f);
    unit = 1.0f;
    total = batch_norm_sum(total, scratch);
    if (total.y != total.y) {
      unit = first.w;
      for (uint q = 1; q < parts; ++q) unit = fmin(unit, sums[q].w);
      total = batch_norm_joined_part(other, first, weight, unit);
      if (item >= parts) total = (float2)(0.0f);
      total = batch_norm_sum(total, scratch);
    }
  }
  const norm_factors by = batch_norm_factors(first, total, count, unit, scale[scale_offset + channel],
                                             shift[shift_offset + channel], epsilon);
  const float mean = by.mean, factor = by.factor, added = by.added;
  if (part_number == 0 && item == 0) {
    means[means_offset + channel] = mean;
    variances[variances_offset + channel] = by.variance;
  }
  src += src_offset;
  dst += dst_offset;
  TURNS {
    value_t x[UNROLL];
    ulong places[UNROLL];
    EPILOGUE_OPERANDS
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      places[k] = i;
      x[k] = src[i];
      EPILOGUE_READ(k, image, i)
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      if (INSIDE(k)) dst[places[k]] = EPILOGUE((x[k] - mean) * factor + added, k);
    }
  }
}

// sums (channels, parts, 2): as batch_norm_rebased takes them, then the base.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward_sums(
    __global const value_t *restrict src, __global const value_t *restrict diff_dst,
    __global const float *restrict means, __global const float *restrict variances, __global float4 *restrict sums,
    const backward_sums_numbers numbers) {
  BACKWARD_SUMS_NUMBERS(NUMBER_CONSTANT)
  __local float4 scratch[THREADS + ROOT];
  BACKWARDS;
  src += src_offset;
  diff_dst += diff_dst_offset;
  const float mean = means[means_offset + channel];
  const float unit = batch_norm_unit(variances[variances_offset + channel], epsilon);
  value_t near[UNROLL];
#pragma unroll
  for (uint k = 0; k < UNROLL; ++k) {
    LOCATE_VALUE(min(begin + k, end - 1));
    near[k] = diff_dst[i];
  }
  const float base = batch_norm_base_of(near);
  gradient_sums all = NO_GRADIENT_SUMS;
  TURNS {
    value_t x[UNROLL], d[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      d[k] = diff_dst[i];
      x[k] = src[i];
    }
    batch_norm_add_gradient(&all, x, d, e, end, mean, unit, base);
  }
  const float4 total = batch_norm_join_gradient(all, scratch);
  if (item == 0) {
    sums += sums_offset + (channel * parts + part_number) * 2;
    sums[0] = total;
    sums[1] = (float4)(base, 0.0f, 0.0f, 0.0f);
  }
}

// With x̂ = (src − mean)·r, r = 1/√(variance + ε): diff_shift = Σ diff_dst, diff_scale = Σ diff_dst·x̂,
// diff_src = scale·r·(diff_dst − diff_shift/count − x̂·diff_scale/count).
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward(
    __global const value_t *restrict src, __global const value_t *restrict diff_dst,
    __global const float *restrict scale, __global const float *restrict means,
    __global const float *restrict variances, __global const float4 *restrict sums, __global value_t *restrict diff_src,
    __global float *restrict diff_scale, __global float *restrict diff_shift,
    const backward_numbers numbers EPILOGUE_PARAMETERS) {
  BACKWARD_NUMBERS(NUMBER_CONSTANT)
  __local float4 scratch[THREADS + ROOT];
  FORWARDS;
  sums += sums_offset + channel * parts * 2;
  float4 total = sums[0];
  const float base = sums[1].x;
  if (parts > 1) {
    const uint p = min(item, parts - 1);
    total = batch_norm_rebased(sums[2 * p], (float)min(part, values - p * part) * WIDTH, sums[2 * p + 1].x - base);
    if (item >= parts) total = (float4)(0.0f);
    total = batch_norm_sum4(total, scratch);
  }
  const float mean = means[means_offset + channel], count = (float)values * WIDTH;
  const float variance = variances[variances_offset + channel];
  const gradient_factors by = batch_norm_gradient_factors(total, base, count, variance, batch_norm_unit(variance, epsilon),
                                                          scale[scale_offset + channel], epsilon);
  if (part_number == 0 && item == 0) {
    diff_scale[diff_scale_offset + channel] = by.diff_scale;
    diff_shift[diff_shift_offset + channel] = by.diff_shift;
  }
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
  TURNS {
    value_t x[UNROLL], d[UNROLL];
    ulong places[UNROLL];
    EPILOGUE_OPERANDS
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      places[k] = i;
      d[k] = diff_dst[i];
      x[k] = src[i];
      EPILOGUE_READ(k, image, i)
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      const value_t diff = by.factor * ((d[k] - by.diff_mean) - (x[k] - mean) * by.slope + by.rest);
      if (INSIDE(k)) diff_src[places[k]] = EPILOGUE(diff, k);
    }
  }
}
