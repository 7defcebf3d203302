// Between the row-major order (N, C, places) and channels-last (N, places, C), whose numbers are those of NUMBERS: BF16,
// F16 or I32; between tokens of floats and of 16-bit numbers; some of the channels.
#define BF16 0
#define F16 1
#define I32 2
#if NUMBERS == F16
#define NUMBERS_F16
#endif
#include "shared/channels_last.h"

#if NUMBERS == I32
typedef int value_t;
typedef int number_t;
#define VALUE_OF(number) (number)
#define NUMBER_OF(value) (value)
#else
typedef float value_t;
typedef ushort number_t;
#define VALUE_OF(number) (floats_of(number).x)
#define NUMBER_OF(value) ((ushort)pair_of(value, 0.0f))
#endif

// A group turns a square of SIDE channels by SIDE places in local memory; global ids are (places in squares, channels in
// squares, image).
#define SIDE 32
#define ROWS 8
#define PITCH (SIDE + 1)
#define SQUARE_IDS                                                                                       \
  const uint x = (uint)get_local_id(0), y = (uint)get_local_id(1);                                        \
  const uint place_begin = (uint)get_group_id(0) * SIDE, channel_begin = (uint)get_group_id(1) * SIDE;     \
  const ulong image = get_global_id(2) * ((ulong)channels * places)

__kernel __attribute__((reqd_work_group_size(SIDE, ROWS, 1))) void channels_last_from_rows(
    __global const value_t *restrict src, ulong src_offset, __global number_t *restrict dst, ulong dst_offset,
    uint channels, uint places) {
  __local value_t square[SIDE * PITCH];
  SQUARE_IDS;
  src += src_offset + image;
  dst += dst_offset + image;
#pragma unroll
  for (uint row = y; row < SIDE; row += ROWS) {
    const uint channel = min(channel_begin + row, channels - 1), place = min(place_begin + x, places - 1);
    square[row * PITCH + x] = src[(ulong)channel * places + place];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (uint row = y; row < SIDE; row += ROWS) {
    const uint place = place_begin + row, channel = channel_begin + x;
    if (place < places && channel < channels) dst[(ulong)place * channels + channel] = NUMBER_OF(square[x * PITCH + row]);
  }
}

// A place of src has `pitch` channels, those of dst from channel `begin` on.
__kernel __attribute__((reqd_work_group_size(SIDE, ROWS, 1))) void channels_last_to_rows(
    __global const number_t *restrict src, ulong src_offset, __global value_t *restrict dst, ulong dst_offset,
    uint channels, uint places, uint pitch, uint begin) {
  __local value_t square[SIDE * PITCH];
  SQUARE_IDS;
  src += src_offset + get_global_id(2) * ((ulong)pitch * places) + begin;
  dst += dst_offset + image;
#pragma unroll
  for (uint row = y; row < SIDE; row += ROWS) {
    const uint place = min(place_begin + row, places - 1), channel = min(channel_begin + x, channels - 1);
    square[row * PITCH + x] = VALUE_OF(src[(ulong)place * pitch + channel]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (uint row = y; row < SIDE; row += ROWS) {
    const uint channel = channel_begin + row, place = place_begin + x;
    if (place < places && channel < channels) dst[(ulong)channel * places + place] = square[x * PITCH + row];
  }
}

#if NUMBERS != I32
// An item converts a block of 8 numbers.
__kernel void tokens_from_floats(__global const float4 *restrict src, ulong src_offset, __global uint4 *restrict dst,
                                 ulong dst_offset, uint blocks) {
  const uint i = (uint)get_global_id(0);
  if (i >= blocks) return;
  const float4 low = src[src_offset + 2 * (ulong)i], high = src[src_offset + 2 * (ulong)i + 1];
  dst[dst_offset + i] = (uint4)(pair_of(low.x, low.y), pair_of(low.z, low.w), pair_of(high.x, high.y),
                                pair_of(high.z, high.w));
}

__kernel void tokens_to_floats(__global const uint4 *restrict src, ulong src_offset, __global float4 *restrict dst,
                               ulong dst_offset, uint blocks) {
  const uint i = (uint)get_global_id(0);
  if (i >= blocks) return;
  const uint4 block = src[src_offset + i];
  dst[dst_offset + 2 * (ulong)i] = (float4)(floats_of(block.x), floats_of(block.y));
  dst[dst_offset + 2 * (ulong)i + 1] = (float4)(floats_of(block.z), floats_of(block.w));
}

// Of `blocks` blocks of each token, from block `begin` on; the tokens of src have `src_blocks`.
__kernel void channel_columns_to_floats(__global const uint4 *restrict src, ulong src_offset,
                                      __global float4 *restrict dst, ulong dst_offset, uint count, uint blocks,
                                      uint src_blocks, uint begin) {
  const uint i = (uint)get_global_id(0);
  if (i >= count) return;
  const uint row = i / blocks, b = i - row * blocks;
  const uint4 block = src[src_offset + (ulong)row * src_blocks + begin + b];
  dst[dst_offset + 2 * (ulong)i] = (float4)(floats_of(block.x), floats_of(block.y));
  dst[dst_offset + 2 * (ulong)i + 1] = (float4)(floats_of(block.z), floats_of(block.w));
}

// The same of tokens of `channels` numbers that are padded to `pairs_of_token` pairs. An item converts a pair.
__kernel void padded_tokens_from_floats(__global const float *restrict src, ulong src_offset,
                                        __global uint *restrict dst, ulong dst_offset, uint pairs, uint channels,
                                        uint pairs_of_token) {
  const uint i = (uint)get_global_id(0);
  if (i >= pairs) return;
  const uint token = i / pairs_of_token, channel = 2 * (i - token * pairs_of_token);
  src += src_offset + (ulong)token * channels;
  const float low = src[min(channel, channels - 1)], high = src[min(channel + 1, channels - 1)];
  dst[dst_offset + i] = pair_of(low, high);
}

__kernel void padded_tokens_to_floats(__global const uint *restrict src, ulong src_offset, __global float *restrict dst,
                                      ulong dst_offset, uint pairs, uint channels, uint pairs_of_token) {
  const uint i = (uint)get_global_id(0);
  if (i >= pairs) return;
  const uint token = i / pairs_of_token, channel = 2 * (i - token * pairs_of_token);
  const float2 pair = floats_of(src[src_offset + i]);
  dst += dst_offset + (ulong)token * channels + channel;
  if (channel < channels) dst[0] = pair.x;
  if (channel + 1 < channels) dst[1] = pair.y;
}
#endif

// Block (row, b) of dst is block (row, begin + b) of src. An item moves a block.
__kernel void channels_last_slice(__global const uint4 *restrict src, ulong src_offset, __global uint4 *restrict dst,
                                  ulong dst_offset, uint count, uint blocks, uint src_blocks, uint begin) {
  const uint i = (uint)get_global_id(0);
  if (i >= count) return;
  const uint row = i / blocks, b = i - row * blocks;
  dst[dst_offset + i] = src[src_offset + (ulong)row * src_blocks + begin + b];
}
