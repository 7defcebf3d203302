// Depthwise convolution of images and its data gradient on GPUs; see conv/depthwise_strips.h. Bytes: src (diff_dst) and
// dst (diff_src) once, with a cache that holds a window's columns and the rows where strips meet; 2·taps FLOPs a value of
// dst. See gemm/operands.h for EPILOGUE.
#include "conv/depthwise_strips.h"

#ifndef EPILOGUE
#define EPILOGUE_PARAMETERS
#define EPILOGUE(value, z, m, n_outer, n_inner) (value)
#endif

// Item: column of a strip, strip, plane of dst (images, outputs). `items` of them.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void conv_depthwise_strips_forward(
    __global const float *restrict src, ulong src_offset, __global const float *restrict weights, ulong weights_offset,
    __global float *restrict dst, ulong dst_offset, uint items, int height, int width, int dst_height,
    DIVISOR(dst_width), DIVISOR(strips), DIVISOR(outputs) EPILOGUE_PARAMETERS) {
  const uint item = (uint)get_global_id(0);
  if (item >= items) return;
  const uint strip = DIVIDE(item, dst_width), x = item - strip * dst_width;
  const uint plane = DIVIDE(strip, strips), image = DIVIDE(plane, outputs), output = plane - image * outputs;
  const int first = (int)(strip - plane * strips) * STRIP;
  const int top = first * STRIDE_H - PADDING_H, left = (int)x * STRIDE_W - PADDING_W;
  src += src_offset + (ulong)(plane / MULTIPLIER) * (uint)(height * width);
  weights += weights_offset + output * TAPS;

  float taps[TAPS];
#pragma unroll
  for (int t = 0; t < TAPS; ++t) taps[t] = weights[t];
  bool inside[KERNEL_W];
#pragma unroll
  for (int kx = 0; kx < KERNEL_W; ++kx) inside[kx] = (uint)(left + kx) < (uint)width;
  float sums[STRIP];
#pragma unroll
  for (int i = 0; i < STRIP; ++i) sums[i] = 0.0f;
  __global const float *line = src + (top * width + left);
#pragma unroll
  for (int r = 0; r < STRIP_ROWS; ++r, line += width) {
    const bool is_row = (uint)(top + r) < (uint)height;
    float pixels[KERNEL_W];
#pragma unroll
    for (int kx = 0; kx < KERNEL_W; ++kx) pixels[kx] = LOAD_IF(is_row & inside[kx], line, kx);
#pragma unroll
    for (int i = 0; i < STRIP; ++i) {
      const int ky = r - i * STRIDE_H;
      if (ky < 0 || ky >= KERNEL_H) continue;
#pragma unroll
      for (int kx = 0; kx < KERNEL_W; ++kx) sums[i] += taps[ky * KERNEL_W + kx] * pixels[kx];
    }
  }

  const int rows = min(STRIP, dst_height - first);
  const uint place = (uint)first * dst_width + x;
#pragma unroll
  for (int i = 0; i < STRIP; ++i) {
    if (i < rows) {
      sums[i] = EPILOGUE(sums[i], output / MULTIPLIER, output % MULTIPLIER, image, place + i * dst_width);
    }
  }
  dst += dst_offset + (ulong)plane * ((uint)dst_height * dst_width) + place;
#pragma unroll
  for (int i = 0; i < STRIP; ++i) {
    if (i < rows) dst[i * dst_width] = sums[i];
  }
}

// The data gradient in blocks of STRIDE_H × STRIDE_W pixels: block (i, j) has the pixels (i·STRIDE_H + e, j·STRIDE_W + f),
// and meets diff_dst(i + r, j + q) by the tap (e + PADDING_H − r·STRIDE_H, f + PADDING_W − q·STRIDE_W), if there is one.
// So nothing is multiplied by zeros between pixels. The least and largest r and q:
#define FLOOR_DIVIDE(a, b) (((a) + 64 * (b)) / (b) - 64)
#define FIRST_R FLOOR_DIVIDE(PADDING_H - KERNEL_H + STRIDE_H, STRIDE_H)
#define LAST_R FLOOR_DIVIDE(STRIDE_H - 1 + PADDING_H, STRIDE_H)
#define FIRST_Q FLOOR_DIVIDE(PADDING_W - KERNEL_W + STRIDE_W, STRIDE_W)
#define LAST_Q FLOOR_DIVIDE(STRIDE_W - 1 + PADDING_W, STRIDE_W)

