// How gemm/panel.cl packs its operands into private memory: panels of B, where patches of an image are gathered segment
// by segment, and ROWS rows of A. LEFT(i, r) is A's value number i of k in row r, packed or where it lies.
#ifndef CONCORD_GEMM_PANEL_PACK_H
#define CONCORD_GEMM_PANEL_PACK_H
#include "gemm/operands.h"

#define CONCAT_(x, y) x##y
#define CONCAT(x, y) CONCAT_(x, y)
typedef CONCAT(float, WIDTH) vector_t;
#define VLOAD CONCAT(vload, WIDTH)
#define VSTORE CONCAT(vstore, WIDTH)
#define VLOAD_ROWS CONCAT(vload, ROWS)
#define VSTORE_ROWS CONCAT(vstore, ROWS)
#define COLUMNS (VECTORS * WIDTH)

#if defined(A_BLOCKED) || defined(A_PATCH) || defined(B_STEP)
#define A_STEPS  // where the packed values of k lie in a row of A
#endif
#ifdef B_PATCH
// At most this many neighbouring columns of a panel that lie in one row of the image; what is packed by one vector.
#define SEGMENT 16

typedef struct {
  patch_part part;  // of its first column
  uint begin, length;
} segment;
#endif

#ifdef B_PATCH
// Packs the pixels that a segment's columns meet at one k, and zeros behind them; false when all are zero.
#if defined(B_STEP)
// Rows and columns between pixels are zero; of the others every column_step-th column is a pixel.
static inline bool pack_segment(__global const float *b, segment one, patch_part k, float *to, int rows, int columns,
                                DIVISOR(row_step), DIVISOR(column_step), index_t size DEPTH_FORMALS) {
  const int row = one.part.row + k.row, column = one.part.column + k.column;
  const uint y = DIVIDE(max(row, 0), row_step);
  vstore16((float16)(0.0f), 0, to);
  if ((int)(y * row_step) != row || y >= (uint)rows) return false;
  index_t place = one.part.place + k.place + (index_t)y * columns;
#ifdef VOLUME
  const int depth = one.part.depth + k.depth;
  const uint z = DIVIDE(max(depth, 0), depth_step);
  if ((int)(z * depth_step) != depth || z >= (uint)depths) return false;
  place += (index_t)z * rows * columns;
#endif
  if (column_step == 2) {
    const int x = (column + 1) >> 1;
    if (place + x >= 0 && place + x + SEGMENT / 2 <= size) {
      const int8 at = x + (int8)(0, 1, 2, 3, 4, 5, 6, 7);
      const float8 zeros = (float8)(0.0f);
      const float8 pixels = select(zeros, vload8(0, b + (place + x)), as_int8(as_uint8(at) < (uint8)((uint)columns)));
      float16 spread;
      spread.even = (column & 1) == 0 ? pixels : zeros;
      spread.odd = (column & 1) == 0 ? zeros : pixels;
      vstore16(spread, 0, to);
      return true;
    }
  }
  __global const float *const line = b + place;
  const int first = max(column, 0);
  uint x = DIVIDE(first + (int)column_step - 1, column_step);
  for (uint j = x * column_step - (uint)column; j < one.length && x < (uint)columns; j += column_step) to[j] = line[x++];
  return true;
}
#define PACK_SEGMENT(one, k, to)                                                                                 \
  pack_segment(b, one, k, to, rows, columns, row_step, row_step_magic, row_step_shift, column_step, column_step_magic, \
               column_step_shift, image_size DEPTH_ACTUALS)
