// gemm_tokens_begin: the descriptions of A, B and C of gemm/hopper/tokens.cl for the copy engine, whose addresses only the
// device knows, and no arrivals at `cut` tiles. One item.
#include "shared/nvidia/tma.h"

__kernel void gemm_tokens_begin(__global const uint *restrict maps, __global uint *restrict to, ulong to_offset,
                                __global const uchar *left, ulong left_offset, __global const uchar *right,
                                ulong right_offset, __global const uchar *result, ulong result_offset, uint cut) {
  to += to_offset;
  write_map(maps, to, left + left_offset);
  write_map(maps + MAP_WORDS, to + MAP_WORDS, right + right_offset);
  write_map(maps + 2 * MAP_WORDS, to + 2 * MAP_WORDS, result + result_offset);
  for (uint i = 0; i < cut; ++i) to[3 * MAP_WORDS + i] = 0;
}
