// Max and average pooling of images that lie channels-last, and their gradients, which gather: each src element adds up the
// windows that hold it, in order, and may have an epilogue (block_epilogue). A work-item owns a block of 8 channels at a place
// of the result. Definitions are those of ops/pool.cl, without VOLUME, and for max pooling without ADAPTIVE.
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"
#include "ops/pool_windows.h"

#define depth 1
#define dst_depth 1
#define padding_d 0

#define SIZES(NUMBER)                                                             \
  NUMBER(uint, count) NUMBER(uint, blocks) NUMBER(int, height) NUMBER(int, width) \
  NUMBER(int, dst_height) NUMBER(int, dst_width) NUMBER(int, padding_h) NUMBER(int, padding_w)
typedef struct { MAX_FORWARD_NUMBERS(NUMBER_MEMBER) } max_forward_numbers;
typedef struct { MAX_BACKWARD_NUMBERS(NUMBER_MEMBER) } max_backward_numbers;
typedef struct { AVERAGE_FORWARD_NUMBERS(NUMBER_MEMBER) } average_forward_numbers;
typedef struct { AVERAGE_BACKWARD_NUMBERS(NUMBER_MEMBER) } average_backward_numbers;
#define FIND_PLACE(item_height, item_width)                                              \
  const uint item = (uint)get_global_id(0);                                              \
  if (item >= count) return;                                                             \
  const uint place = item / blocks, block = item - place * blocks, row = place / item_width; \
  const uint image = row / item_height;                                                  \
  const int z = 0, y = (int)(row - image * item_height), x = (int)(place - row * item_width);

__kernel void pool_max_forward(__global const uint4 *restrict src, __global uint4 *restrict dst,
                               __global int4 *restrict indices, const max_forward_numbers numbers) {
  MAX_FORWARD_NUMBERS(NUMBER_CONSTANT)
  FIND_PLACE(dst_height, dst_width)
  src += src_offset + (ulong)image * height * width * blocks + block;
  float best[BLOCK_CHANNELS];
  int places[BLOCK_CHANNELS];
  EACH_CHANNEL(e) {
    best[e] = -INFINITY;
    places[e] = -1;
  }
  const int top = BEGIN_H(y), left = BEGIN_W(x);
#pragma unroll
  for (int i = 0; i < KERNEL_H; ++i) {
#pragma unroll
    for (int j = 0; j < KERNEL_W; ++j) {
      const int r = top + i * DILATION_H, q = left + j * DILATION_W;
      const bool is_inside = (uint)r < (uint)height && (uint)q < (uint)width;
      const int here = clamp(r, 0, height - 1) * width + clamp(q, 0, width - 1);
      float values[BLOCK_CHANNELS];
      read_block(values, src[(ulong)here * blocks]);
      EACH_CHANNEL(e) {
        const bool wins = places[e] < 0 || values[e] > best[e] || (isnan(values[e]) && !isnan(best[e]));
        best[e] = is_inside && wins ? values[e] : best[e];
        places[e] = is_inside && wins ? here : places[e];
      }
    }
  }
  dst[dst_offset + item] = block_of(best);
  indices += indices_offset + 2ul * item;
  indices[0] = (int4)(places[0], places[1], places[2], places[3]);
  indices[1] = (int4)(places[4], places[5], places[6], places[7]);
}

__kernel void pool_max_backward(__global const uint4 *restrict diff_dst, __global const int4 *restrict indices,
                                __global uint4 *restrict diff_src, const max_backward_numbers numbers EPILOGUE_PARAMETERS) {
  MAX_BACKWARD_NUMBERS(NUMBER_CONSTANT)
  FIND_PLACE(height, width)
  const ulong from = (ulong)image * dst_height * dst_width * blocks + block;
  const int here = y * width + x;
  float sums[BLOCK_CHANNELS];
  EACH_CHANNEL(e) sums[e] = 0.0f;
  EACH_WINDOW {
    const ulong i = from + (ulong)(oz * dst_height * dst_width + oy * dst_width + ox) * blocks;
    float values[BLOCK_CHANNELS];
    read_block(values, diff_dst[diff_dst_offset + i]);
    const int4 low = indices[indices_offset + 2 * i], high = indices[indices_offset + 2 * i + 1];
    const int places[BLOCK_CHANNELS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    EACH_CHANNEL(e) sums[e] += places[e] == here ? values[e] : 0.0f;
  }
  EPILOGUE_BLOCK(sums, item, image, block * BLOCK_CHANNELS);
  diff_src[diff_src_offset + item] = block_of(sums);
}

__kernel void pool_average_forward(__global const uint4 *restrict src, __global uint4 *restrict dst,
                                   const average_forward_numbers numbers) {
  AVERAGE_FORWARD_NUMBERS(NUMBER_CONSTANT)
  FIND_PLACE(dst_height, dst_width)
  src += src_offset + (ulong)image * height * width * blocks + block;
  const int top = BEGIN_H(y), left = BEGIN_W(x), bottom = END_H(y, top), right = END_W(x, left);
  float sums[BLOCK_CHANNELS];
  EACH_CHANNEL(e) sums[e] = 0.0f;
  for (int r = max(top, 0); r < min(bottom, height); ++r) {
    // No read waits for a condition.
#pragma unroll 4
    for (int q = left; q < right; ++q) {
      float values[BLOCK_CHANNELS];
      read_block(values, src[(ulong)(r * width + clamp(q, 0, width - 1)) * blocks]);
      EACH_CHANNEL(e) sums[e] += (uint)q < (uint)width ? values[e] : 0.0f;
    }
  }
  const float share = 1.0f / WINDOW_SIZE(z, z + 1, top, bottom, left, right);
  EACH_CHANNEL(e) sums[e] *= share;
  dst[dst_offset + item] = block_of(sums);
}

__kernel void pool_average_backward(__global const uint4 *restrict diff_dst, __global uint4 *restrict diff_src,
                                    const average_backward_numbers numbers EPILOGUE_PARAMETERS) {
  AVERAGE_BACKWARD_NUMBERS(NUMBER_CONSTANT)
  FIND_PLACE(height, width)
  diff_dst += diff_dst_offset + (ulong)image * dst_height * dst_width * blocks + block;
  float sums[BLOCK_CHANNELS];
  EACH_CHANNEL(e) sums[e] = 0.0f;
  EACH_WINDOW {
    const int top = BEGIN_H(oy), left = BEGIN_W(ox), bottom = END_H(oy, top), right = END_W(ox, left);
    const float share = 1.0f / WINDOW_SIZE(oz, oz + 1, top, bottom, left, right);
    float values[BLOCK_CHANNELS];
    read_block(values, diff_dst[(ulong)(oy * dst_width + ox) * blocks]);
    EACH_CHANNEL(e) sums[e] += share * values[e];
  }
  EPILOGUE_BLOCK(sums, item, image, block * BLOCK_CHANNELS);
  diff_src[diff_src_offset + item] = block_of(sums);
}
