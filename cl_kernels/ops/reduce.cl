// Reductions of src (outer, length, inner) to dst (outer, parts, inner): part p covers [p·part, (p+1)·part) of `length`.
// KIND is SUM, PRODUCT, MAXIMUM or MINIMUM. Every element is read once (4 bytes, 1 FLOP); the order is fixed.
//   reduce_lanes   GPUs: LANES items a row (ops/reduce_lanes.h), a chain of part / LANES reads each, UNROLL of them in
//                  flight, then a tree.
//   reduce_rows    CPUs, inner = 1: an item owns one row, with WIDTH chains side by side.
//   reduce_columns CPUs, inner > 1: an item owns WIDTH neighbouring rows, one chain each.
//   reduce_argmax  over all of `length`: the first largest value's place; the first NaN wins. WITH_VALUES: also the value.
// The text in front may give reduce_lanes and reduce_rows an epilogue (gemm_epilogue), for row m.
#include "ops/candidate.h"
#include "ops/reduce_lanes.h"
#include "shared/chains.h"

#ifndef EPILOGUE_IS_EXPRESSION
#define EPILOGUE_PARAMETERS
#define EPILOGUE(value, z, m, n_outer, n_inner) (value)
#endif

#define CONCAT_(x, y) x##y
#define CONCAT(x, y) CONCAT_(x, y)
#define COMBINE CONCAT(COMBINE_, KIND)
#define COMBINE_PRODUCT(a, b) ((a) * (b))
#define NEUTRAL_SUM 0.0f
#define NEUTRAL_PRODUCT 1.0f
#define NEUTRAL_MAXIMUM -INFINITY
#define NEUTRAL_MINIMUM INFINITY
#define NEUTRAL CONCAT(NEUTRAL_, KIND)
#define WIDTH 16
#define TERMS 8  // of a chain before it is joined

// Joins what a chain has reduced to `value`. Sums keep the roundings of this in `low`.
#define JOIN_SUM(type, value, low, chain) ADD_EXACTLY(type, value, low, chain)
#define JOIN_PRODUCT(type, value, low, chain) value = COMBINE_PRODUCT(value, chain)
#define JOIN_MAXIMUM(type, value, low, chain) value = COMBINE_MAXIMUM(value, chain)
#define JOIN_MINIMUM(type, value, low, chain) value = COMBINE_MINIMUM(value, chain)
#define JOIN CONCAT(JOIN_, KIND)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void reduce_lanes(
    __global const read_t *restrict src, __global float *restrict dst, const lanes_numbers numbers EPILOGUE_PARAMETERS) {
  LANES_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(float, scratch);
  FIND_ROW;
  read_t values = (read_t)(NEUTRAL), low = (read_t)(0.0f);
  for (index_t i = begin + LANE; i < end; i += UNROLL * LANES) {
    read_t next[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) next[k] = src[AT(min(i + k * LANES, end - 1))];
    read_t chain = next[0];
#pragma unroll
    for (uint k = 1; k < UNROLL; ++k) {
      const read_t term = i + k * LANES < end ? next[k] : (read_t)(NEUTRAL);
      chain = COMBINE(chain, term);
    }
    JOIN(read_t, values, low, chain);
  }
  const read_t joined = WITH_LOW(values, low);
  float value = COMBINE_READ(joined);
  LANES_REDUCE(value, scratch, COMBINE);
  if (LANE == 0 && row < outputs) dst[dst_offset + row] = EPILOGUE(value, 0, row, 0, 0);
}

__kernel void reduce_rows(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                          ulong dst_offset, ulong length, ulong part, ulong parts EPILOGUE_PARAMETERS) {
  const ulong row = get_global_id(0), outer = row / parts, begin = (row - outer * parts) * part;
  const ulong count = min(length, begin + part) - begin;
  src += src_offset + outer * length + begin;
  float value = NEUTRAL, low = 0.0f, rest = NEUTRAL;
  ulong i = 0;
  if (count >= WIDTH) {
    float16 values = (float16)(NEUTRAL), lows = (float16)(0.0f);
    while (i + WIDTH <= count) {
      const ulong stop = min(count, i + TERMS * WIDTH);
      float16 chains = vload16(0, src + i);
      for (i += WIDTH; i + WIDTH <= stop; i += WIDTH) {
        const float16 next = vload16(0, src + i);
        chains = COMBINE(chains, next);
      }
      JOIN(float16, values, lows, chains);
    }
    JOIN_CHAINS(value, values, COMBINE);
    JOIN_CHAINS(low, lows, COMBINE_SUM);
  }
  for (; i < count; ++i) rest = COMBINE(rest, src[i]);
  JOIN(float, value, low, rest);
  value = WITH_LOW(value, low);
  dst[dst_offset + row] = EPILOGUE(value, 0, row, 0, 0);
}

__kernel void reduce_columns(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                             ulong dst_offset, ulong length, ulong part, ulong parts, ulong inner) {
  const ulong column = get_global_id(0) * WIDTH, outer_part = get_global_id(1);
  const ulong outer = outer_part / parts, begin = (outer_part - outer * parts) * part, end = min(length, begin + part);
  src += src_offset + outer * length * inner + column;
  dst += dst_offset + outer_part * inner + column;
  if (column + WIDTH <= inner) {
    float16 value = (float16)(NEUTRAL), low = (float16)(0.0f);
    for (ulong i = begin; i < end;) {
      const ulong stop = min(end, i + TERMS);
      float16 chain = vload16(0, src + i * inner);
      for (++i; i < stop; ++i) {
        const float16 next = vload16(0, src + i * inner);
        chain = COMBINE(chain, next);
      }
      JOIN(float16, value, low, chain);
    }
    vstore16(WITH_LOW(value, low), 0, dst);
  } else {
    for (ulong j = 0; column + j < inner; ++j) {
      float value = NEUTRAL, low = 0.0f;
      for (ulong i = begin; i < end;) {
        const ulong stop = min(end, i + TERMS);
        float chain = src[i * inner + j];
        for (++i; i < stop; ++i) chain = COMBINE(chain, src[i * inner + j]);
        JOIN(float, value, low, chain);
      }
      dst[j] = WITH_LOW(value, low);
    }
  }
}

#ifdef WITH_VALUES
#define VALUES_PARAMETERS , __global float *restrict values, ulong values_offset
#else
#define VALUES_PARAMETERS
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void reduce_argmax(
    __global const float *restrict src, __global int *restrict dst, const lanes_numbers numbers VALUES_PARAMETERS) {
  LANES_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(candidate, scratch);
  FIND_ROW;
  candidate best = {0.0f, -1};
  for (index_t i = begin + LANE; i < end; i += UNROLL * LANES) {
    float next[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) next[k] = src[AT(min(i + k * LANES, end - 1))];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      const candidate other = {next[k], (int)min(i + k * LANES, end - 1)};
      best = better(best, other);
    }
  }
  LANES_REDUCE(best, scratch, better);
  if (LANE > 0 || row >= outputs) return;
  dst[dst_offset + row] = best.place;
#ifdef WITH_VALUES
  values[values_offset + row] = best.value;
#endif
}
