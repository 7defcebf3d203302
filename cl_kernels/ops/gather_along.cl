// Gather along the middle axis of src (outer, length, inner) by indices (outer, count, inner): the element of the same
// outer and inner place. OUTSIDE is what an index outside the axis gives. Blocking as in formula/pointwise.cl.
#include "shared/index.h"

__kernel void gather_along(__global const ELEMENT *src, const ulong src_offset, __global const int *indices,
                           const ulong indices_offset, __global ELEMENT *dst, const ulong dst_offset,
                           const uint length, const index_t inner, const uint inner_multiplier, const uint inner_shift,
                           const index_t count, const uint count_multiplier, const uint count_shift, const index_t n) {
  const index_t step = (index_t)get_local_size(0);
  const index_t first = (index_t)get_group_id(0) * step * PER_ITEM + (index_t)get_local_id(0);
#pragma unroll
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i >= n) continue;
    const index_t line = index_divide(i, inner, inner_multiplier, inner_shift);
    const index_t outer = index_divide(line, count, count_multiplier, count_shift);
    const uint index = (uint)indices[indices_offset + i];
    const ulong place = ((ulong)outer * length + index) * inner + (i - line * inner);
    dst[dst_offset + i] = index < length ? src[src_offset + place] : (ELEMENT)(OUTSIDE);
  }
}
