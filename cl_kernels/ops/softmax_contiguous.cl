// Softmax and log-softmax with their gradient on CPUs, as ops/softmax.cl defines them: a work-item owns neighbouring rows, or up
// to COLUMNS neighbouring columns of an axis whose elements lie `inner` apart, and walks over them in loops that the compiler
// can vectorise. A row is reduced in 16 lanes, columns one by one, so the order does not depend on the device. Elements are
// read from memory once, then from cache: 8 bytes an element forward, 12 backward.
#include "shared/formulas.h"
#include "shared/lanes.h"

#define COLUMNS 64

static inline float softmax_lanes_sum(const float16 a) {
  const float8 b = a.lo + a.hi;
  const float4 c = b.lo + b.hi;
  return (c.x + c.z) + (c.y + c.w);
}

static inline float softmax_largest(__global const float *src, const uint length) {
  float16 lanes = (float16)(-INFINITY);
  uint i = 0;
  for (; i + 16 <= length; i += 16) lanes = COMBINE_MAXIMUM(lanes, vload16(0, src + i));
  float largest = -INFINITY;
  for (; i < length; ++i) largest = COMBINE_MAXIMUM(largest, src[i]);
  const float8 a = COMBINE_MAXIMUM(lanes.lo, lanes.hi);
  const float4 b = COMBINE_MAXIMUM(a.lo, a.hi);
  const float2 c = COMBINE_MAXIMUM(b.lo, b.hi);
  const float d = COMBINE_MAXIMUM(c.x, c.y);
  return COMBINE_MAXIMUM(largest, d);
}

static inline float softmax_sum(__global const float *src, const uint length) {
  float16 lanes = (float16)(0.0f);
  uint i = 0;
  for (; i + 16 <= length; i += 16) lanes += vload16(0, src + i);
  float sum = 0.0f;
  for (; i < length; ++i) sum += src[i];
  return sum + softmax_lanes_sum(lanes);
}

static inline float softmax_product(__global const float *a, __global const float *b, const uint length) {
  float16 lanes = (float16)(0.0f);
  uint i = 0;
  for (; i + 16 <= length; i += 16) lanes += vload16(0, a + i) * vload16(0, b + i);
  float sum = 0.0f;
  for (; i < length; ++i) sum += a[i] * b[i];
  return sum + softmax_lanes_sum(lanes);
}

__kernel void softmax_forward_rows(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                                   ulong dst_offset, uint rows, uint length, uint rows_per_item) {
  const uint first = (uint)get_global_id(0) * rows_per_item, end = min(first + rows_per_item, rows);
  for (uint row = first; row < end; ++row) {
    __global const float *restrict x = src + src_offset + (ulong)row * length;
    __global float *restrict y = dst + dst_offset + (ulong)row * length;
    const float largest = softmax_largest(x, length);
#pragma clang loop vectorize(assume_safety)
    for (uint i = 0; i < length; ++i) y[i] = concord_exp(x[i] - largest);
    const float sum = softmax_sum(y, length);
#ifdef LOG
    const float log_sum = concord_log(sum);
#pragma clang loop vectorize(assume_safety)
    for (uint i = 0; i < length; ++i) y[i] = (x[i] - largest) - log_sum;
#else
#pragma clang loop vectorize(assume_safety)
    for (uint i = 0; i < length; ++i) y[i] = y[i] / sum;
#endif
  }
}

__kernel void softmax_backward_rows(__global const float *restrict diff_dst, ulong diff_dst_offset,
                                    __global const float *restrict dst, ulong dst_offset, __global float *restrict diff_src,
                                    ulong diff_src_offset, uint rows, uint length, uint rows_per_item) {
  const uint first = (uint)get_global_id(0) * rows_per_item, end = min(first + rows_per_item, rows);
  for (uint row = first; row < end; ++row) {
    __global const float *restrict dy = diff_dst + diff_dst_offset + (ulong)row * length;
    __global const float *restrict y = dst + dst_offset + (ulong)row * length;
    __global float *restrict dx = diff_src + diff_src_offset + (ulong)row * length;
#ifdef LOG
    const float sum = softmax_sum(dy, length);
#pragma clang loop vectorize(assume_safety)
    for (uint i = 0; i < length; ++i) {
      const float slope = dy[i] - concord_exp(y[i]) * sum;
      dx[i] = dy[i] == 0.0f && sum == 0.0f ? 0.0f : slope;
    }
#else
    const float sum = softmax_product(dy, y, length);
#pragma clang loop vectorize(assume_safety)
    for (uint i = 0; i < length; ++i) dx[i] = y[i] * (dy[i] - sum);
#endif
  }
}

