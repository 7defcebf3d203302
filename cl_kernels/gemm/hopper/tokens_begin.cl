// gemm_tokens_begin: the description of a tensor of gemm/hopper/tokens.cl for the copy engine, whose address only the device
// knows, and behind it so many counters of no arrivals. One item.
#include "shared/nvidia/tma.h"

__kernel void gemm_tokens_begin(__global const uint *restrict map, __global uint *restrict to, ulong to_offset,
                                __global const uchar *tensor, ulong tensor_offset, uint arrivals) {
  to += to_offset;
  write_map(map, to, tensor + tensor_offset);
  for (uint i = 0; i < arrivals; ++i) to[MAP_WORDS + i] = 0;
}
