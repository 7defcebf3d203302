// Scales for the operands of a SCALED product (scales.h). planes_measure looks at an operand in chunks; planes_settle makes
// the scales of both from what was found, and decides whether fp16 numbers serve.
//
// Scaled to less than 2^15, a value x keeps an error of 2^-40 of the scale's largest value M at most: of little weight in
// a sum as long as the mean of |x| is not much smaller than M, and as good as fp32 for each value that is not. What many
// values are much smaller than M, or few are by far, is told by the mean of (M/|x|)^(3/4) over all that is not 0: a row of
// the other operand may be large just where these are. Unlike the mean of M/|x|, that of random values around 0 stays
// where it is with their number.
#include "nvidia/ptx.h"
#include "nvidia/scales.h"

#define MEASURE_THREADS 256
#define LARGEST_EXPONENT 14  // of scaled values
#define FARTHEST_EXPONENT 90  // of M either way: scales, their inverses and products of these stay normal numbers
#define DIVISOR(name) uint name, uint name##_magic, uint name##_shift
#define DIVIDE(i, name) ((mul_hi((uint)(i), name##_magic) + (uint)(i)) >> name##_shift)

typedef struct {
  uint largest;      // bits of the largest magnitude; of a NaN more than those of an infinity
  float powers;      // the sum of |x|^(-3/4) where x is not 0
  float count;       // of these
  float magnitudes;  // the sum of |x|
} Found;

// Within 7 % of |x|^(-3/4): the bits of a float are nearly its logarithm.
static inline float power_of(uint bits) { return as_float(0x6f200000u - (bits - (bits >> 2))); }

// What lies 2^-44 below all seen so far counts as if it did not lie further.
#define FARTHEST_BITS (44u << 23)
static inline void look_at(Found *found, float x) {
  const uint bits = as_uint(x) & 0x7fffffffu;
  const uint least = found->largest > FARTHEST_BITS ? found->largest - FARTHEST_BITS : 0;
  found->powers += bits != 0 ? power_of(max(bits, least)) : 0.0f;
  found->count += bits != 0 ? 1.0f : 0.0f;
  found->magnitudes += as_float(bits);
}
static inline void raise(Found *found, float x) { found->largest = max(found->largest, as_uint(x) & 0x7fffffffu); }

static inline void add_found(Found *to, float4 from) {
  to->largest = max(to->largest, as_uint(from.x));
  to->powers += from.y;
  to->count += from.z;
  to->magnitudes += from.w;
}
static inline float4 packed(Found found) {
  return (float4)(as_float(found.largest), found.powers, found.count, found.magnitudes);
}

// Element i of a slab lies at (i / columns)·row_stride + i % columns. VECTOR: four at a time, aligned.
#ifdef VECTOR
#define WIDTH 4
#else
#define WIDTH 1
#endif
__kernel __attribute__((reqd_work_group_size(MEASURE_THREADS, 1, 1))) void planes_measure(
    uint elements, uint chunk, DIVISOR(columns), __global const float *restrict source, ulong source_offset,
    ulong batch_stride, ulong slab_stride, ulong row_stride, __global float4 *restrict found, ulong found_offset) {
  __local float4 partial[MEASURE_THREADS];
  const uint t = (uint)get_local_id(0), part = (uint)get_group_id(0), slab = (uint)get_group_id(1);
  const uint batch = (uint)get_group_id(2), end = min(elements, (part + 1) * chunk);
  source += source_offset + batch * batch_stride + slab * slab_stride;
  Found mine = {0, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
  for (uint i = part * chunk + t * WIDTH; i < end; i += MEASURE_THREADS * WIDTH) {
    const uint row = DIVIDE(i, columns);
    __global const float *const from = source + row * row_stride + (i - row * columns);
#ifdef VECTOR
    const float4 four = *(__global const float4 *)from;
    raise(&mine, four.x);
    raise(&mine, four.y);
    raise(&mine, four.z);
    raise(&mine, four.w);
    look_at(&mine, four.x);
    look_at(&mine, four.y);
    look_at(&mine, four.z);
    look_at(&mine, four.w);
#else
    raise(&mine, *from);
    look_at(&mine, *from);
#endif
  }
  partial[t] = packed(mine);
  for (uint half_width = MEASURE_THREADS / 2; half_width > 0; half_width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t >= half_width) continue;
    add_found(&mine, partial[t + half_width]);
    partial[t] = packed(mine);
  }
  if (t == 0) found[found_offset + (batch * get_num_groups(1) + slab) * get_num_groups(0) + part] = partial[0];
}

// The inverse scale of what was found, and whether its values are too mixed: their mean is less than M / most_below, or
// that of (M/|x|)^(3/4) more than most_mixed.
static inline float inverse_scale(Found found, float most_below, float most_mixed, bool *mixed) {
  if (found.largest == 0) return 1.0f;
  const int exponent = (int)(found.largest >> 23) - 127;
  const bool serves = abs(exponent) <= FARTHEST_EXPONENT &&
                      as_float(found.largest) * found.count <= most_below * found.magnitudes &&
                      found.powers <= most_mixed * found.count * power_of(found.largest);
  if (!serves) *mixed = true;
  return serves ? as_float((uint)(exponent - LARGEST_EXPONENT + 127) << 23) : 1.0f;
}

// Each `left_span` or `right_span` chunks share a scale. SCALE_FLAGS groups. Few chunks are one item's, many are a warp's.
#define SETTLE_THREADS 256
#define WARP 32
#define FEW 4
__kernel __attribute__((reqd_work_group_size(SETTLE_THREADS, 1, 1))) void planes_settle(
    uint left_scales, uint left_span, uint right_scales, uint right_span, float most_below, float most_mixed,
    __global const float4 *restrict found, ulong found_offset, __global uint *restrict flags, ulong flags_offset,
    __global float *restrict inverses, ulong inverses_offset) {
  __local uint any_mixed;
  const uint t = (uint)get_local_id(0), item = (uint)get_global_id(0), items = SCALE_FLAGS * SETTLE_THREADS;
  found += found_offset;
  inverses += inverses_offset;
  if (t == 0) any_mixed = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  bool mixed = false;
  for (uint side = 0; side < 2; ++side) {
    const uint scales = side == 0 ? left_scales : right_scales, span = side == 0 ? left_span : right_span;
    const uint lanes = span <= FEW ? 1 : WARP, lane = item % lanes;
    for (uint scale = item / lanes; scale < scales; scale += items / lanes) {
      Found all = {0, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
      for (uint i = lane; i < span; i += lanes) add_found(&all, found[scale * span + i]);
      for (uint mask = lanes / 2; mask > 0; mask /= 2) {
        const uint largest = lane_xor(all.largest, mask);
        add_found(&all, (float4)(as_float(largest), as_float(lane_xor(as_uint(all.powers), mask)),
                                 as_float(lane_xor(as_uint(all.count), mask)),
                                 as_float(lane_xor(as_uint(all.magnitudes), mask))));
      }
      const float inverse = inverse_scale(all, most_below, most_mixed, &mixed);
      if (lane == 0) inverses[scale] = inverse;
    }
    found += left_scales * left_span;
    inverses += left_scales;
  }
  if (mixed) any_mixed = 1;  // the same from all
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t == 0) flags[flags_offset + get_group_id(0)] = any_mixed;
}
