// Max and average pooling of channels (depth, height, width) to (dst_depth, dst_height, dst_width), and their gradients.
// A work-item owns one element of the result, or with WHOLE_ROWS (CPUs) a row of it.
//   VOLUME    there is a depth; without it channels are planes
//   ADAPTIVE  window o of n along `size` pixels is [o·size/n, (o+1)·size/n), rounded outward; without it windows have
//             KERNEL_D x KERNEL_H x KERNEL_W pixels, DILATION_… apart, and start STRIDE_… apart
//   NO_EDGES  no window reaches beyond its channel; APART (then also): windows do not overlap and start at the edge
//   DIVISOR   what averages divide by; COUNT_PADDING: else by the pixels with padding
// The gradients gather: each src element adds up the windows that hold it, in order. The text in front may give them an
// epilogue (gemm_epilogue), for row m and place n_inner. Bytes: 4 an element of src and 4 of dst, 8 of dst with indices;
// FLOPs: a window's pixels an element of dst.
#include "ops/pool_numbers.h"

#ifndef EPILOGUE_IS_EXPRESSION
#define EPILOGUE_PARAMETERS
#define EPILOGUE(value, z, m, n_outer, n_inner) (value)
#endif

// `plane`, `z`, `y` and `x` of every element of the result that the item owns.
#ifdef WHOLE_ROWS
#define EACH_ELEMENT                                                                                        \
  const uint row = (uint)get_global_id(0);                                                                  \
  SPLIT_ROW(row)                                                                                              \
  for (int x = 0; x < (int)item_width; ++x)
#else
#define EACH_ELEMENT                                                                                        \
  const uint element = (uint)get_global_id(0);                                                              \
  if (element >= count) return;                                                                             \
  const uint row = index_divide(element, item_width, item_width_multiplier, item_width_shift);              \
  const int x = (int)(element - row * item_width);                                                          \
  SPLIT_ROW(row)
#endif

// Where the i-th pixel of a window lies from its first one.
#define OFFSET(i)                                                                                              \
  (((i) / (KERNEL_H * KERNEL_W) * DILATION_D * height + (i) / KERNEL_W % KERNEL_H * DILATION_H) * width +      \
   (i) % KERNEL_W * DILATION_W)

__kernel void pool_max_forward(__global const float *restrict src, __global float *restrict dst,
                               __global int *restrict indices, const max_forward_numbers numbers) {
  MAX_FORWARD_NUMBERS(NUMBER_CONSTANT)
  EACH_ELEMENT {
    const int front = BEGIN_D(z), top = BEGIN_H(y), left = BEGIN_W(x);
    __global const float *const from = src + src_offset + (ulong)plane * (depth * height * width);
#ifdef NO_EDGES
    // Without branches, for vectors of windows.
    const int first = (front * height + top) * width + left;
    float best = from[first];
    int offset = 0;
    for (int i = 1; i < KERNEL_D * KERNEL_H * KERNEL_W; ++i) {
      const float value = from[first + OFFSET(i)];
      const int wins = (value > best) | ((value != value) & (best == best));
      best = wins ? value : best;
      offset = wins ? OFFSET(i) : offset;
    }
    const int place = first + offset;
#else
    float best = -INFINITY;
    int place = -1;
    const int back = END_D(z, front), bottom = END_H(y, top), right = END_W(x, left);
    for (int p = front; p < back; p += DILATION_D) {
      if ((uint)p >= (uint)depth) continue;
      for (int r = top; r < bottom; r += DILATION_H) {
        if ((uint)r >= (uint)height) continue;
        for (int q = left; q < right; q += DILATION_W) {
          if ((uint)q >= (uint)width) continue;
          const int here = (p * height + r) * width + q;
          const float value = from[here];
          if (place < 0 || value > best || (value != value && best == best)) {
            best = value;
            place = here;
          }
        }
      }
    }
#endif
    const ulong to = (ulong)row * item_width + x;
    dst[dst_offset + to] = best;
    indices[indices_offset + to] = place;
  }
}

