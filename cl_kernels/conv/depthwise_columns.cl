// Depthwise convolutions (a filter of KERNEL_H x KERNEL_W taps for each channel), and the gradient of their filters, of
// images that lie channels-last. An item has a pair of channels and STRIP neighbouring columns of an image at a time. It
// goes down the rows with the filters, or their sums, in registers, reads rows AHEAD of the one that it computes, and
// reads each pixel once. Images are cut into `segments` of `rows` rows of the result, or of diff_dst.
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"
#define TAPS (KERNEL_H * KERNEL_W)
#define UNROLLED _Pragma("unroll")
// Columns of the source that a strip reads, and rows of the result, or of diff_dst, that a row of the source meets.
#define SPAN ((STRIP - 1) * STRIDE + KERNEL_W)
#define PENDING ((KERNEL_H + STRIDE - 1) / STRIDE)
// Items of large filters have many registers, and are too few to hide how long a read takes.
#define AHEAD (KERNEL_W >= 7 ? 2 : 1)

// `span` pixels of row `row` of an image, from column `left` on. Those outside are others, until IN_IMAGE makes them 0: a
// read is not waited for before its turn.
#define READ_ROW(pixels, from, row, left, span, height, width)                                        \
  {                                                                                                    \
    __global const uint *const line_of = (from) + (long)clamp(row, 0, (height)-1) * (width)*pairs;      \
    UNROLLED for (int j = 0; j < (span); ++j)                                                          \
      (pixels)[j] = line_of[(uint)clamp((left) + j, 0, (width)-1) * pairs];                            \
  }
#define IN_IMAGE(pixel, row, column, height, width) \
  ((uint)(row) < (uint)(height) && (uint)(column) < (uint)(width) ? (pixel) : 0)

// The rows of src of turn t, and of the turns after it, on their way: READ_AHEAD stands before the first turn `first`,
// TAKE_ROWS in each.
#define SRC_ROW(t, p) ((t)*STRIDE + (p)-padding_h)
#define READ_TURN(rows_read, from, t)           \
  UNROLLED for (int p = 0; p < STRIDE; ++p)     \
    READ_ROW((rows_read)[p], from, SRC_ROW(t, p), left, SPAN, src_height, src_width)
#define READ_AHEAD(next, from, first)  \
  uint next[AHEAD][STRIDE][SPAN];      \
  UNROLLED for (int a = 0; a < AHEAD; ++a) READ_TURN(next[a], from, (first) + a)
#define TAKE_ROWS(pixels, next, from, t)                                                        \
  uint pixels[STRIDE][SPAN];                                                                    \
  UNROLLED for (int p = 0; p < STRIDE; ++p) UNROLLED for (int j = 0; j < SPAN; ++j) {           \
    pixels[p][j] = IN_IMAGE(next[0][p][j], SRC_ROW(t, p), left + j, src_height, src_width);     \
    UNROLLED for (int a = 1; a < AHEAD; ++a) next[a - 1][p][j] = next[a][p][j];                 \
  }                                                                                             \
  READ_TURN(next[AHEAD - 1], from, (t) + AHEAD)

// Column `column` of all: its image, first place in a row, and rows `first` to `last` of its segment of `height` rows.
#define FIND_COLUMN(column, height)                                                               \
  const uint line = (column) / strips, image = line / segments;                                   \
  const int x = (int)((column)-line * strips) * STRIP;                                            \
  const int first = (int)(line - image * segments) * rows, last = min(first + rows, (int)(height));

