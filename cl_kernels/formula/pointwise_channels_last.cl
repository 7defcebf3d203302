// Pointwise on images that lie channels-last, `blocks` blocks of 8 channels. The host puts in front:
//   INPUTS                 operands that lie as the results do
//   POINTWISE_PARAMETERS   operands and results; POINTWISE_ARGUMENTS are their names
//   pointwise_load         reads those operands' blocks `at`
//   pointwise_store        computes the expressions of a block of `image` from `channel` on and writes them
// All reads of a work-item come before its writes: results may lie over operands. Row-major values have `channel_blocks`
// blocks a place and `places` places an image.

__kernel void pointwise(const uint blocks, const uint channel_blocks, const uint places POINTWISE_PARAMETERS) {
  const uint step = (uint)get_local_size(0);
  const uint first = (uint)get_group_id(0) * step * PER_ITEM + (uint)get_local_id(0);
  uint4 in[PER_ITEM][INPUTS];
#pragma unroll
  for (uint k = 0; k < PER_ITEM; ++k) pointwise_load(in[k], min(first + k * step, blocks - 1) POINTWISE_ARGUMENTS);
#pragma unroll
  for (uint k = 0; k < PER_ITEM; ++k) {
    const uint at = first + k * step, row = at / channel_blocks;
    if (at < blocks)
      pointwise_store(in[k], at, row / places, (at - row * channel_blocks) * BLOCK_CHANNELS POINTWISE_ARGUMENTS);
  }
}
