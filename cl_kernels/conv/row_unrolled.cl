// Convolutions of images with few channels as convolutions along columns alone: an unrolled image has at each place what the
// taps of a row meet, `numbers` = channels·kernel width of them, (channel, tap) in blocks of 8, zeros behind them
// (src/opencl/conv/row_unrolled.cpp).
#include "shared/channels_last.h"

// src (N, C, H, W) to blocks of (N, H, oW, numbers). Item (block, oW) of a row of an image.
__kernel void conv_row_unrolled_image(__global const float *restrict src, ulong src_offset, __global uint4 *restrict dst,
                                ulong dst_offset, uint count, uint blocks, uint dst_width, int height, int width,
                                uint channels, uint taps, int stride, int padding, int dilation) {
  const uint item = (uint)get_global_id(0);
  if (item >= count) return;
  const uint place = item / blocks, block = item - place * blocks, row = place / dst_width;
  const uint image = row / (uint)height;
  const int x = (int)(place - row * dst_width) * stride - padding, y = (int)(row - image * height);
  src += src_offset + ((ulong)image * channels * height + y) * width;
  float values[BLOCK_CHANNELS];
  EACH_CHANNEL(e) {
    const uint i = block * BLOCK_CHANNELS + e, channel = min(i / taps, channels - 1);
    const int column = x + (int)(i % taps) * dilation;
    const float value = src[(ulong)channel * height * width + clamp(column, 0, width - 1)];
    values[e] = i < channels * taps && (uint)column < (uint)width ? value : 0.0f;
  }
  dst[dst_offset + item] = block_of(values);
}

// A gradient (O, padded numbers, kH) to (O, C, kH, kW).
__kernel void conv_row_unrolled_gradient(__global const float *restrict unrolled, ulong unrolled_offset,
                                  __global float *restrict gradient, ulong gradient_offset, uint count, uint channels,
                                  uint taps_y, uint taps_x, uint padded) {
  const uint item = (uint)get_global_id(0);
  if (item >= count) return;
  const uint x = item % taps_x, y = item / taps_x % taps_y, kernel_row = item / taps_x / taps_y;
  const uint channel = kernel_row % channels, row = kernel_row / channels;
  gradient[gradient_offset + item] = unrolled[unrolled_offset + (row * padded + channel * taps_x + x) * taps_y + y];
}
