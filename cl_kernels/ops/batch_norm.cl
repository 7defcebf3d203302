// Batch normalisation of src (images, channels, plane) over images and plane, and its gradient, by work-groups. The
// values of a channel are cut into `parts` (THREADS at most) of `part` values, planes one behind the other; a group of
// THREADS items owns one part of one channel. Two launches each way: sums of every part, then every group joins the
// sums of its channel's parts and writes its own part.
//   forward   reads src twice, writes dst: 12 bytes an element
//   backward  reads src and diff_dst twice, writes diff_src: 20 bytes an element
// An item owns every THREADS-th value_t and has UNROLL reads of each operand in flight. value_t is WIDTH neighbouring
// values of a plane (4 where that divides the plane's size, else 1); sizes, places and operands' offsets count value_t,
// but for the values by channel.
// The sums run through memory from its end, so that they begin with what was written last and leave in the cache what
// the second launch begins with.
// The squares stay exact for large means: an item sums around a mean of its first values, items are joined around the
// mean of one of them, parts around that of part 0, so that a join loses no more digits than there are items or parts.
// Squares that leave fp32 are summed again with another unit (ops/batch_norm.h). The order of all sums depends on the sizes
// alone.
// With EPILOGUE_PARAMETERS the text in front (opencl/ops/batch_norm.cpp) gives an expression that dst, or diff_src, passes through.
#include "ops/batch_norm.h"
#include "shared/chains.h"

#if WIDTH == 4
#define UNROLL 4
typedef float4 value_t;
#define TOTAL(value) (((value).x + (value).y) + ((value).z + (value).w))
#else
#define UNROLL 8
typedef float value_t;
#define TOTAL(value) (value)
#endif
#define ZERO ((value_t)(0.0f))

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#define EPILOGUE_OPERANDS
#define EPILOGUE_READ(k, image, i)
#define EPILOGUE(value, k) (value)
#endif

// values = images·plane; stride = (channels − 1)·plane.
#define SIZES(NUMBER)                                                                               \
  NUMBER(uint, values) NUMBER(uint, plane) NUMBER(uint, plane_multiplier) NUMBER(uint, plane_shift) \
  NUMBER(uint, stride) NUMBER(uint, part)
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

// Walks through the item's values by UNROLL. INSIDE(k) tells whether value k of the turn is in the part: reads are
// made in any case, of the part's last value where it is not, since a read under a condition waits for the one before.
#define TURNS for (uint e = begin + item; e < end; e += UNROLL * THREADS)
#define INSIDE(k) (e + (k) * THREADS < end)
#define LOCATE(k)                                                              \
  const uint at = min(e + (k) * THREADS, end - 1);                             \
  const uint image = (mul_hi(at, plane_multiplier) + at) >> plane_shift;       \
  const ulong i = line + at + (ulong)image * stride

// How many values (floats) `other` of the group's items has.
static inline float batch_norm_count(uint other, uint begin, uint end) {
  return begin + other < end ? (float)(((end - begin - other + THREADS - 1) / THREADS) * WIDTH) : 0.0f;
}

// The sum over the items of the group, for all of them. In two steps of few barriers; scratch has room for
// THREADS + ROOT.
#define ROOT 16
#define BATCH_NORM_SUM(name, type)                                                                                  \
  static inline __attribute__((always_inline)) type name(type value, __local type *scratch) {                      \
    const uint item = (uint)get_local_id(0);                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
    scratch[item] = value;                                                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
    if (item < ROOT) {                                                                                              \
      type sum = scratch[item];                                                                                     \
      _Pragma("unroll") for (uint k = 1; k < THREADS / ROOT; ++k) sum += scratch[item + k * ROOT];                  \
      scratch[THREADS + item] = sum;                                                                                \
    }                                                                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
    type total = scratch[THREADS];                                                                                  \
    _Pragma("unroll") for (uint k = 1; k < ROOT; ++k) total += scratch[THREADS + k];                                \
    return total;                                                                                                   \
  }
BATCH_NORM_SUM(batch_norm_sum, float2)
BATCH_NORM_SUM(batch_norm_sum4, float4)

// The mean of a turn's values without the least and the largest, so that no single value is far from most others.
static inline __attribute__((always_inline)) float batch_norm_middle(const value_t *x) {
  const float share = 1.0f / (UNROLL - 2);
  value_t sum = x[0] * share, least = x[0], largest = x[0];
#pragma unroll
  for (uint k = 1; k < UNROLL; ++k) {
    sum += x[k] * share;
    least = fmin(least, x[k]);
    largest = fmax(largest, x[k]);
  }
  const value_t middle = sum - least * share - largest * share;
#if WIDTH == 4
  const float low = fmin(fmin(middle.x, middle.y), fmin(middle.z, middle.w));
  const float high = fmax(fmax(middle.x, middle.y), fmax(middle.z, middle.w));
  return TOTAL(middle * 0.5f) - low * 0.5f - high * 0.5f;
#else
  return middle;
#endif
}

