// Scales for the operands of a SCALED product (gemm/hopper/scales.h). planes_measure looks at an operand in chunks; planes_settle
// makes the scales of both from what was found, and their mixture, which tells whether fp16 numbers serve.
//
// Scaled to less than 2^15, a value x keeps an error of 2^-40 of the scale's largest value M at most: of little
// weight in a sum as long as the mean of |x| is not much smaller than M, and as good as fp32 for each value that is
// not. What many values are much smaller than M, or few are by far, is told by the mean of (M/|x|)^(3/4) over all
// that is not 0: a row of the other operand may be large just where these are. Unlike the mean of M/|x|, that of
// random values around 0 stays where it is with their number.
//
// Among millions of random values some are tiny all the same. A LINE of k with a scale of its own that is no even one
// is therefore looked at again. Values of M·2^-SOLID or more are solid, those whose error is more than fp32's are tiny.
// Let its line have K values, of these s solid and t tiny, and a line of the other operand, of largest value N, s'
// solid ones. At s + s' - K places at least both are solid, so the sum of |x·y| is at least (s + s' - K)·M·N·2^-16, and
// the tiny values' errors are t·N·M·2^-40 at most: no more than that sum's error in fp32 where s' >= t + K - s.
#include "shared/nvidia/ptx.h"
#include "gemm/hopper/scales.h"

#define MEASURE_THREADS 256
#define LARGEST_EXPONENT 14  // of scaled values
#define FARTHEST_EXPONENT 90  // of M either way: scales, their inverses and products of these stay normal numbers
#define SOLID 8
#define UNBOUNDED 0x7f800000u  // solid numbers: an infinity
#define UNSERVED 0xffffffffu   // wanted ones: more than there can be
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

// What was found serves as it is: the mean is M / most_below at least, that of (M/|x|)^(3/4) most_mixed at most.
static inline bool is_even(Found found, float most_below, float most_mixed) {
  return as_float(found.largest) * found.count <= most_below * found.magnitudes &&
         found.powers <= most_mixed * found.count * power_of(found.largest);
}
static inline int exponent_of(uint bits) { return (int)(bits >> 23) - 127; }
static inline bool has_scale(uint largest) { return abs(exponent_of(largest)) <= FARTHEST_EXPONENT; }

// The inverse scale of what was found, how many of the numbers are solid and how many of the other operand it wants.
typedef struct {
  float inverse;
  uint solid, wanted;
} Scale;
static inline float4 packed_scale(Scale scale) {
  return (float4)(scale.inverse, as_float(scale.solid), as_float(scale.wanted), 0.0f);
}
static inline Scale scale_of(Found found, float most_below, float most_mixed) {
  const Scale of_zeros = {1.0f, UNBOUNDED, 0}, of_none = {1.0f, 0, UNSERVED};
  if (found.largest == 0) return of_zeros;
  if (!has_scale(found.largest)) return of_none;
  const float inverse = as_float((uint)(exponent_of(found.largest) - LARGEST_EXPONENT + 127) << 23);
  const Scale scale = {inverse, 0, is_even(found, most_below, most_mixed) ? 0 : UNSERVED};
  return scale;
}

#define WARP 32
#ifdef LINE
#define LINE_PARAMETERS , float most_below, float most_mixed
// The scale of a line that the whole warp looks at. The sum of (M/|x|)^(3/4) tells how many values, at most, are not
// solid: each adds 54 or more. Where it tells too little they are counted.
static inline Scale scale_of_line(Found found, __global const float *line, uint k_size, uint lane, float most_below,
                                  float most_mixed) {
  Scale scale = scale_of(found, most_below, most_mixed);
  if (found.largest == 0 || !has_scale(found.largest)) return scale;
  const float least = found.count - found.powers / (54.0f * power_of(found.largest));
  if (scale.wanted == 0 && least > 0.5f * found.count) {
    scale.solid = as_uint(least);
    return scale;
  }
  const float largest = as_float(found.largest), least_solid = as_float(found.largest - (SOLID << 23));
  Found counted = {0, 0.0f, 0.0f, 0.0f};  // count: of solid numbers; powers: of tiny ones
  for (uint i = lane; i < k_size; i += WARP) {
    const float x = fabs(line[i]);
    counted.count += x >= least_solid ? 1.0f : 0.0f;
    counted.powers += x > 0.0f && x * most_below < largest ? 1.0f : 0.0f;
  }
  counted = of_lanes(counted, WARP);
  scale.solid = as_uint(counted.count);
  if (scale.wanted != 0) scale.wanted = as_uint(counted.powers + ((float)k_size - counted.count));
  return scale;
}
#else
#define LINE_PARAMETERS
#endif

