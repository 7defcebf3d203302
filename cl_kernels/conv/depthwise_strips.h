// What the kernels of depthwise convolution for GPUs share (conv/depthwise_strips.cl, conv/depthwise_weights.cl): images
// without dilation, small kernels. An item owns a column of a plane's result, STRIP rows high; neighbouring items own
// neighbouring columns, so a work-group reads whole rows, and each row of an item's windows is read once.
//
// Definitions: KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, PADDING_H, PADDING_W; MULTIPLIER outputs a channel; STRIP; THREADS
// items a work-group.
#ifndef CONCORD_CONV_DEPTHWISE_STRIPS_H
#define CONCORD_CONV_DEPTHWISE_STRIPS_H

#include "shared/index.h"

#define TAPS (KERNEL_H * KERNEL_W)
// The rows of src that the windows of a strip of dst reach.
#define STRIP_ROWS ((STRIP - 1) * STRIDE_H + KERNEL_H)

#define DIVISOR(name) uint name, uint name##_magic, uint name##_shift
#define DIVIDE(i, name) index_divide(i, name, name##_magic, name##_shift)

// p[i] where `inside`, else 0.
#define LOAD_IF(inside, p, i) ((inside) ? (p)[i] : 0.0f)

#endif