// Work-item (b, o): columns from b·COLUMNS on, of the o-th of `outer` blocks.
__kernel void softmax_forward_columns(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                                      ulong dst_offset, uint length, uint inner) {
  const uint begin = (uint)get_global_id(0) * COLUMNS, width = min((uint)COLUMNS, inner - begin);
  const ulong start = (ulong)get_global_id(1) * length * inner + begin;
  src += src_offset + start;
  dst += dst_offset + start;
  float largest[COLUMNS], sum[COLUMNS];
  for (uint j = 0; j < width; ++j) {
    largest[j] = -INFINITY;
    sum[j] = 0.0f;
  }
  for (uint i = 0; i < length; ++i) {
    __global const float *restrict x = src + (ulong)i * inner;
#pragma clang loop vectorize(assume_safety)
    for (uint j = 0; j < width; ++j) largest[j] = concord_maximum(largest[j], x[j]);
  }
  for (uint i = 0; i < length; ++i) {
    __global const float *restrict x = src + (ulong)i * inner;
    __global float *restrict y = dst + (ulong)i * inner;
#pragma clang loop vectorize(assume_safety)
    for (uint j = 0; j < width; ++j) {
      const float e = concord_exp(x[j] - largest[j]);
      y[j] = e;
      sum[j] += e;
    }
  }
#ifdef LOG
  for (uint j = 0; j < width; ++j) sum[j] = concord_log(sum[j]);
#endif
  for (uint i = 0; i < length; ++i) {
    __global const float *restrict x = src + (ulong)i * inner;
    __global float *restrict y = dst + (ulong)i * inner;
#pragma clang loop vectorize(assume_safety)
#ifdef LOG
    for (uint j = 0; j < width; ++j) y[j] = (x[j] - largest[j]) - sum[j];
#else
    for (uint j = 0; j < width; ++j) y[j] = y[j] / sum[j];
#endif
  }
}

__kernel void softmax_backward_columns(__global const float *restrict diff_dst, ulong diff_dst_offset,
                                       __global const float *restrict dst, ulong dst_offset,
                                       __global float *restrict diff_src, ulong diff_src_offset, uint length, uint inner) {
  const uint begin = (uint)get_global_id(0) * COLUMNS, width = min((uint)COLUMNS, inner - begin);
  const ulong start = (ulong)get_global_id(1) * length * inner + begin;
  diff_dst += diff_dst_offset + start;
  dst += dst_offset + start;
  diff_src += diff_src_offset + start;
  float sum[COLUMNS];
  for (uint j = 0; j < width; ++j) sum[j] = 0.0f;
  for (uint i = 0; i < length; ++i) {
    __global const float *restrict dy = diff_dst + (ulong)i * inner;
    __global const float *restrict y = dst + (ulong)i * inner;
#pragma clang loop vectorize(assume_safety)
#ifdef LOG
    for (uint j = 0; j < width; ++j) sum[j] += dy[j];
#else
    for (uint j = 0; j < width; ++j) sum[j] += dy[j] * y[j];
#endif
  }
  for (uint i = 0; i < length; ++i) {
    __global const float *restrict dy = diff_dst + (ulong)i * inner;
    __global const float *restrict y = dst + (ulong)i * inner;
    __global float *restrict dx = diff_src + (ulong)i * inner;
#pragma clang loop vectorize(assume_safety)
    for (uint j = 0; j < width; ++j) {
#ifdef LOG
      const float slope = dy[j] - concord_exp(y[j]) * sum[j];
      dx[j] = dy[j] == 0.0f && sum[j] == 0.0f ? 0.0f : slope;
#else
      dx[j] = y[j] * (dy[j] - sum[j]);
#endif
    }
  }
}
