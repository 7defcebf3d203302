// What batch_norm.cl and batch_norm_whole.cl share: a group of THREADS items (a multiple of 32) that sums values of one
// channel of src (images, channels, plane), planes one behind the other.
// An item owns every THREADS-th value_t and has UNROLL reads of each operand in flight. value_t is WIDTH neighbouring
// values of a plane (4 where that divides the plane's size, else 1); sizes, places and operands' offsets count value_t,
// but for the values by channel.
// The squares stay exact for large means: an item sums around a mean of its first values, items are joined around the
// mean of one of them, so that a join loses no more digits than there are items. Squares that leave fp32 are summed again
// with another unit (ops/batch_norm.h).
// With EPILOGUE_PARAMETERS the text in front (opencl/ops/batch_norm.cpp) gives an expression that dst, or diff_src, passes
// through.
#ifndef CONCORD_BATCH_NORM_GROUPS_H
#define CONCORD_BATCH_NORM_GROUPS_H

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

// Of the turn that begins with the item's value e: whether value k is one of the group's values, which end at `end`, and which
// value is read for it. Reads are made in any case, of the last value where there is none, since a read under a condition
// waits for the one before.
#define INSIDE(k) (e + (k) * THREADS < end)
#define TURN_VALUE(k) min(e + (k) * THREADS, end - 1)

// How many values (floats) `other` of the group's items has.
static inline float batch_norm_count(uint other, uint begin, uint end) {
  return begin + other < end ? (float)(((end - begin - other + THREADS - 1) / THREADS) * WIDTH) : 0.0f;
}

// The sum over the items of the group, for all of them. In two steps of few barriers; scratch has room for
// THREADS + ROOT.
#if THREADS < 512
#define ROOT 16
#else
#define ROOT 32
#endif
#define BATCH_NORM_SUM(name, type)                                                                                  \
  static inline __attribute__((always_inline)) type name(type value, __local type *scratch) {                      \
    const uint item = (uint)get_local_id(0);                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
    scratch[item] = value;                                                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
    if (item < ROOT) {                                                                                              \
      type sum = scratch[item];                                                                                     \
      _Pragma("unroll 8") for (uint k = 1; k < THREADS / ROOT; ++k) sum += scratch[item + k * ROOT];                  \
      scratch[THREADS + item] = sum;                                                                                \
    }                                                                                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
    type total = scratch[THREADS];                                                                                  \
    _Pragma("unroll 8") for (uint k = 1; k < ROOT; ++k) total += scratch[THREADS + k];                                \
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

// Sums of an item: of the values' deviations from a number, times a unit, and of their squares, each with its rounding.
typedef struct {
  value_t sum, sum_low, squares, squares_low;
} item_sums;
#define NO_SUMS ((item_sums){ZERO, ZERO, ZERO, ZERO})

// Adds the values x of a turn.
static inline __attribute__((always_inline)) void batch_norm_add(item_sums *sums, const value_t *x, uint e, uint end,
                                                                 float shift, float unit) {
  value_t turn = ZERO, turn_squares = ZERO;
#pragma unroll
  for (uint k = 0; k < UNROLL; ++k) {
    const value_t centred = INSIDE(k) ? (x[k] - shift) * unit : ZERO;
    turn += centred;
    turn_squares += centred * centred;
  }
  ADD_EXACTLY(value_t, sums->sum, sums->sum_low, turn);
  ADD_EXACTLY(value_t, sums->squares, sums->squares_low, turn_squares);
}

// Joins the sums of the items, each of `count` values around `shift`, to statistics of all `whole` values: the mean as a
// pair, Σ (deviation·unit)², unit. With false they have to be summed again, in the unit that `unit` now is.
static inline __attribute__((always_inline)) bool batch_norm_join_items(float4 *statistics, float *unit, item_sums sums,
                                                                        float shift, float count, float whole,
                                                                        float epsilon, __local float2 *scratch,
                                                                        __local float2 *reference) {
  const uint item = (uint)get_local_id(0);
  const float all = TOTAL(sums.sum) + TOTAL(sums.sum_low), rest = count > 0.0f ? all / count : 0.0f;
  const float own = (TOTAL(sums.squares) + TOTAL(sums.squares_low)) - rest * all;
  const float2 mean = batch_norm_pair(shift, rest / *unit);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < 3) reference[item] = mean;
  barrier(CLK_LOCAL_MEM_FENCE);
  const float2 base = batch_norm_median(reference[0], reference[1], reference[2]);
  const float difference = ((mean.x - base.x) + (mean.y - base.y)) * *unit;
  const float away = count > 0.0f ? difference : 0.0f;
  const float2 total =
      batch_norm_sum((float2)(count * away, (own < 0.0f ? 0.0f : own) + count * away * away), scratch);
  const float offset = total.x / whole, centred = total.y - offset * total.x;
  const float kept = centred < 0.0f ? 0.0f : centred;  // NaN stays
  const float next = *unit == 1.0f ? batch_norm_unit(kept / whole, epsilon) : 1.0f;
  if (next == 1.0f) {
    const float2 pair = batch_norm_pair(base.x, base.y + offset / *unit);
    *statistics = (float4)(pair.x, pair.y, kept, *unit);
    return true;
  }
  *unit = next;
  return false;
}

// The number that sums of diff_dst are taken around, by the values x of one turn.
static inline __attribute__((always_inline)) float batch_norm_base_of(const value_t *x) {
  float near = 0.0f, least = INFINITY, largest = -INFINITY;
#pragma unroll
  for (uint k = 0; k < UNROLL; ++k) {
    near += TOTAL(x[k] * (1.0f / (UNROLL * WIDTH)));
#if WIDTH == 4
    least = fmin(least, fmin(fmin(x[k].x, x[k].y), fmin(x[k].z, x[k].w)));
    largest = fmax(largest, fmax(fmax(x[k].x, x[k].y), fmax(x[k].z, x[k].w)));
#else
    least = fmin(least, x[k]);
    largest = fmax(largest, x[k]);
#endif
  }
  return batch_norm_base(near, least, largest);
}

// Sums of an item for the gradient, with x = (src − mean)·unit and d = diff_dst − base: Σ d, Σ d·x, Σ x, Σ x².
typedef struct {
  value_t sum, product, centred, squares;
} gradient_sums;
#define NO_GRADIENT_SUMS ((gradient_sums){ZERO, ZERO, ZERO, ZERO})

// Adds the values of a turn.
static inline __attribute__((always_inline)) void batch_norm_add_gradient(gradient_sums *sums, const value_t *x,
                                                                          const value_t *d, uint e, uint end, float mean,
                                                                          float unit, float base) {
#pragma unroll
  for (uint k = 0; k < UNROLL; ++k) {
    const value_t dk = INSIDE(k) ? d[k] - base : ZERO, xk = INSIDE(k) ? (x[k] - mean) * unit : ZERO;
    sums->sum += dk;
    sums->product += dk * xk;
    sums->centred += xk;
    sums->squares += xk * xk;
  }
}

// The sums of the group, for all of its items.
static inline __attribute__((always_inline)) float4 batch_norm_join_gradient(gradient_sums sums, __local float4 *scratch) {
  return batch_norm_sum4(
      (float4)(TOTAL(sums.sum), TOTAL(sums.product), TOTAL(sums.centred), TOTAL(sums.squares)), scratch);
}

#endif
