// Max and average pooling of planes (height, width) to (dst_height, dst_width), and their gradients. A work-item owns one
// element of the result, or with WHOLE_ROWS (CPUs) a row of it. Windows are KERNEL_H x KERNEL_W, STRIDE_H, STRIDE_W apart.
// NO_EDGES: no window reaches beyond its plane. APART (then also): windows do not overlap and start at the edge.
// The gradients gather: each src element adds up the windows that hold it, in order. Bytes: 4 an element of src and 4
// of dst, 8 of dst with argmax; FLOPs: KERNEL_H·KERNEL_W an element of dst.
#include "index.h"

#define SIZES                                                                                                 \
  uint count, uint item_width, uint item_width_multiplier, uint item_width_shift, uint item_height,           \
      uint item_height_multiplier, uint item_height_shift, int height, int width, int dst_height, int dst_width, \
      int padding_h, int padding_w

// `plane`, `y` and `x` of every element of the result that the item owns; `item_width` x `item_height` is its plane.
#ifdef WHOLE_ROWS
#define EACH_ELEMENT                                                                                        \
  const uint row = (uint)get_global_id(0);                                                                  \
  const uint plane = index_divide(row, item_height, item_height_multiplier, item_height_shift);             \
  const int y = (int)(row - plane * item_height);                                                           \
  for (int x = 0; x < (int)item_width; ++x)
#else
#define EACH_ELEMENT                                                                                        \
  const uint element = (uint)get_global_id(0);                                                              \
  if (element >= count) return;                                                                             \
  const uint row = index_divide(element, item_width, item_width_multiplier, item_width_shift);              \
  const uint plane = index_divide(row, item_height, item_height_multiplier, item_height_shift);             \
  const int y = (int)(row - plane * item_height), x = (int)(element - row * item_width);
#endif

__kernel void pool_max_forward(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                               ulong dst_offset, __global int *restrict argmax, ulong argmax_offset, SIZES) {
  EACH_ELEMENT {
    const int top = y * STRIDE_H - padding_h, left = x * STRIDE_W - padding_w;
    __global const float *const from = src + src_offset + (ulong)plane * (height * width);
#ifdef NO_EDGES
    // Without branches, for vectors of windows.
    float best = from[top * width + left];
    int place = 0;
    for (int i = 1; i < KERNEL_H * KERNEL_W; ++i) {
      const float value = from[(top + i / KERNEL_W) * width + left + i % KERNEL_W];
      const int wins = (value > best) | ((value != value) & (best == best));
      best = wins ? value : best;
      place = wins ? i : place;
    }
#else
    float best = -INFINITY;
    int place = -1;
    for (int ky = 0; ky < KERNEL_H; ++ky) {
      for (int kx = 0; kx < KERNEL_W; ++kx) {
        const int r = top + ky, q = left + kx;
        if ((uint)r >= (uint)height || (uint)q >= (uint)width) continue;
        const float value = from[r * width + q];
        if (place < 0 || value > best || (value != value && best == best)) {
          best = value;
          place = ky * KERNEL_W + kx;
        }
      }
    }
#endif
    const ulong to = (ulong)row * item_width + x;
    dst[dst_offset + to] = best;
    argmax[argmax_offset + to] = place;
  }
}

// The windows that hold row or column i: [FIRST, LAST].
#define FIRST(i, kernel, stride) ((i) < (kernel) ? 0 : ((i) - (kernel)) / (stride) + 1)
#define LAST(i, stride, count) min((i) / (stride), (count) - 1)

