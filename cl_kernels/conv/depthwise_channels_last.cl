// The data gradients of depthwise convolutions (a filter of KERNEL_H x KERNEL_W taps for each channel) of images that lie
// channels-last. Filters are first turned to (tap, channel), for stride 1 from the last tap to the first. An item has a
// block of 8 channels.
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"
#define TAPS (KERNEL_H * KERNEL_W)

#define SOURCE_AND_RESULT                                                                                            \
  __global const uint4 *restrict src, ulong src_offset, __global const float4 *restrict turned, ulong turned_offset,  \
      __global uint4 *dst, ulong dst_offset, uint count, uint blocks, uint strips, int src_height, int src_width,     \
      int dst_height, int dst_width, int padding_h, int padding_w EPILOGUE_PARAMETERS
// Row `y` of `image` and the item's block; x counts strips.
#define FIND_STRIP                                                                                        \
  const uint item = (uint)get_global_id(0);                                                               \
  if (item >= count) return;                                                                              \
  const uint place = item / blocks, block = item - place * blocks, line = place / strips;                  \
  const uint image = line / (uint)dst_height, tap_fours = blocks * 2;                                      \
  const int y = (int)(line - image * dst_height), x = (int)(place - line * strips) * STRIP;                \
  src += src_offset + (ulong)image * src_height * src_width * blocks + block;                              \
  turned += turned_offset + block * 2;
// The filters' values of a tap for the item's channels.
#define READ_FILTER(filter, tap)                                                             \
  const float4 low = turned[(tap) * tap_fours], high = turned[(tap) * tap_fours + 1];         \
  const float filter[BLOCK_CHANNELS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};

// dst(y, x) = Σ src(y·STRIDE − padding + ky, x·STRIDE − padding + kx)·filter(ky, kx): with flipped filters the data gradient
// of stride 1. An item owns STRIP neighbouring places of a row.
#define STRIP_COLUMNS ((STRIP - 1) * STRIDE + KERNEL_W)
__kernel void depthwise_gather(SOURCE_AND_RESULT) {
  FIND_STRIP
  float sums[STRIP][BLOCK_CHANNELS];
#pragma unroll
  for (int i = 0; i < STRIP; ++i) EACH_CHANNEL(e) sums[i][e] = 0.0f;
  const int top = y * STRIDE - padding_h, left = x * STRIDE - padding_w;
#pragma unroll 1  // a row's pixels at a time in registers
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int row = top + ky;
    const bool is_row = (uint)row < (uint)src_height;
    __global const uint4 *const from = src + (long)clamp(row, 0, src_height - 1) * src_width * blocks;
    uint4 pixels[STRIP_COLUMNS];
#pragma unroll
    for (int j = 0; j < STRIP_COLUMNS; ++j) {
      const uint4 pixel = from[(ulong)clamp(left + j, 0, src_width - 1) * blocks];
      pixels[j] = is_row && (uint)(left + j) < (uint)src_width ? pixel : (uint4)(0);
    }
    float filters[KERNEL_W][BLOCK_CHANNELS];
#pragma unroll
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      READ_FILTER(filter, ky * KERNEL_W + kx)
      EACH_CHANNEL(e) filters[kx][e] = filter[e];
    }
#pragma unroll
    for (int j = 0; j < STRIP_COLUMNS; ++j) {
      float values[BLOCK_CHANNELS];
      read_block(values, pixels[j]);
#pragma unroll
      for (int i = 0; i < STRIP; ++i) {
        const int kx = j - i * STRIDE;
        if (kx >= 0 && kx < KERNEL_W) EACH_CHANNEL(e) sums[i][e] = fma(values[e], filters[kx][e], sums[i][e]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < STRIP; ++i) {
    const ulong at = ((ulong)line * dst_width + min(x + i, dst_width - 1)) * blocks + block;
    EPILOGUE_BLOCK(sums[i], at, image, block * BLOCK_CHANNELS);
    if (x + i < dst_width) dst[dst_offset + at] = block_of(sums[i]);
  }
}

// The data gradient of stride STRIDE: dst is diff_src, src is diff_dst. STRIP is 1.
__kernel void depthwise_scatter(SOURCE_AND_RESULT) {
  FIND_STRIP
  float sums[BLOCK_CHANNELS];
  EACH_CHANNEL(e) sums[e] = 0.0f;
#pragma unroll
  for (int ky = 0; ky < KERNEL_H; ++ky) {
    const int row = y + padding_h - ky;
    if (row < 0 || row % STRIDE != 0 || row / STRIDE >= src_height) continue;
#pragma unroll
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int column = x + padding_w - kx;
      if (column < 0 || column % STRIDE != 0 || column / STRIDE >= src_width) continue;
      float values[BLOCK_CHANNELS];
      read_block(values, src[((ulong)(row / STRIDE) * src_width + column / STRIDE) * blocks]);
      READ_FILTER(filter, ky * KERNEL_W + kx)
      EACH_CHANNEL(e) sums[e] = fma(values[e], filter[e], sums[e]);
    }
  }
  EPILOGUE_BLOCK(sums, item, image, block * BLOCK_CHANNELS);
  dst[dst_offset + item] = block_of(sums);
}
