// Fill: dst[i] = value for `n` elements of type ELEMENT (an integer type of the element's size; `value` holds its bits).
#include "shared/index.h"

__kernel void fill(__global ELEMENT* dst, const ulong dst_offset, const uint value, const index_t n) {
  const index_t step = (index_t)get_local_size(0);
  const index_t first = (index_t)get_group_id(0) * step * PER_ITEM + (index_t)get_local_id(0);
#pragma unroll
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i < n) dst[dst_offset + i] = (ELEMENT)value;
  }
}