#else
static inline bool pack_segment(__global const float *b, segment one, patch_part k, float *to, int rows, int columns,
                                int n_column, index_t size DEPTH_FORMALS) {
  const index_t place = one.part.place + k.place;
#ifndef B_INSIDE
  const int row = one.part.row + k.row, column = one.part.column + k.column;
  bool outside = (uint)row >= (uint)rows;
#ifdef VOLUME
  outside |= (uint)(one.part.depth + k.depth) >= (uint)depths;
#endif
  if (outside) {
    vstore16((float16)(0.0f), 0, to);
    return false;
  }
  const int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
  if (n_column <= 2 && place >= 0 && place + SEGMENT <= size) {
    const float16 pixels = vload16(0, b + place);
    if (n_column == 1) {
#ifdef B_INSIDE
      vstore16(pixels, 0, to);
#else
      vstore16(select((float16)(0.0f), pixels, as_int16(as_uint16(lanes + column) < (uint16)((uint)columns))), 0, to);
#endif
    } else {
#ifdef B_INSIDE
      vstore8(pixels.even, 0, to);
#else
      const int8 at = 2 * lanes.lo + column;
      vstore8(select((float8)(0.0f), pixels.even, as_int8(as_uint8(at) < (uint8)((uint)columns))), 0, to);
#endif
    }
    return true;
  }
  for (uint j = 0; j < one.length; ++j) {
    const int x = (int)j * n_column;
#ifdef B_INSIDE
    to[j] = b[place + x];
#else
    to[j] = (uint)(column + x) < (uint)columns ? b[place + x] : 0.0f;
#endif
  }
  return true;
}
#define PACK_SEGMENT(one, k, to) pack_segment(b, one, k, to, rows, columns, n_column, image_size DEPTH_ACTUALS)
#endif
#endif

#ifndef B_PATCH
// Packs `length` values of k and `count` columns of B from (k, n) on, as lines of COLUMNS.
static inline void pack_columns(__global const float *b, uint k, uint length, uint n, uint count, float *to,
                                index_t b_k, index_t b_n, DIVISOR(k_block)) {
#ifdef B_ALONG_K
  uint whole = 0;
#ifndef B_BLOCKED
  // Squares of 4 x 4 are turned in registers: neighbours in k are read together and neighbours in n written together.
  whole = length / 4 * 4;
  uint j = 0;
  for (; j + 4 <= count; j += 4) {
    __global const float *const from = b + (B_COLUMN_OF(n + j) + k);
    for (uint i = 0; i < whole; i += 4) {
      const float4 p = vload4(0, from + i), q = vload4(0, from + b_n + i);
      const float4 r = vload4(0, from + 2 * b_n + i), s = vload4(0, from + 3 * b_n + i);
      const float8 low = (float8)(p.s0, q.s0, r.s0, s.s0, p.s1, q.s1, r.s1, s.s1);
      const float8 high = (float8)(p.s2, q.s2, r.s2, s.s2, p.s3, q.s3, r.s3, s.s3);
      float *const line = to + i * COLUMNS + j;
      vstore4(low.lo, 0, line);
      vstore4(low.hi, 0, line + COLUMNS);
      vstore4(high.lo, 0, line + 2 * COLUMNS);
      vstore4(high.hi, 0, line + 3 * COLUMNS);
    }
  }
  for (; j < count; ++j) {
    for (uint i = 0; i < whole; ++i) to[i * COLUMNS + j] = b[B_STEP_OF(k + i) + B_COLUMN_OF(n + j)];
  }
#endif
  for (uint i = whole; i < length; ++i) {
    __global const float *from = b + (B_STEP_OF(k + i) + B_COLUMN_OF(n));
    for (uint j = 0; j < count; ++j, from += b_n) to[i * COLUMNS + j] = *from;
  }
#else
  for (uint i = 0; i < length; ++i) {
    __global const float *const from = b + (B_STEP_OF(k + i) + n);
    if (count == COLUMNS) {
      for (uint v = 0; v < VECTORS; ++v) VSTORE(VLOAD(v, from), v, to + i * COLUMNS);
    } else {
      for (uint j = 0; j < count; ++j) to[i * COLUMNS + j] = from[j];
    }
  }
#endif
}
#endif

#if !defined(A_ALONG_K) && !defined(A_STEPS)
#define A_PACKED
#define LEFT(i, r) left_rows[(i) * ROWS + (r)]
// Packs `length` values of k of ROWS rows of A from row m on, rows inside; beyond m_end the last row again.
static inline void pack_rows(__global const float *a, uint m, uint m_end, uint k, uint length, float *to, index_t a_k) {
  for (uint i = 0; i < length; ++i) {
    __global const float *const from = a + A_STEP(k + i);
    if (m + ROWS <= m_end) {
      VSTORE_ROWS(VLOAD_ROWS(0, from + m), 0, to + i * ROWS);
    } else {
      for (uint r = 0; r < ROWS; ++r) to[i * ROWS + r] = from[min(m + r, m_end - 1)];
    }
  }
}
#elif defined(A_STEPS)
#define LEFT(i, r) rows_of_a[r][steps[i]]
#else
#define LEFT(i, r) rows_of_a[r][k_first + (i)]
#endif

#endif
