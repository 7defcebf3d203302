// Channels of several images, or tokens, side by side: blocks of 8 numbers of 16 bits. The host puts in front
//   SOURCE_PARAMETERS   __global const uint4 *s0, ulong s0_offset, const uint s0_blocks, … of all sources
//   PICK                value = block `at` of row `row` of the sources together

// Block (row, b) of the sources becomes block (row, dst_begin + b) of dst. An item moves a block.
__kernel void concat_channels_last(SOURCE_PARAMETERS, __global uint4 *restrict dst, ulong dst_offset, uint count,
                                   uint blocks, uint dst_blocks, uint dst_begin) {
  const uint i = (uint)get_global_id(0);
  if (i >= count) return;
  const uint row = i / blocks, b = i - row * blocks;
  uint at = b;
  uint4 value;
  PICK
  dst[dst_offset + (ulong)row * dst_blocks + dst_begin + b] = value;
}
