// Sums of several tensors in one launch, each with the bits of reduce_lanes (ops/reduce.cl) with the same lanes, unroll and
// width. A work-group sums rows of one of them. The host puts in front:
//   SUM_MEMORIES  src and dst of every member
//   SUM_NUMBERS   their offsets and sizes, and the number of the first group behind each member
//   SUM_MEMBER    declares those of the group's member: from and to; `member`, its number; its first group, `begin`; rows,
//                 and values of a row (ops/reduce_lanes.h): length, inner, run (0 for none) and gap, in reads of `width`
//                 values; lanes of a row, and how many of its reads are in flight, unroll
//   SUM_EPILOGUE  what member `member` makes of a sum
#include "shared/chains.h"
#include "shared/numbers.h"

#define MOST_READS 8
#define EACH_READ(k) _Pragma("unroll") for (uint k = 0; k < MOST_READS; ++k)

typedef struct { SUM_NUMBERS(NUMBER_MEMBER) } sum_numbers;

// The item's share of a row that begins at `from`: every lanes-th read.
#define SUM_OF_READS(type)                                                                      \
  type values = (type)(0.0f), low = (type)(0.0f);                                               \
  for (uint i = lane; i < length; i += unroll * lanes) {                                        \
    type next[MOST_READS];                                                                      \
    EACH_READ(k) {                                                                              \
      const uint at = min(i + k * lanes, length - 1);                                           \
      if (k < unroll) next[k] = ((__global const type *)from)[row_begin + (run != 0 ? at + at / run * gap : at * inner)]; \
    }                                                                                           \
    type chain = next[0];                                                                       \
    EACH_READ(k) if (k != 0 && k < unroll) chain += i + k * lanes < length ? next[k] : (type)(0.0f); \
    ADD_EXACTLY(type, values, low, chain);                                                      \
  }                                                                                             \
  const type joined = WITH_LOW(values, low)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void grouped_sums(
    MEMORY_PARAMETERS(SUM_MEMORIES) const sum_numbers numbers) {
  SUM_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(SUM_MEMORIES)
  __local float scratch[THREADS];
  const uint group = (uint)get_group_id(0), item = (uint)get_local_id(0);
  SUM_MEMBER
  // Neighbouring items have neighbouring rows where the values of a row are apart.
  const uint group_rows = THREADS / lanes, distance = inner > 1 ? group_rows : 1;
  const uint lane = inner > 1 ? item / group_rows : item % lanes;
  const uint row = (group - begin) * group_rows + (inner > 1 ? item % group_rows : item / lanes);
  const uint of_row = min(row, rows - 1), outer = of_row / inner;
  const uint row_begin = run != 0 ? outer * run : outer * length * inner + (of_row - outer * inner);
  float sum;
  if (width == 4) {
    SUM_OF_READS(float4);
    sum = (joined.x + joined.y) + (joined.z + joined.w);
  } else {
    SUM_OF_READS(float);
    sum = joined;
  }
  scratch[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint step = lanes / 2; step > 0; step /= 2) {
    if (lane < step) scratch[item] += scratch[item + step * distance];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0 && row < rows) to[row] = SUM_EPILOGUE(scratch[item]);
}
