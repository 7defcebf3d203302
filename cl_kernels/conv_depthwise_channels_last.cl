// Depthwise convolutions (a filter of KERNEL_H x KERNEL_W taps for each channel) of images that lie channels-last, and their
// gradients. Filters are first turned to (tap, channel). An item has a block of 8 channels.
#include "channels_last_rows.h"

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#endif
#ifndef EPILOGUE_BLOCK
#define EPILOGUE_BLOCK(values, at, image, channel)
#endif
#define TAPS (KERNEL_H * KERNEL_W)

// weights (channel, tap) to (tap, channel), with FLIP from the last tap to the first.
__kernel void depthwise_turn(__global const float *restrict weights, ulong weights_offset, __global float *restrict turned,
                             ulong turned_offset, uint channels) {
  const uint item = (uint)get_global_id(0), tap = item / channels, channel = item - tap * channels;
  if (tap >= TAPS) return;
#ifdef FLIP
  turned[turned_offset + item] = weights[weights_offset + channel * TAPS + TAPS - 1 - tap];
#else
  turned[turned_offset + item] = weights[weights_offset + channel * TAPS + tap];
#endif
}

#define SOURCE_AND_RESULT                                                                                            \
  __global const uint4 *restrict src, ulong src_offset, __global const float *restrict turned, ulong turned_offset,   \
      __global uint4 *dst, ulong dst_offset, uint count, uint blocks, uint strips, int src_height, int src_width,     \
      int dst_height, int dst_width, int padding_h, int padding_w EPILOGUE_PARAMETERS
// Row `y` of `image` and the item's block; x counts strips.
#define FIND_STRIP                                                                                        \
  const uint item = (uint)get_global_id(0);                                                               \
  if (item >= count) return;                                                                              \
  const uint place = item / blocks, block = item - place * blocks, line = place / strips;                  \
  const uint image = line / (uint)dst_height, channels = blocks * BLOCK_CHANNELS;                          \
  const int y = (int)(line - image * dst_height), x = (int)(place - line * strips) * STRIP;                \
  src += src_offset + (ulong)image * src_height * src_width * blocks + block;                              \
  turned += turned_offset + block * BLOCK_CHANNELS;

// dst(y, x) = Σ src(y·STRIDE − padding + ky, x·STRIDE − padding + kx)·filter(ky, kx): forward, and with flipped filters the
// data gradient of stride 1. An item owns STRIP neighbouring places of a line.
#define STRIP_COLUMNS ((STRIP - 1) * STRIDE + KERNEL_W)
__kernel void depthwise_gather(SOURCE_AND_RESULT) {
  FIND_STRIP
  float sums[STRIP][BLOCK_CHANNELS];
#pragma unroll
  for (int i = 0; i < STRIP; ++i) EACH_CHANNEL(e) sums[i][e] = 0.0f;
  const int top = y * STRIDE - padding_h, left = x * STRIDE - padding_w;
#pragma unroll
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
#pragma unroll
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      float filter[BLOCK_CHANNELS];
      EACH_CHANNEL(e) filter[e] = turned[(ky * KERNEL_W + kx) * channels + e];
#pragma unroll
      for (int i = 0; i < STRIP; ++i) {
        float values[BLOCK_CHANNELS];
        read_block(values, pixels[i * STRIDE + kx]);
        EACH_CHANNEL(e) sums[i][e] += values[e] * filter[e];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < STRIP; ++i) {
    if (x + i >= dst_width) break;
    const ulong at = ((ulong)line * dst_width + x + i) * blocks + block;
    EPILOGUE_BLOCK(sums[i], at, image, block * BLOCK_CHANNELS);
    dst[dst_offset + at] = block_of(sums[i]);
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
      EACH_CHANNEL(e) sums[e] += values[e] * turned[(ky * KERNEL_W + kx) * channels + e];
    }
  }
  dst[dst_offset + item] = block_of(sums);
}

// The gradient of row group_id(2) of the filters: partial (part, tap, channel). Rows of the grid are places of diff_dst,
// `places` an image.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void depthwise_weights(
    __global const uint4 *restrict src, ulong src_offset, __global const uint4 *restrict diff_dst, ulong diff_dst_offset,
    __global float *restrict partial, ulong partial_offset, int src_height, int src_width, uint dst_width, int padding_h,
    int padding_w, SIZES) {
  __local float scratch[BLOCK_CHANNELS * THREADS];
  PLACE;
  const int ky = (int)get_group_id(2);
  src += src_offset + block;
  diff_dst += diff_dst_offset + block;
  float sums[KERNEL_W][BLOCK_CHANNELS];
#pragma unroll
  for (int kx = 0; kx < KERNEL_W; ++kx) EACH_CHANNEL(e) sums[kx][e] = 0.0f;
  for (uint row = begin + row_number; row < end; row += ROWS) {
    const uint image = row / places, in_image = row - image * places, y = in_image / dst_width;
    const int from_y = (int)y * STRIDE - padding_h + ky, left = (int)(in_image - y * dst_width) * STRIDE - padding_w;
    const bool is_row = (uint)from_y < (uint)src_height;
    const ulong line = ((ulong)image * src_height + clamp(from_y, 0, src_height - 1)) * src_width;
    float diff[BLOCK_CHANNELS];
    read_block(diff, diff_dst[(ulong)row * blocks]);
    uint4 pixels[KERNEL_W];
#pragma unroll
    for (int kx = 0; kx < KERNEL_W; ++kx) pixels[kx] = src[(line + clamp(left + kx, 0, src_width - 1)) * blocks];
#pragma unroll
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      float values[BLOCK_CHANNELS];
      read_block(values, pixels[kx]);
      const bool is_inside = is_row && (uint)(left + kx) < (uint)src_width;
      EACH_CHANNEL(e) sums[kx][e] += is_inside ? values[e] * diff[e] : 0.0f;
    }
  }
  partial += partial_offset + ((ulong)get_group_id(1) * TAPS + ky * KERNEL_W) * channels + channel;
#pragma unroll
  for (int kx = 0; kx < KERNEL_W; ++kx) {
    sum_rows(sums[kx], scratch);
    if (item < LANES && is_block) EACH_CHANNEL(e) partial[kx * channels + e] = sums[kx][e];
  }
}

// gradient (channel, tap): the sum of the parts, in order. An item has a tap of a channel.
__kernel void depthwise_weights_join(__global const float *restrict partial, ulong partial_offset,
                                     __global float *restrict gradient, ulong gradient_offset, uint channels, uint parts) {
  const uint item = (uint)get_global_id(0), tap = item / channels, channel = item - tap * channels;
  if (tap >= TAPS) return;
  partial += partial_offset + item;
  float sum = 0.0f;
#pragma unroll 8
  for (uint part = 0; part < parts; ++part) sum += partial[(ulong)part * TAPS * channels];
  gradient[gradient_offset + channel * TAPS + tap] = sum;
}
