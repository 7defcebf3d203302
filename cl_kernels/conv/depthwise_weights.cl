// The gradient of the weights of a depthwise convolution of images on GPUs; see conv/depthwise_strips.h. A work-group adds
// up a part of the strips of one output's planes, all taps at once, each item in registers; then its items' sums in a
// tree; conv_depthwise_weights_combine adds up the parts. Bytes: src and diff_dst once (src MULTIPLIER times); 2·taps
// FLOPs a value of diff_dst.
#include "conv/depthwise_strips.h"

// As many taps are added up at once as the local memory holds: 9·THREADS floats.
#define AT_ONCE (TAPS < 9 ? TAPS : 9)

// Group (part, output). partial (parts, outputs, TAPS). Strips count over the images: `all_strips` of them, `strips` an
// image, `part_strips` a part.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void conv_depthwise_weights_add(
    __global const float *restrict src, ulong src_offset, __global const float *restrict diff_dst, ulong diff_dst_offset,
    __global float *restrict partial, ulong partial_offset, uint outputs, uint all_strips, uint part_strips, int height,
    int width, int dst_height, DIVISOR(dst_width), DIVISOR(strips)) {
  __local float shared[AT_ONCE * THREADS];
  const uint item = (uint)get_local_id(0), part = (uint)get_group_id(0), output = (uint)get_group_id(1);
  const uint src_plane = (uint)(height * width), dst_plane = (uint)dst_height * dst_width;
  const uint begin = part * part_strips, columns = min(part_strips, all_strips - begin) * dst_width;
  src += src_offset + (ulong)(output / MULTIPLIER) * src_plane;
  diff_dst += diff_dst_offset + (ulong)output * dst_plane;

  float sums[TAPS];
#pragma unroll
  for (int t = 0; t < TAPS; ++t) sums[t] = 0.0f;
  for (uint column = item; column < columns; column += THREADS) {
    const uint in_part = DIVIDE(column, dst_width), x = column - in_part * dst_width, strip = begin + in_part;
    const uint image = DIVIDE(strip, strips);
    const int first = (int)(strip - image * strips) * STRIP;
    const int top = first * STRIDE_H - PADDING_H, left = (int)x * STRIDE_W - PADDING_W;
    __global const float *line = src + (ulong)image * (outputs / MULTIPLIER) * src_plane + (top * width + left);
    __global const float *diff = diff_dst + (ulong)image * outputs * dst_plane + ((uint)first * dst_width + x);
    bool inside[KERNEL_W];
#pragma unroll
    for (int kx = 0; kx < KERNEL_W; ++kx) inside[kx] = (uint)(left + kx) < (uint)width;
    float diffs[STRIP];
#pragma unroll
    for (int i = 0; i < STRIP; ++i, diff += dst_width) diffs[i] = LOAD_IF(first + i < dst_height, diff, 0);
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
        for (int kx = 0; kx < KERNEL_W; ++kx) sums[ky * KERNEL_W + kx] += diffs[i] * pixels[kx];
      }
    }
  }

  partial += partial_offset + ((ulong)part * outputs + output) * TAPS;
#pragma unroll
  for (uint t0 = 0; t0 < TAPS; t0 += AT_ONCE) {
#pragma unroll
    for (uint t = 0; t < AT_ONCE; ++t) {
      if (t0 + t < TAPS) shared[t * THREADS + item] = sums[t0 + t];
    }
    const uint taps = min((uint)AT_ONCE, TAPS - t0);
    for (int bit = 30 - (int)clz((uint)THREADS); bit >= 0; --bit) {
      const uint half_size = 1u << bit;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (uint i = item; i < taps << bit; i += THREADS) {
        const uint place = (i >> bit) * THREADS + (i & (half_size - 1));
        shared[place] += shared[place + half_size];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < taps) partial[t0 + item] = shared[item * THREADS];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// A group of 64 items adds up the parts of 8 weights, each by 8 items that take parts in turn.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void conv_depthwise_weights_combine(
    __global const float *restrict partial, ulong partial_offset, __global float *restrict diff_weights,
    ulong diff_weights_offset, uint weights, uint parts) {
  __local float shared[64];
  const uint item = (uint)get_local_id(0), lane = item / 8, weight = (uint)get_group_id(0) * 8 + item % 8;
  float sum = 0.0f;
  if (weight < weights) {
    for (uint part = lane; part < parts; part += 8) sum += partial[partial_offset + (ulong)part * weights + weight];
  }
  shared[item] = sum;
  for (uint half_size = 32; half_size > 4; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) shared[item] += shared[item + half_size];
  }
  if (item < 8 && weight < weights) diff_weights[diff_weights_offset + weight] = shared[item];
}
