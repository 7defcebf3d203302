// Windows of pooling (ops/pool.cl has their definitions): which pixels one has, which of them hold a pixel, and
// what their averages divide by.
#ifndef CONCORD_POOL_WINDOWS_H
#define CONCORD_POOL_WINDOWS_H

#include "shared/numbers.h"

// The numbers of the kernels; SIZES is their file's.
#define MAX_FORWARD_NUMBERS(NUMBER) \
  NUMBER(ulong, src_offset) NUMBER(ulong, dst_offset) NUMBER(ulong, indices_offset) SIZES(NUMBER)
#define MAX_BACKWARD_NUMBERS(NUMBER) \
  NUMBER(ulong, diff_dst_offset) NUMBER(ulong, indices_offset) NUMBER(ulong, diff_src_offset) SIZES(NUMBER)
#define AVERAGE_FORWARD_NUMBERS(NUMBER) NUMBER(ulong, src_offset) NUMBER(ulong, dst_offset) SIZES(NUMBER)
#define AVERAGE_BACKWARD_NUMBERS(NUMBER) NUMBER(ulong, diff_dst_offset) NUMBER(ulong, diff_src_offset) SIZES(NUMBER)

// Along one dimension: the pixels [BEGIN, END) of window o, which may lie outside, and the windows [FIRST, LAST] that hold
// pixel i or, with dilation, might.
#ifdef ADAPTIVE
#define BEGIN(o, size, windows, stride, padding) ((o) * (size) / (windows))
#define END(o, size, windows, begin, span) ((((o) + 1) * (size) + (windows)-1) / (windows))
#define FIRST(i, size, windows, stride, padding, span) ((i) * (windows) / (size))
#define LAST(i, size, windows, stride, padding) ((((i) + 1) * (windows)-1) / (size))
#else
#define BEGIN(o, size, windows, stride, padding) ((o) * (stride) - (padding))
#define END(o, size, windows, begin, span) ((begin) + (span))
#define FIRST(i, size, windows, stride, padding, span) \
  ((i) + (padding) < (span) ? 0 : ((i) + (padding) - (span)) / (stride) + 1)
#define LAST(i, size, windows, stride, padding) min(((i) + (padding)) / (stride), (windows)-1)
#endif
#define SPAN_D ((KERNEL_D - 1) * DILATION_D + 1)
#define SPAN_H ((KERNEL_H - 1) * DILATION_H + 1)
#define SPAN_W ((KERNEL_W - 1) * DILATION_W + 1)
#define BEGIN_D(o) BEGIN(o, depth, dst_depth, STRIDE_D, padding_d)
#define BEGIN_H(o) BEGIN(o, height, dst_height, STRIDE_H, padding_h)
#define BEGIN_W(o) BEGIN(o, width, dst_width, STRIDE_W, padding_w)
#define END_D(o, begin) END(o, depth, dst_depth, begin, SPAN_D)
#define END_H(o, begin) END(o, height, dst_height, begin, SPAN_H)
#define END_W(o, begin) END(o, width, dst_width, begin, SPAN_W)

// Loops over the windows (oz, oy, ox) around pixel (z, y, x).
#define EACH_WINDOW                                                                                  \
  for (int oz = FIRST(z, depth, dst_depth, STRIDE_D, padding_d, SPAN_D);                             \
       oz <= LAST(z, depth, dst_depth, STRIDE_D, padding_d); ++oz)                                   \
    for (int oy = FIRST(y, height, dst_height, STRIDE_H, padding_h, SPAN_H);                         \
         oy <= LAST(y, height, dst_height, STRIDE_H, padding_h); ++oy)                               \
      for (int ox = FIRST(x, width, dst_width, STRIDE_W, padding_w, SPAN_W);                         \
           ox <= LAST(x, width, dst_width, STRIDE_W, padding_w); ++ox)

// What the sum over a window is divided by: never what lies beyond the padding.
#if defined(DIVISOR)
#define WINDOW_SIZE(front, back, top, bottom, left, right) ((float)DIVISOR)
#elif defined(COUNT_PADDING)
#define WINDOW_SIZE(front, back, top, bottom, left, right)                                  \
  ((float)((min(back, depth + padding_d) - (front)) * (min(bottom, height + padding_h) - (top)) * \
           (min(right, width + padding_w) - (left))))
#else
#define WINDOW_SIZE(front, back, top, bottom, left, right)                                                        \
  ((float)((min(back, depth) - max(front, 0)) * (min(bottom, height) - max(top, 0)) * (min(right, width) - max(left, 0))))
#endif

#endif