#ifndef LANES
// dst(y, x) = Σ src(y·STRIDE − padding + ky, x·STRIDE − padding + kx)·filter(ky, kx), with FLIP by the filters from the last
// tap to the first. `turned` are filters (tap, channel). Turn t reads rows STRIDE·t − padding_h to STRIDE·(t + 1) −
// padding_h − 1 of src and finishes row t − PENDING + 1 of dst.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void depthwise_down(
    __global const uint *restrict src, ulong src_offset, __global const float2 *restrict turned, ulong turned_offset,
    __global uint *dst, ulong dst_offset, uint count, uint pairs, uint strips, uint segments, int rows, int src_height,
    int src_width, int dst_height, int dst_width, int padding_h, int padding_w EPILOGUE_PARAMETERS) {
  const uint item = (uint)get_global_id(0);
  if (item >= count) return;
  const uint column = item / pairs, pair = item - column * pairs;
  FIND_COLUMN(column, dst_height)
  const int left = x * STRIDE - padding_w;
  src += src_offset + (ulong)image * src_height * src_width * pairs + pair;
  float filter[TAPS][2], sums[PENDING][STRIP][2];
  UNROLLED for (int t = 0; t < TAPS; ++t) {
    const float2 values = turned[turned_offset + t * pairs + pair];
    filter[t][0] = values.x;
    filter[t][1] = values.y;
  }
  UNROLLED for (int q = 0; q < PENDING; ++q) UNROLLED for (int i = 0; i < STRIP; ++i) EACH_CHANNEL(e) sums[q][i][e] = 0.0f;
  READ_AHEAD(next, src, first)
#pragma unroll 1
  for (int t = first; t < last + PENDING - 1; ++t) {
    TAKE_ROWS(pixels, next, src, t)
    UNROLLED for (int p = 0; p < STRIDE; ++p) UNROLLED for (int j = 0; j < SPAN; ++j) {
      float values[2];
      read_block(values, pixels[p][j]);
      UNROLLED for (int q = 0; q < PENDING; ++q) UNROLLED for (int i = 0; i < STRIP; ++i) {
        const int ky = STRIDE * q + p, kx = j - i * STRIDE;
        if (ky < KERNEL_H && kx >= 0 && kx < KERNEL_W)
          EACH_CHANNEL(e) sums[q][i][e] = fma(values[e], filter[ky * KERNEL_W + kx][e], sums[q][i][e]);
      }
    }
    // No read of the epilogue waits for a condition or a store.
    const int y = t - PENDING + 1;
    const ulong of_row = ((ulong)image * dst_height + max(y, first)) * dst_width;
    UNROLLED for (int i = 0; i < STRIP; ++i) {
      const ulong at = (of_row + min(x + i, dst_width - 1)) * pairs + pair;
      EPILOGUE_BLOCK(sums[PENDING - 1][i], at, image, pair * 2);
    }
    UNROLLED for (int i = 0; i < STRIP; ++i)
      if (y >= first && x + i < dst_width)
        dst[dst_offset + (of_row + x + i) * pairs + pair] = pair_of(sums[PENDING - 1][i][0], sums[PENDING - 1][i][1]);
    UNROLLED for (int q = PENDING - 1; q >= 0; --q) UNROLLED for (int i = 0; i < STRIP; ++i)
      EACH_CHANNEL(e) sums[q][i][e] = q > 0 ? sums[q > 0 ? q - 1 : 0][i][e] : 0.0f;
  }
}

#else
// partial (part, tap, channel). A group has LANES pairs and a part of `part` columns, of which an item takes every ABOVE-th.
// Turn t reads row t of diff_dst, and rows STRIDE·t − padding_h to STRIDE·(t + 1) − padding_h − 1 of src, which
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
    FIND_COLUMN(column, dst_height)
    const int left = x * STRIDE - padding_w;
    __global const uint *const from = src + src_offset + (ulong)image * src_height * src_width * pairs + pair;
    __global const uint *const diffs =
        diff_dst + diff_dst_offset + (ulong)image * dst_height * dst_width * pairs + pair;
    float diff[PENDING][STRIP][2];
    UNROLLED for (int q = 0; q < PENDING; ++q) UNROLLED for (int i = 0; i < STRIP; ++i) EACH_CHANNEL(e) diff[q][i][e] = 0.0f;
    READ_AHEAD(next, from, first)
    uint next_diff[STRIP];
    READ_ROW(next_diff, diffs, first, x, STRIP, dst_height, dst_width)
#pragma unroll 1
    for (int t = first; t < last + PENDING - 1; ++t) {
      UNROLLED for (int q = PENDING - 1; q > 0; --q) UNROLLED for (int i = 0; i < STRIP; ++i)
        EACH_CHANNEL(e) diff[q][i][e] = diff[q - 1][i][e];
      UNROLLED for (int i = 0; i < STRIP; ++i) read_block(diff[0][i], IN_IMAGE(next_diff[i], t, x + i, last, dst_width));
      READ_ROW(next_diff, diffs, t + 1, x, STRIP, dst_height, dst_width)
      TAKE_ROWS(pixels, next, from, t)
      UNROLLED for (int p = 0; p < STRIDE; ++p) UNROLLED for (int j = 0; j < SPAN; ++j) {
        float values[2];
        read_block(values, pixels[p][j]);
        UNROLLED for (int q = 0; q < PENDING; ++q) UNROLLED for (int i = 0; i < STRIP; ++i) {
          const int ky = STRIDE * q + p, kx = j - i * STRIDE;
          if (ky < KERNEL_H && kx >= 0 && kx < KERNEL_W)
            EACH_CHANNEL(e) sums[ky * KERNEL_W + kx][e] = fma(values[e], diff[q][i][e], sums[ky * KERNEL_W + kx][e]);
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
#endif
