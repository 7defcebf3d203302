// The gradient of the filters of a depthwise convolution (KERNEL_H x KERNEL_W taps for each channel) of images that lie
// channels-last. An item has a pair of channels and STRIP neighbouring columns of an image at a time. It goes down the rows
// with all sums in registers, reads a row while it adds up the one before, and reads each pixel once. Images are cut into
// `segments` of `rows` rows of diff_dst where they are too few for the device.
#include "shared/channels_last.h"
#define TAPS (KERNEL_H * KERNEL_W)
#define UNROLLED _Pragma("unroll")
// Columns of the source that a strip reads, and rows of diff_dst that a row of the source meets.
#define SPAN ((STRIP - 1) * STRIDE + KERNEL_W)
#define PENDING ((KERNEL_H + STRIDE - 1) / STRIDE)

// `span` pixels of row `row` of an image, from column `left` on; 0 outside.
#define READ_ROW(pixels, from, row, left, span, height, width)                                        \
  {                                                                                                    \
    const bool is_row = (uint)(row) < (uint)(height);                                                  \
    __global const uint *const line_of = (from) + (long)clamp(row, 0, (height)-1) * (width)*pairs;      \
    UNROLLED for (int j = 0; j < (span); ++j) {                                                        \
      const uint pixel = line_of[(uint)clamp((left) + j, 0, (width)-1) * pairs];                       \
      (pixels)[j] = is_row && (uint)((left) + j) < (uint)(width) ? pixel : 0;                          \
    }                                                                                                  \
  }

// partial (part, tap, channel). A group has LANES pairs and a part of `part` columns; its items (lane, number) are ABOVE above
// each other. Turn t reads row t of diff_dst, and rows STRIDE·t − padding_h to STRIDE·(t + 1) − padding_h − 1 of src, which
// it and the PENDING − 1 rows before it meet.
#define ABOVE (THREADS / LANES)
#define TAPS_AT_ONCE 8
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void depthwise_weights(
    __global const uint *restrict src, ulong src_offset, __global const uint *restrict diff_dst, ulong diff_dst_offset,
    __global float2 *restrict partial, ulong partial_offset, uint columns, uint part, uint pairs, uint strips,
    uint segments, int rows, int src_height, int src_width, int dst_height, int dst_width, int padding_h,
    int padding_w) {
  __local float2 scratch[TAPS_AT_ONCE][THREADS];
  const uint item = (uint)get_local_id(0), lane = item % LANES, first_pair = (uint)get_group_id(0) * LANES;
  const uint pair = min(first_pair + lane, pairs - 1);
  float sums[TAPS][2];
  UNROLLED for (int t = 0; t < TAPS; ++t) EACH_CHANNEL(e) sums[t][e] = 0.0f;
  const uint end = min(columns, ((uint)get_group_id(1) + 1) * part);
#pragma unroll 1
  for (uint column = (uint)get_group_id(1) * part + item / LANES; column < end; column += ABOVE) {
    const uint line = column / strips, image = line / segments;
    const int x = (int)(column - line * strips) * STRIP;
    const int first = (int)(line - image * segments) * rows, last = min(first + rows, dst_height);
    const int left = x * STRIDE - padding_w;
    __global const uint *const from = src + src_offset + (ulong)image * src_height * src_width * pairs + pair;
    __global const uint *const diffs =
        diff_dst + diff_dst_offset + (ulong)image * dst_height * dst_width * pairs + pair;
    float diff[PENDING][STRIP][2];
    UNROLLED for (int q = 0; q < PENDING; ++q) UNROLLED for (int i = 0; i < STRIP; ++i) EACH_CHANNEL(e) diff[q][i][e] = 0.0f;
    uint next[STRIDE][SPAN], next_diff[STRIP];
    UNROLLED for (int p = 0; p < STRIDE; ++p)
      READ_ROW(next[p], from, first * STRIDE + p - padding_h, left, SPAN, src_height, src_width)
    READ_ROW(next_diff, diffs, first, x, STRIP, last, dst_width)
#pragma unroll 1
    for (int t = first; t < last + PENDING - 1; ++t) {
      UNROLLED for (int q = PENDING - 1; q > 0; --q) UNROLLED for (int i = 0; i < STRIP; ++i)
        EACH_CHANNEL(e) diff[q][i][e] = diff[q - 1][i][e];
      UNROLLED for (int i = 0; i < STRIP; ++i) read_block(diff[0][i], next_diff[i]);
      READ_ROW(next_diff, diffs, t + 1, x, STRIP, last, dst_width)
      uint pixels[STRIDE][SPAN];
      UNROLLED for (int p = 0; p < STRIDE; ++p) {
        UNROLLED for (int j = 0; j < SPAN; ++j) pixels[p][j] = next[p][j];
        READ_ROW(next[p], from, (t + 1) * STRIDE + p - padding_h, left, SPAN, src_height, src_width)
      }
      UNROLLED for (int p = 0; p < STRIDE; ++p) UNROLLED for (int j = 0; j < SPAN; ++j) {
        float values[2];
        read_block(values, pixels[p][j]);
        UNROLLED for (int q = 0; q < PENDING; ++q) UNROLLED for (int i = 0; i < STRIP; ++i) {
          const int ky = STRIDE * q + p, kx = j - i * STRIDE;
          if (ky < KERNEL_H && kx >= 0 && kx < KERNEL_W)
            EACH_CHANNEL(e) sums[ky * KERNEL_W + kx][e] += values[e] * diff[q][i][e];
        }
      }
    }
  }
  partial += partial_offset + (ulong)get_group_id(1) * TAPS * pairs;
  UNROLLED for (int begin = 0; begin < TAPS; begin += TAPS_AT_ONCE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLLED for (int t = begin; t < begin + TAPS_AT_ONCE; ++t)
      if (t < TAPS) scratch[t - begin][item] = (float2)(sums[t < TAPS ? t : 0][0], sums[t < TAPS ? t : 0][1]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < TAPS_AT_ONCE * LANES; i += THREADS) {
      const uint tap = begin + i / LANES, own = first_pair + i % LANES;
      if (tap >= TAPS || own >= pairs) continue;
      float2 total = scratch[i / LANES][i % LANES];
      for (uint above = 1; above < ABOVE; ++above) total += scratch[i / LANES][above * LANES + i % LANES];
      partial[tap * pairs + own] = total;
    }
  }
}

// gradient (channel, tap): the sum of the parts, in order. A group has SIDE places of (tap, channel) and divides the parts among
// its ROWS rows of items.
#define SIDE 32
__kernel __attribute__((reqd_work_group_size(SIDE, ROWS, 1))) void depthwise_weights_join(
    __global const float *restrict partial, ulong partial_offset, __global float *restrict gradient,
    ulong gradient_offset, uint channels, uint parts) {
  __local float scratch[ROWS][SIDE];
  const uint place = (uint)get_global_id(0), row = (uint)get_local_id(1), column = (uint)get_local_id(0);
  const uint all = TAPS * channels, each = (parts + ROWS - 1) / ROWS;
  partial += partial_offset + min(place, all - 1);
  float sum = 0.0f;
#pragma unroll 8
  for (uint part = row * each; part < min(parts, (row + 1) * each); ++part) sum += partial[(ulong)part * all];
  scratch[row][column] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (row > 0 || place >= all) return;
  for (uint r = 1; r < ROWS; ++r) sum += scratch[r][column];
  const uint tap = place / channels, channel = place - tap * channels;
  gradient[gradient_offset + channel * TAPS + tap] = sum;
}
