// The sum of the channels of each token in 16 bits. LANES items share a token (shared/lanes.h), 2 bytes a channel. The text
// in front may give src a prologue (block_prologue).
#include "shared/channels_last.h"
#include "shared/lanes.h"
#include "shared/prologue_block.h"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void token_sums(
    __global const uint4 *restrict src, ulong src_offset, __global float *restrict dst, ulong dst_offset, uint rows,
    uint blocks PROLOGUE_PARAMETERS) {
  LANES_SCRATCH(float, scratch);
  const uint row = (uint)get_group_id(0) * ROWS + ROW, of_row = min(row, rows - 1);
  src += src_offset;
  float sum = 0.0f;
  for (uint i = LANE; i < blocks; i += LANES) {
    float values[BLOCK_CHANNELS];
    read_block(values, src[of_row * blocks + i]);
    PROLOGUE_BLOCK(values, of_row * blocks + i, of_row, i * BLOCK_CHANNELS);
    EACH_CHANNEL(e) sum += values[e];
  }
  LANES_REDUCE(sum, scratch, COMBINE_SUM);
  if (row < rows && LANE == 0) dst[dst_offset + row] = sum;
}