#if defined(APART) && defined(WHOLE_ROWS)
__kernel void pool_max_backward(__global const float *restrict diff_dst, __global const int *restrict indices,
                                __global float *restrict diff_src, const max_backward_numbers numbers EPILOGUE_PARAMETERS) {
  MAX_BACKWARD_NUMBERS(NUMBER_CONSTANT)
  const uint row = (uint)get_global_id(0);
  SPLIT_ROW(row)
  const int oz = z / STRIDE_D, oy = y / STRIDE_H, here = (z * height + y) * width;
  const ulong from = (((ulong)plane * dst_depth + oz) * dst_height + oy) * dst_width;
  diff_dst += diff_dst_offset + from;
  indices += indices_offset + from;
  diff_src += diff_src_offset + (ulong)row * item_width;
  const int windows = oz < dst_depth && oy < dst_height ? dst_width : 0;
  for (int ox = 0; ox < windows; ++ox) {
    for (int kx = 0; kx < KERNEL_W; ++kx) {
      const int q = ox * STRIDE_W + kx;
      const float value = indices[ox] == here + q ? diff_dst[ox] : 0.0f;
      diff_src[q] = EPILOGUE(value, 0, row, 0, q);
    }
  }
  for (int x = windows * STRIDE_W; x < (int)item_width; ++x) diff_src[x] = EPILOGUE(0.0f, 0, row, 0, x);
}
#else
__kernel void pool_max_backward(__global const float *restrict diff_dst, __global const int *restrict indices,
                                __global float *restrict diff_src, const max_backward_numbers numbers EPILOGUE_PARAMETERS) {
  MAX_BACKWARD_NUMBERS(NUMBER_CONSTANT)
  EACH_ELEMENT {
    const ulong from = (ulong)plane * (dst_depth * dst_height * dst_width);
    const int here = (z * height + y) * width + x;
    float sum = 0.0f;
    EACH_WINDOW {
      const ulong i = from + (ulong)((oz * dst_height + oy) * dst_width + ox);
      const float value = diff_dst[diff_dst_offset + i];
      sum += indices[indices_offset + i] == here ? value : 0.0f;
    }
    diff_src[diff_src_offset + (ulong)row * item_width + x] = EPILOGUE(sum, 0, row, 0, x);
  }
}
#endif

__kernel void pool_average_forward(__global const float *restrict src, __global float *restrict dst,
                                   const average_forward_numbers numbers) {
  AVERAGE_FORWARD_NUMBERS(NUMBER_CONSTANT)
  EACH_ELEMENT {
    const int front = BEGIN_D(z), top = BEGIN_H(y), left = BEGIN_W(x);
    const int back = END_D(z, front), bottom = END_H(y, top), right = END_W(x, left);
    __global const float *const from = src + src_offset + (ulong)plane * (depth * height * width);
    float sum = 0.0f;
    for (int p = max(front, 0); p < min(back, depth); ++p) {
      for (int r = max(top, 0); r < min(bottom, height); ++r) {
        for (int q = max(left, 0); q < min(right, width); ++q) sum += from[(p * height + r) * width + q];
      }
    }
    dst[dst_offset + (ulong)row * item_width + x] = sum / WINDOW_SIZE(front, back, top, bottom, left, right);
  }
}

__kernel void pool_average_backward(__global const float *restrict diff_dst, __global float *restrict diff_src,
                                    const average_backward_numbers numbers EPILOGUE_PARAMETERS) {
  AVERAGE_BACKWARD_NUMBERS(NUMBER_CONSTANT)
  EACH_ELEMENT {
    __global const float *const from = diff_dst + diff_dst_offset + (ulong)plane * (dst_depth * dst_height * dst_width);
    float sum = 0.0f;
    EACH_WINDOW {
      const int front = BEGIN_D(oz), top = BEGIN_H(oy), left = BEGIN_W(ox);
      const int back = END_D(oz, front), bottom = END_H(oy, top), right = END_W(ox, left);
      sum += from[(oz * dst_height + oy) * dst_width + ox] / WINDOW_SIZE(front, back, top, bottom, left, right);
    }
    diff_src[diff_src_offset + (ulong)row * item_width + x] = EPILOGUE(sum, 0, row, 0, x);
  }
}