#if STRIDE_W == 2
// Two neighbours of a row; `is_aligned` where a row's pairs lie at multiples of their size.
#define STORE_BLOCK(p, values, count)                          \
  if (is_aligned) {                                            \
    *(__global float2 *)(p) = (float2)((values)[0], (values)[1]); \
  } else {                                                     \
    (p)[0] = (values)[0];                                      \
    if ((count) > 1) (p)[1] = (values)[1];                     \
  }
#else
#define STORE_BLOCK(p, values, count) (p)[0] = (values)[0];
#endif

// Item: column of blocks, strip of STRIP blocks, plane of diff_src (images, channels). `items` of them; `blocks` a row.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void conv_depthwise_strips_backward_data(
    __global const float *restrict diff_dst, ulong diff_dst_offset, __global const float *restrict weights,
    ulong weights_offset, __global float *restrict diff_src, ulong diff_src_offset, uint items, int height, int width,
    int dst_height, int dst_width, DIVISOR(blocks), DIVISOR(strips), DIVISOR(channels) EPILOGUE_PARAMETERS) {
  const uint item = (uint)get_global_id(0);
  if (item >= items) return;
  const uint strip = DIVIDE(item, blocks), j = item - strip * blocks;
  const uint plane = DIVIDE(strip, strips), image = DIVIDE(plane, channels), channel = plane - image * channels;
  const int first = (int)(strip - plane * strips) * STRIP;
  diff_dst += diff_dst_offset + (ulong)plane * MULTIPLIER * (uint)(dst_height * dst_width);
  weights += weights_offset + channel * (MULTIPLIER * TAPS);

  bool inside[LAST_Q - FIRST_Q + 1];
#pragma unroll
  for (int q = FIRST_Q; q <= LAST_Q; ++q) inside[q - FIRST_Q] = (uint)((int)j + q) < (uint)dst_width;
  float sums[STRIP * STRIDE_H][STRIDE_W];
#pragma unroll
  for (int i = 0; i < STRIP * STRIDE_H; ++i) {
#pragma unroll
    for (int f = 0; f < STRIDE_W; ++f) sums[i][f] = 0.0f;
  }
  for (uint m = 0; m < MULTIPLIER; ++m) {
    float taps[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) taps[t] = weights[m * TAPS + t];
    __global const float *line = diff_dst + ((first + FIRST_R) * dst_width + (int)j);
#pragma unroll
    for (int r = FIRST_R; r < STRIP + LAST_R; ++r, line += dst_width) {
      const bool is_row = (uint)(first + r) < (uint)dst_height;
      float pixels[LAST_Q - FIRST_Q + 1];
#pragma unroll
      for (int q = FIRST_Q; q <= LAST_Q; ++q) {
        pixels[q - FIRST_Q] = LOAD_IF(is_row & inside[q - FIRST_Q], line, q);
      }
#pragma unroll
      for (int i = 0; i < STRIP * STRIDE_H; ++i) {
        const int ky = i + PADDING_H - r * STRIDE_H;
        if (ky < 0 || ky >= KERNEL_H) continue;
#pragma unroll
        for (int q = FIRST_Q; q <= LAST_Q; ++q) {
#pragma unroll
          for (int f = 0; f < STRIDE_W; ++f) {
            const int kx = f + PADDING_W - q * STRIDE_W;
            if (kx >= 0 && kx < KERNEL_W) sums[i][f] += taps[ky * KERNEL_W + kx] * pixels[q - FIRST_Q];
          }
        }
      }
    }
    diff_dst += dst_height * dst_width;
  }

  const int x = (int)j * STRIDE_W, y = first * STRIDE_H, rows = min(STRIP * STRIDE_H, height - y);
#if STRIDE_W == 2
  const bool is_aligned = ((uint)diff_src_offset & 1) == 0 && (width & 1) == 0;
#endif
  const uint place = (uint)(y * width + x);
  diff_src += diff_src_offset + (ulong)plane * (uint)(height * width) + place;
#pragma unroll
  for (int i = 0; i < STRIP * STRIDE_H; ++i) {
    if (i < rows) {
#pragma unroll
      for (int f = 0; f < STRIDE_W; ++f) {
        if (f < width - x) sums[i][f] = EPILOGUE(sums[i][f], channel, 0u, image, place + (uint)(i * width + f));
      }
      STORE_BLOCK(diff_src + i * width, sums[i], width - x)
    }
  }
}
