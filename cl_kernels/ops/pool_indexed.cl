// Max unpooling by indices, places in a channel of `pixels`; `pooled` values a channel. pool_indexed_clear, _mark and
// _forward in turn: where several values have one place, the last of them counts, whatever order they come in.
// pool_indexed_backward takes the values at the places. A work-item owns one element. 12 bytes an element and stage.

__kernel void pool_indexed_clear(__global int *winners, ulong winners_offset) {
  winners[winners_offset + get_global_id(0)] = -1;
}

__kernel void pool_indexed_mark(__global const int *restrict indices, ulong indices_offset, __global int *winners,
                                ulong winners_offset, uint pooled, uint pixels) {
  const uint i = (uint)get_global_id(0);
  const ulong channel = get_global_id(1);
  const int place = indices[indices_offset + channel * pooled + i];
  if ((uint)place < pixels) atomic_max(winners + (winners_offset + channel * pixels + place), (int)i);
}

__kernel void pool_indexed_forward(__global const float *restrict src, ulong src_offset,
                                   __global const int *restrict winners, ulong winners_offset, __global float *restrict dst,
                                   ulong dst_offset, uint pooled, uint pixels) {
  const ulong channel = get_global_id(1), i = channel * pixels + get_global_id(0);
  const int winner = winners[winners_offset + i];
  dst[dst_offset + i] = winner < 0 ? 0.0f : src[src_offset + channel * pooled + max(winner, 0)];
}

__kernel void pool_indexed_backward(__global const float *restrict diff_dst, ulong diff_dst_offset,
                                    __global const int *restrict indices, ulong indices_offset,
                                    __global float *restrict diff_src, ulong diff_src_offset, uint pooled, uint pixels) {
  const ulong channel = get_global_id(1), i = channel * pooled + get_global_id(0);
  const int place = indices[indices_offset + i];
  const bool inside = (uint)place < pixels;
  const float value = diff_dst[diff_dst_offset + channel * pixels + (inside ? place : 0)];
  diff_src[diff_src_offset + i] = inside ? value : 0.0f;
}
