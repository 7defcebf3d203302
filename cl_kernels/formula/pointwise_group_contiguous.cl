// PointwiseGroup on CPUs: a work-item, alone in its group, works for one member, on CHUNK neighbouring elements in a loop
// that the compiler can vectorise. The host puts in front what formula/pointwise_group.cl tells, but instead of load and store:
//   GROUP_ELEMENT(i)    computes the expressions of element i
#include "shared/numbers.h"

typedef struct { GROUP_NUMBERS(NUMBER_MEMBER) } group_numbers;

__kernel void pointwise_group(MEMORY_PARAMETERS(GROUP_MEMORIES) const group_numbers numbers) {
  GROUP_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GROUP_MEMORIES)
  const uint group = (uint)get_group_id(0);
  GROUP_POINTERS
  const uint first = (group - begin) * CHUNK, end = min(first + CHUNK, n);
  // An element of an operand that lies under a result is read and written by the same turn of the loop.
#pragma clang loop vectorize(assume_safety)
  for (uint i = first; i < end; ++i) GROUP_ELEMENT(i)
}
