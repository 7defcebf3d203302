// The rows of reductions by lanes (shared/lanes.h): src (outer, length, inner) to dst (outer, parts, inner), where part p
// covers [p·part, (p+1)·part) of `length`. Used by reduce.cl and reduce_norm.cl. What a launch does without costs nothing:
//   INTERLEAVED  inner > 1
//   IN_PARTS     parts > 1
//   IN_RUNS      src is (length / run, outputs, run) and dst (outputs); `gap` values lie between two runs of a row
//   VECTOR       values that are read together: 4, or 1. length, part, run and gap count reads
#ifndef CONCORD_REDUCE_LANES_H
#define CONCORD_REDUCE_LANES_H

#include "shared/index.h"
#include "shared/lanes.h"
#include "shared/numbers.h"

#if VECTOR == 4
typedef float4 read_t;
#define COMBINE_READ(value) COMBINE(COMBINE((value).x, (value).y), COMBINE((value).z, (value).w))
#else
typedef float read_t;
#define COMBINE_READ(value) (value)
#endif

#define DIVISOR_NUMBERS(NUMBER, name) NUMBER(index_t, name) NUMBER(uint, name##_multiplier) NUMBER(uint, name##_shift)
#define DIVIDE(value, name) index_divide(value, name, name##_multiplier, name##_shift)

#ifdef INTERLEAVED
#define INNER_NUMBERS(NUMBER) DIVISOR_NUMBERS(NUMBER, inner)
#define SPLIT_INNER const index_t outer_part = DIVIDE(output, inner), column = output - outer_part * inner
#else
#define INNER_NUMBERS(NUMBER)
#define SPLIT_INNER const index_t inner = 1, outer_part = output, column = 0
#endif

#ifdef IN_PARTS
#define PART_NUMBERS(NUMBER) DIVISOR_NUMBERS(NUMBER, parts) NUMBER(index_t, part)
#define SPLIT_PART                                                                                      \
  const index_t outer = DIVIDE(outer_part, parts), begin = (outer_part - outer * parts) * part; \
  const index_t end = min(length, begin + part)
#else
#define PART_NUMBERS(NUMBER)
#define SPLIT_PART const index_t outer = outer_part, begin = 0, end = length
#endif

// AT: where value i of a row lies from its first one.
#ifdef IN_RUNS
#define RUN_NUMBERS(NUMBER) DIVISOR_NUMBERS(NUMBER, run) NUMBER(index_t, gap)
#define ROW_BEGIN ((ulong)outer * run)
#define AT(i) ((i) + DIVIDE(i, run) * gap)
#else
#define RUN_NUMBERS(NUMBER)
#define ROW_BEGIN ((ulong)outer * length * inner + column)
#define AT(i) ((i) * inner)
#endif

#define LANES_NUMBERS(NUMBER)                                                                          \
  NUMBER(ulong, src_offset) NUMBER(ulong, dst_offset) NUMBER(index_t, outputs) NUMBER(index_t, length) \
  INNER_NUMBERS(NUMBER) PART_NUMBERS(NUMBER) RUN_NUMBERS(NUMBER)
typedef struct { LANES_NUMBERS(NUMBER_MEMBER) } lanes_numbers;

// The item's row of dst, and which values of it, [begin, end), are the part's. Lanes without a row work for the last one.
#define FIND_ROW                                                                                                   \
  const index_t row = (index_t)get_group_id(0) * ROWS + ROW, output = min(row, outputs - 1);                       \
  SPLIT_INNER;                                                                                                     \
  SPLIT_PART;                                                                                                      \
  src += src_offset + ROW_BEGIN

#endif