#if defined(APART) && defined(WHOLE_ROWS)
__kernel void pool_max_backward(__global const float *restrict diff_dst, ulong diff_dst_offset,
                                __global const int *restrict argmax, ulong argmax_offset,
                                __global float *restrict diff_src, ulong diff_src_offset, SIZES) {
  const uint row = (uint)get_global_id(0), plane = index_divide(row, item_height, item_height_multiplier, item_height_shift);
  const int y = (int)(row - plane * item_height), oy = y / STRIDE_H, ky = y % STRIDE_H;
  const ulong from = ((ulong)plane * dst_height + oy) * dst_width;
  diff_dst += diff_dst_offset + from;
  argmax += argmax_offset + from;
  diff_src += diff_src_offset + (ulong)row * item_width;
  const int windows = oy < dst_height ? dst_width : 0;
  for (int ox = 0; ox < windows; ++ox) {
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      diff_src[ox * STRIDE_W + kx] = argmax[ox] == ky * KERNEL_W + kx ? diff_dst[ox] : 0.0f;
    }
  }
  for (int x = windows * STRIDE_W; x < (int)item_width; ++x) diff_src[x] = 0.0f;
}
#else
__kernel void pool_max_backward(__global const float *restrict diff_dst, ulong diff_dst_offset,
                                __global const int *restrict argmax, ulong argmax_offset,
                                __global float *restrict diff_src, ulong diff_src_offset, SIZES) {
  EACH_ELEMENT {
    const int r = y + padding_h, q = x + padding_w;
    const ulong from = (ulong)plane * (dst_height * dst_width);
    float sum = 0.0f;
    for (int oy = FIRST(r, KERNEL_H, STRIDE_H); oy <= LAST(r, STRIDE_H, dst_height); ++oy) {
      for (int ox = FIRST(q, KERNEL_W, STRIDE_W); ox <= LAST(q, STRIDE_W, dst_width); ++ox) {
        const ulong i = from + (ulong)(oy * dst_width + ox);
        const int place = (r - oy * STRIDE_H) * KERNEL_W + (q - ox * STRIDE_W);
        const float value = diff_dst[diff_dst_offset + i];
        sum += argmax[argmax_offset + i] == place ? value : 0.0f;
      }
    }
    diff_src[diff_src_offset + (ulong)row * item_width + x] = sum;
  }
}
#endif

// What the sum over a window is divided by: COUNT_PADDING counts the padding, but never what lies beyond it.
static inline float window_size(int top, int left, int height, int width, int padding_h, int padding_w) {
#ifdef COUNT_PADDING
  return (float)((min(top + KERNEL_H, height + padding_h) - top) * (min(left + KERNEL_W, width + padding_w) - left));
#else
  return (float)((min(top + KERNEL_H, height) - max(top, 0)) * (min(left + KERNEL_W, width) - max(left, 0)));
#endif
}

__kernel void pool_average_forward(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                                   ulong dst_offset, SIZES) {
  EACH_ELEMENT {
    const int top = y * STRIDE_H - padding_h, left = x * STRIDE_W - padding_w;
    __global const float *const from = src + src_offset + (ulong)plane * (height * width);
    float sum = 0.0f;
    for (int r = max(top, 0); r < min(top + KERNEL_H, height); ++r) {
      for (int q = max(left, 0); q < min(left + KERNEL_W, width); ++q) sum += from[r * width + q];
    }
    dst[dst_offset + (ulong)row * item_width + x] = sum / window_size(top, left, height, width, padding_h, padding_w);
  }
}

__kernel void pool_average_backward(__global const float *restrict diff_dst, ulong diff_dst_offset,
                                    __global float *restrict diff_src, ulong diff_src_offset, SIZES) {
  EACH_ELEMENT {
    const int r = y + padding_h, q = x + padding_w;
    __global const float *const from = diff_dst + diff_dst_offset + (ulong)plane * (dst_height * dst_width);
    float sum = 0.0f;
    for (int oy = FIRST(r, KERNEL_H, STRIDE_H); oy <= LAST(r, STRIDE_H, dst_height); ++oy) {
      for (int ox = FIRST(q, KERNEL_W, STRIDE_W); ox <= LAST(q, STRIDE_W, dst_width); ++ox) {
        sum += from[oy * dst_width + ox] / window_size(oy * STRIDE_H - padding_h, ox * STRIDE_W - padding_w, height,
                                                       width, padding_h, padding_w);
      }
    }
    diff_src[diff_src_offset + (ulong)row * item_width + x] = sum;
  }
}