// Element i of a slab lies at (i / columns)·row_stride + i % columns. A warp looks at a chunk. RUNS: a slab is one row,
// which may begin anywhere. VECTOR: four elements at a time, aligned. LINE: a run is a slab, a line of k with a scale of
// its own, which takes the place of what was found.
#ifdef VECTOR
#define WIDTH 4
#else
#define WIDTH 1
#endif
__kernel __attribute__((reqd_work_group_size(MEASURE_THREADS, 1, 1))) void planes_measure(
    uint elements, uint chunk, uint chunks, uint slabs, DIVISOR(columns), __global const float *restrict source,
    ulong source_offset, ulong batch_stride, ulong slab_stride, ulong row_stride, __global float4 *restrict found,
    ulong found_offset, __global Mixture *restrict mixture, ulong mixture_offset LINE_PARAMETERS) {
  if (get_global_id(0) == 0) {  // what planes_settle begins with
    const Mixture none = {UNBOUNDED, 0, UNBOUNDED, 0};
    mixture[mixture_offset] = none;
  }
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
#ifdef LINE
  const float4 result = packed_scale(scale_of_line(mine, source, elements, lane, most_below, most_mixed));
#else
  const float4 result = packed(mine);
#endif
  if (lane == 0) found[found_offset + warp] = result;
}

// Each `left_span` or `right_span` chunks share a scale; a span of 0: they are LINEs. SETTLE_GROUPS groups. Few chunks
// are one item's, more a warp's, many a group's.
#define SETTLE_GROUPS 32
#define SETTLE_THREADS 256
#define FEW 4
#define MANY 128
__kernel __attribute__((reqd_work_group_size(SETTLE_THREADS, 1, 1))) void planes_settle(
    uint left_scales, uint left_span, uint right_scales, uint right_span, float most_below, float most_mixed,
    __global const float4 *restrict found, ulong found_offset, __global Mixture *restrict mixture,
    ulong mixture_offset, __global float *restrict inverses, ulong inverses_offset) {
  __local uint solid, wanted;
  __local float4 of_warps[SETTLE_THREADS / WARP];
  const uint t = (uint)get_local_id(0), items = SETTLE_GROUPS * SETTLE_THREADS;
  found += found_offset;
  mixture += mixture_offset;
  inverses += inverses_offset;
  for (uint side = 0; side < 2; ++side) {
    const uint scales = side == 0 ? left_scales : right_scales, given_span = side == 0 ? left_span : right_span;
    const uint span = max(given_span, 1u), lanes = span <= FEW ? 1 : span <= MANY ? WARP : SETTLE_THREADS;
    if (t == 0) {
      solid = UNBOUNDED;
      wanted = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint own_solid = UNBOUNDED, own_wanted = 0;
    // Other groups begin with the right operand.
    const uint item = ((uint)get_global_id(0) + side * (items / 2)) % items, lane = item % lanes;
    for (uint number = item / lanes; number < scales; number += items / lanes) {
      Scale scale;
      if (given_span == 0) {
        const float4 of_line = found[number];
        scale.inverse = of_line.x;
        scale.solid = as_uint(of_line.y);
        scale.wanted = as_uint(of_line.z);
      } else {
        Found all = {0, 0.0f, 0.0f, 0.0f};
#pragma unroll 8
        for (uint i = lane; i < span; i += lanes) add_found(&all, found[number * span + i]);
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
        scale = scale_of(all, most_below, most_mixed);
      }
      inverses[number] = scale.inverse;
      own_solid = min(own_solid, scale.solid);
      own_wanted = max(own_wanted, scale.wanted);
    }
    atomic_min(&solid, own_solid);
    atomic_max(&wanted, own_wanted);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t == 0) {
      atomic_min(side == 0 ? &mixture->left_solid : &mixture->right_solid, solid);
      atomic_max(side == 0 ? &mixture->left_wanted : &mixture->right_wanted, wanted);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    found += scales * span;
    inverses += scales;
  }
}
