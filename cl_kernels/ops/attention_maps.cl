// attention_maps: the descriptions of q, k, v and diff_dst for the copy engine (ops/attention_wgmma.h), whose addresses
// only the device knows. One item.
#include "shared/nvidia/tma.h"

__kernel void attention_maps(__global const uint *restrict maps, __global uint *restrict to, ulong to_offset,
                             __global const ushort *q, ulong q_offset, __global const ushort *k, ulong k_offset,
                             __global const ushort *v, ulong v_offset, __global const ushort *diff_dst,
                             ulong diff_dst_offset) {
  to += to_offset;
  write_map(maps, to, q + q_offset);
  write_map(maps + MAP_WORDS, to + MAP_WORDS, k + k_offset);
  write_map(maps + 2 * MAP_WORDS, to + 2 * MAP_WORDS, v + v_offset);
  write_map(maps + 3 * MAP_WORDS, to + 3 * MAP_WORDS, diff_dst + diff_dst_offset);
}
