// Scales for the operands of a SCALED product (scales.h). planes_measure looks at an operand in chunks; planes_settle
// makes the scales of both from what was found, and decides whether fp16 numbers serve.
//
// Scaled to less than 2^15, a value x keeps an error of 2^-40 of the scale's largest value M at most: of little
// weight in a sum as long as the mean of |x| is not much smaller than M, and as good as fp32 for each value that is
// not. What many values are much smaller than M, or few are by far, is told by the mean of (M/|x|)^(3/4) over all
// that is not 0: a row of the other operand may be large just where these are. Unlike the mean of M/|x|, that of
// random values around 0 stays where it is with their number.
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

// Values are taken to be at least 2^-44 of the largest that the item has seen.
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

// The sum over groups of `lanes` neighbouring lanes of a warp, in each of them.
static inline Found of_lanes(Found found, uint lanes) {
  for (uint mask = lanes / 2; mask > 0; mask /= 2) {
    const uint largest = lane_xor(found.largest, mask);
    add_found(&found, (float4)(as_float(largest), as_float(lane_xor(as_uint(found.powers), mask)),
                               as_float(lane_xor(as_uint(found.count), mask)),
                               as_float(lane_xor(as_uint(found.magnitudes), mask))));
  }
  return found;
}

static inline void look_at_four(Found *found, float4 four) {
  raise(found, four.x);
  raise(found, four.y);
  raise(found, four.z);
  raise(found, four.w);
  look_at(found, four.x);
  look_at(found, four.y);
  look_at(found, four.z);
  look_at(found, four.w);
}

// Element i of a slab lies at (i / columns)·row_stride + i % columns. A warp looks at a chunk. RUNS: a slab is one row,
// which may begin anywhere. VECTOR: four elements at a time, aligned.
#ifdef VECTOR
#define WIDTH 4
#else
#define WIDTH 1
#endif
#define WARP 32
__kernel __attribute__((reqd_work_group_size(MEASURE_THREADS, 1, 1))) void planes_measure(
    uint elements, uint chunk, uint chunks, uint slabs, DIVISOR(columns), __global const float *restrict source,
    ulong source_offset, ulong batch_stride, ulong slab_stride, ulong row_stride, __global float4 *restrict found,
    ulong found_offset) {
  const uint lane = (uint)get_local_id(0) % WARP, warp = (uint)get_global_id(0) / WARP;
  if (warp >= chunks) return;
  const uint slab_chunks = (elements + chunk - 1) / chunk, slab_number = warp / slab_chunks;
  const uint part = warp - slab_number * slab_chunks, batch = slab_number / slabs, slab = slab_number - batch * slabs;
  const uint end = min(elements, (part + 1) * chunk);
  source += source_offset + batch * batch_stride + slab * slab_stride;
  Found mine = {0, 0.0f, 0.0f, 0.0f};
#ifdef RUNS
  // A few numbers up to a boundary of 16 bytes, whole vectors, a few more.
  source += part * chunk;
  const uint run = end - part * chunk, beyond = (uint)((size_t)source / sizeof(float)) % 4;
  const uint first = min((4 - beyond) % 4, run), vectors = (run - first) / 4, last = first + 4 * vectors;
#pragma unroll 8
  for (uint i = lane; i < vectors; i += WARP) look_at_four(&mine, ((__global const float4 *)(source + first))[i]);
  const uint single = lane < 4 ? lane : last + lane - 4;
  if (lane < first || (lane >= 4 && single < run)) {
    raise(&mine, source[single]);
    look_at(&mine, source[single]);
  }
#else
#pragma unroll 8
  for (uint i = part * chunk + lane * WIDTH; i < end; i += WARP * WIDTH) {
    const uint row = DIVIDE(i, columns);
    __global const float *const from = source + row * row_stride + (i - row * columns);
#ifdef VECTOR
    look_at_four(&mine, *(__global const float4 *)from);
#else
    raise(&mine, *from);
    look_at(&mine, *from);
#endif
  }
#endif
  mine = of_lanes(mine, WARP);
  if (lane == 0) found[found_offset + warp] = packed(mine);
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

// Each `left_span` or `right_span` chunks share a scale. SCALE_FLAGS groups. Few chunks are one item's, more a
// warp's, many a group's.
#define SETTLE_THREADS 256
#define FEW 4
#define MANY 128
__kernel __attribute__((reqd_work_group_size(SETTLE_THREADS, 1, 1))) void planes_settle(
    uint left_scales, uint left_span, uint right_scales, uint right_span, float most_below, float most_mixed,
    __global const float4 *restrict found, ulong found_offset, __global uint *restrict flags, ulong flags_offset,
    __global float *restrict inverses, ulong inverses_offset) {
  __local uint any_mixed;
  __local float4 of_warps[SETTLE_THREADS / WARP];
  const uint t = (uint)get_local_id(0), items = SCALE_FLAGS * SETTLE_THREADS;
  found += found_offset;
  inverses += inverses_offset;
  if (t == 0) any_mixed = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  bool mixed = false;
  for (uint side = 0; side < 2; ++side) {
    const uint scales = side == 0 ? left_scales : right_scales, span = side == 0 ? left_span : right_span;
    const uint lanes = span <= FEW ? 1 : span <= MANY ? WARP : SETTLE_THREADS;
    // Other groups begin with the right operand.
    const uint item = ((uint)get_global_id(0) + side * (items / 2)) % items, lane = item % lanes;
    for (uint scale = item / lanes; scale < scales; scale += items / lanes) {
      Found all = {0, 0.0f, 0.0f, 0.0f};
#pragma unroll 8
      for (uint i = lane; i < span; i += lanes) add_found(&all, found[scale * span + i]);
      all = of_lanes(all, min(lanes, (uint)WARP));
      if (lanes > WARP) {  // the whole group is at this scale
        if (t % WARP == 0) of_warps[t / WARP] = packed(all);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t == 0) {
          for (uint i = 1; i < SETTLE_THREADS / WARP; ++i) add_found(&all, of_warps[i]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      if (lane != 0) continue;
      inverses[scale] = inverse_scale(all, most_below, most_mixed, &mixed);
    }
    found += left_scales * left_span;
    inverses += left_scales;
  }
  if (mixed) any_mixed = 1;  // the same from all
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t == 0) flags[flags_offset + get_group_id(0)] = any_mixed;
}
