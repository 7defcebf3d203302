// gemm_tokens_begin: the description of a tensor of gemm/hopper/tokens.cl for the copy engine, whose address only the device
// knows, and sets the `counters` numbers behind it to 0. One item.
#include "shared/nvidia/tma.h"

__kernel void gemm_tokens_begin(__global const uint *restrict map, __global uint *restrict to, ulong to_offset,
                                __global const uchar *tensor, ulong tensor_offset, uint counters) {
  to += to_offset;
  write_map(map, to, tensor + tensor_offset);
  for (uint i = 0; i < counters; ++i) to[MAP_WORDS + i] = 0;
}
