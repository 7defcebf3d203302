// The sum of the channels of each token in 16 bits. LANES items share a token (shared/lanes.h), 2 bytes a channel.
#include "shared/channels_last.h"
#include "shared/lanes.h"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void token_sums(__global const uint4 *restrict src,
                                                                              ulong src_offset,
                                                                              __global float *restrict dst,
                                                                              ulong dst_offset, uint rows,
                                                                              uint blocks) {
  LANES_SCRATCH(float, scratch);
  const uint row = (uint)get_group_id(0) * ROWS + ROW;
  src += src_offset + (ulong)min(row, rows - 1) * blocks;
  float sum = 0.0f;
  for (uint i = LANE; i < blocks; i += LANES) {
    float values[BLOCK_CHANNELS];
    read_block(values, src[i]);
    EACH_CHANNEL(e) sum += values[e];
  }
  LANES_REDUCE(sum, scratch, COMBINE_SUM);
  if (row < rows && LANE == 0) dst[dst_offset + row] = sum;
}
