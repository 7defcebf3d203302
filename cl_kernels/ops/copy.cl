// Copy: moves `n` elements from where copy_src finds them to where copy_dst puts them; every operator that only moves
// values is this kernel. The host puts in front: ELEMENT (an integer type of the element's size), COPY_PARAMETERS and
// COPY_ARGUMENTS (sizes and strides), copy_src and copy_dst. Blocking as in formula/pointwise.cl.

__kernel void copy(__global const ELEMENT* src, const ulong src_offset, __global ELEMENT* dst,
                   const ulong dst_offset COPY_PARAMETERS, const index_t n) {
  const index_t step = (index_t)get_local_size(0);
  const index_t first = (index_t)get_group_id(0) * step * PER_ITEM + (index_t)get_local_id(0);
  ELEMENT value[PER_ITEM];
#pragma unroll
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i < n) value[k] = src[src_offset + copy_src(i COPY_ARGUMENTS)];
  }
#pragma unroll
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i < n) dst[dst_offset + copy_dst(i COPY_ARGUMENTS)] = value[k];
  }
}
