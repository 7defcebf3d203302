// PointwiseGroup: the same expressions over several sets of tensors, each of its own size, in one launch. A work-group works
// for one member, on PER_ITEM * local size neighbouring elements. The host puts in front:
//   INPUTS              number of the expressions' operands
//   GROUP_MEMORIES      operands and results of every member
//   GROUP_NUMBERS       their offsets, the size of every member, and the number of the first group behind it
//   GROUP_POINTERS      declares the operands and results of the group's member as pointers, its size `n`, and the number of
//                       its first group `begin`
//   GROUP_LOAD(in, i)   reads the operands of element i as float
//   GROUP_STORE(in, i)  computes the expressions of element i and writes them
// All reads of a work-item come before its writes: results may lie over operands.
#include "shared/numbers.h"

typedef struct { GROUP_NUMBERS(NUMBER_MEMBER) } group_numbers;

__kernel void pointwise_group(MEMORY_PARAMETERS(GROUP_MEMORIES) const group_numbers numbers) {
  GROUP_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GROUP_MEMORIES)
  const uint group = (uint)get_group_id(0), step = (uint)get_local_size(0);
  GROUP_POINTERS
  const uint first = (group - begin) * step * PER_ITEM + (uint)get_local_id(0);
  float in[PER_ITEM][INPUTS];
#pragma unroll
  for (uint k = 0; k < PER_ITEM; ++k) {
    const uint i = first + k * step;
    if (i < n) GROUP_LOAD(in[k], i)
  }
#pragma unroll
  for (uint k = 0; k < PER_ITEM; ++k) {
    const uint i = first + k * step;
    if (i < n) GROUP_STORE(in[k], i)
  }
}
