// Gather: rows of a table by index. A row is `width` elements of type ELEMENT, the widest integer type that divides its
// bytes; OUTSIDE is what an index outside the table gives. Blocking as in formula/pointwise.cl.
#include "shared/index.h"

__kernel void gather(__global const ELEMENT* table, const ulong table_offset, __global const int* indices,
                     const ulong indices_offset, __global ELEMENT* dst, const ulong dst_offset, const index_t width,
                     const uint multiplier, const uint shift, const uint rows, const index_t n) {
  const index_t step = (index_t)get_local_size(0);
  const index_t first = (index_t)get_group_id(0) * step * PER_ITEM + (index_t)get_local_id(0);
#pragma unroll
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i >= n) continue;
    const index_t position = index_divide(i, width, multiplier, shift);
    const uint row = (uint)indices[indices_offset + position];
    const ulong place = (ulong)row * width + (i - position * width);
    dst[dst_offset + i] = row < rows ? table[table_offset + place] : (ELEMENT)(OUTSIDE);
  }
}
