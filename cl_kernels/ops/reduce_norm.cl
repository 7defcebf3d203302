// The Euclidean norms of rows of src (outer, length, inner) to dst (outer, parts, inner), as ops/reduce.cl reduces them; a norm
// of norms joins parts. Squares are summed in three sizes of numbers, the small and the large ones times a power of two, so
// that none leaves fp32. Every element is read once (4 bytes); the order is fixed. An epilogue as in ops/reduce.cl.
#include "ops/reduce_lanes.h"
#include "shared/chains.h"

#ifndef EPILOGUE_IS_EXPRESSION
#define EPILOGUE_PARAMETERS
#define EPILOGUE(value, z, m, n_outer, n_inner) (value)
#endif

#define WIDTH 16
#define TERMS 16  // of a chain before it is joined
#define LARGE 0x1p50f
#define SMALL 0x1p-50f
#define UNIT_OF_LARGE 0x1p-74f
#define UNIT_OF_SMALL 0x1p66f

#define SUMS(type, name) type name##_small = (type)(0.0f), name##_middle = (type)(0.0f), name##_large = (type)(0.0f)
#define ADD_SQUARE(type, name, value)                                                          \
  do {                                                                                         \
    const type size_ = fabs(value);                                                            \
    const type small_ = size_ < SMALL ? size_ * UNIT_OF_SMALL : (type)(0.0f);                  \
    const type large_ = size_ >= LARGE ? size_ * UNIT_OF_LARGE : (type)(0.0f);                 \
    const type middle_ = (size_ < SMALL) | (size_ >= LARGE) ? (type)(0.0f) : size_; /* or NaN */ \
    name##_small += small_ * small_;                                                           \
    name##_middle += middle_ * middle_;                                                        \
    name##_large += large_ * large_;                                                           \
  } while (0)
#define ADD_SUMS(name, other)             \
  do {                                    \
    name##_small += other##_small;        \
    name##_middle += other##_middle;      \
    name##_large += other##_large;        \
  } while (0)

// What numbers far smaller than others would add is lost. The norm of finite numbers is at most FLT_MAX.
static inline float norm_of_sums(float small, float middle, float large) {
  if (large > 0.0f) {
    const float norm = sqrt(large + middle * UNIT_OF_LARGE * UNIT_OF_LARGE) / UNIT_OF_LARGE;
    return large < INFINITY && norm > FLT_MAX ? FLT_MAX : norm;
  }
  if (middle != 0.0f) return sqrt(middle + small / UNIT_OF_SMALL / UNIT_OF_SMALL);
  return sqrt(small) / UNIT_OF_SMALL;
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void reduce_lanes(
    __global const float *restrict src, __global float *restrict dst, const lanes_numbers numbers EPILOGUE_PARAMETERS) {
  LANES_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(float4, scratch);
  FIND_ROW;
  SUMS(float, all);
  for (index_t i = begin + LANE; i < end;) {
    const index_t stop = min(end, i + TERMS * LANES);
    SUMS(float, piece);
    for (; i < stop; i += LANES) ADD_SQUARE(float, piece, src[AT(i)]);
    ADD_SUMS(all, piece);
  }
  float4 sums = (float4)(all_small, all_middle, all_large, 0.0f);
  LANES_REDUCE(sums, scratch, COMBINE_SUM);
  if (LANE > 0 || row >= outputs) return;
  const float norm = norm_of_sums(sums.x, sums.y, sums.z);
  dst[dst_offset + row] = EPILOGUE(norm, 0, row, 0, 0);
}

__kernel void reduce_rows(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                          ulong dst_offset, ulong length, ulong part, ulong parts EPILOGUE_PARAMETERS) {
  const ulong row = get_global_id(0), outer = row / parts, begin = (row - outer * parts) * part;
  const ulong count = min(length, begin + part) - begin;
  src += src_offset + outer * length + begin;
  SUMS(float16, chains);
  SUMS(float, all);
  ulong i = 0;
  while (i + WIDTH <= count) {
    const ulong stop = min(count, i + TERMS * WIDTH);
    SUMS(float16, piece);
    for (; i + WIDTH <= stop; i += WIDTH) {
      const float16 next = vload16(0, src + i);
      ADD_SQUARE(float16, piece, next);
    }
    ADD_SUMS(chains, piece);
  }
  JOIN_CHAINS(all_small, chains_small, COMBINE_SUM);
  JOIN_CHAINS(all_middle, chains_middle, COMBINE_SUM);
  JOIN_CHAINS(all_large, chains_large, COMBINE_SUM);
  for (; i < count; ++i) ADD_SQUARE(float, all, src[i]);
  const float norm = norm_of_sums(all_small, all_middle, all_large);
  dst[dst_offset + row] = EPILOGUE(norm, 0, row, 0, 0);
}

__kernel void reduce_columns(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                             ulong dst_offset, ulong length, ulong part, ulong parts, ulong inner) {
  const ulong column = get_global_id(0) * WIDTH, outer_part = get_global_id(1);
  const ulong outer = outer_part / parts, begin = (outer_part - outer * parts) * part, end = min(length, begin + part);
  src += src_offset + outer * length * inner + column;
  dst += dst_offset + outer_part * inner + column;
  if (column + WIDTH <= inner) {
    SUMS(float16, all);
    for (ulong i = begin; i < end;) {
      const ulong stop = min(end, i + TERMS);
      SUMS(float16, piece);
      for (; i < stop; ++i) {
        const float16 next = vload16(0, src + i * inner);
        ADD_SQUARE(float16, piece, next);
      }
      ADD_SUMS(all, piece);
    }
    float small[WIDTH], middle[WIDTH], large[WIDTH];
    vstore16(all_small, 0, small);
    vstore16(all_middle, 0, middle);
    vstore16(all_large, 0, large);
    for (int j = 0; j < WIDTH; ++j) dst[j] = norm_of_sums(small[j], middle[j], large[j]);
  } else {
    for (ulong j = 0; column + j < inner; ++j) {
      SUMS(float, all);
      for (ulong i = begin; i < end;) {
        const ulong stop = min(end, i + TERMS);
        SUMS(float, piece);
        for (; i < stop; ++i) ADD_SQUARE(float, piece, src[i * inner + j]);
        ADD_SUMS(all, piece);
      }
      dst[j] = norm_of_sums(all_small, all_middle, all_large);
    }
  }
}