// The one of three pairs between the others.
static inline float2 batch_norm_median(float2 a, float2 b, float2 c) {
  const float2 low = a.x < b.x ? a : b, high = a.x < b.x ? b : a;
  return c.x < low.x ? low : c.x > high.x ? high : c;
}

// sums (channels, parts): the mean as a pair, Σ (deviation·unit)², unit.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_statistics(
    __global const value_t *restrict src, __global float4 *restrict sums, const statistics_numbers numbers) {
  STATISTICS_NUMBERS(NUMBER_CONSTANT)
  __local float2 scratch[THREADS + ROOT];
  __local float2 reference[3];
  BACKWARDS;
  src += src_offset;
  const float count = batch_norm_count(item, begin, end), whole = (float)((end - begin) * WIDTH);
  float unit = 1.0f;
  for (;;) {
    float shift = 0.0f;
    value_t sum = ZERO, squares = ZERO, sum_low = ZERO, squares_low = ZERO;
    TURNS {
      value_t x[UNROLL];
#pragma unroll
      for (uint k = 0; k < UNROLL; ++k) {
        LOCATE(k);
        x[k] = src[i];
      }
      if (e == begin + item) shift = batch_norm_middle(x);
      value_t turn = ZERO, turn_squares = ZERO;
#pragma unroll
      for (uint k = 0; k < UNROLL; ++k) {
        const value_t centred = INSIDE(k) ? (x[k] - shift) * unit : ZERO;
        turn += centred;
        turn_squares += centred * centred;
      }
      ADD_EXACTLY(value_t, sum, sum_low, turn);
      ADD_EXACTLY(value_t, squares, squares_low, turn_squares);
    }
    const float all = TOTAL(sum) + TOTAL(sum_low), rest = count > 0.0f ? all / count : 0.0f;
    const float own = (TOTAL(squares) + TOTAL(squares_low)) - rest * all;
    const float2 mean = batch_norm_pair(shift, rest / unit);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < 3) reference[item] = mean;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float2 base = batch_norm_median(reference[0], reference[1], reference[2]);
    const float difference = ((mean.x - base.x) + (mean.y - base.y)) * unit;
    const float away = count > 0.0f ? difference : 0.0f;
    const float2 total =
        batch_norm_sum((float2)(count * away, (own < 0.0f ? 0.0f : own) + count * away * away), scratch);
    const float offset = total.x / whole, centred = total.y - offset * total.x;
    const float kept = centred < 0.0f ? 0.0f : centred;  // NaN stays
    const float next = unit == 1.0f ? batch_norm_unit(kept / whole, epsilon) : 1.0f;
    if (next == 1.0f) {
      const float2 pair = batch_norm_pair(base.x, base.y + offset / unit);
      if (item == 0) sums[sums_offset + channel * parts + part_number] = (float4)(pair.x, pair.y, kept, unit);
      return;
    }
    unit = next;
  }
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
  float near = 0.0f, least = INFINITY, largest = -INFINITY;  // of a few values of the part
#pragma unroll
  for (uint k = 0; k < UNROLL; ++k) {
    const uint at = min(begin + k, end - 1);
    const uint image = (mul_hi(at, plane_multiplier) + at) >> plane_shift;
    const value_t d = diff_dst[line + at + (ulong)image * stride];
    near += TOTAL(d * (1.0f / (UNROLL * WIDTH)));
#if WIDTH == 4
    least = fmin(least, fmin(fmin(d.x, d.y), fmin(d.z, d.w)));
    largest = fmax(largest, fmax(fmax(d.x, d.y), fmax(d.z, d.w)));
#else
    least = fmin(least, d);
    largest = fmax(largest, d);
#endif
  }
  const float base = batch_norm_base(near, least, largest);
  value_t sum = ZERO, product = ZERO, centred = ZERO, squares = ZERO;
  TURNS {
    value_t x[UNROLL], d[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      d[k] = diff_dst[i];
      x[k] = src[i];
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      const value_t dk = INSIDE(k) ? d[k] - base : ZERO, xk = INSIDE(k) ? (x[k] - mean) * unit : ZERO;
      sum += dk;
      product += dk * xk;
      centred += xk;
      squares += xk * xk;
    }
  }
  const float4 total =
      batch_norm_sum4((float4)(TOTAL(sum), TOTAL(product), TOTAL(centred), TOTAL(squares)), scratch);
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
