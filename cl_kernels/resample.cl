// Resample: src (outer, rows, columns) → dst (outer, dst_rows, dst_columns). ROW_TAPS and COLUMN_TAPS say which axes
// are mapped; a map is a sparse matrix by rows in one table: where each row begins (count + 1 numbers), then the places,
// then the weights as bits of floats. A work-item owns PER_ITEM elements of dst and sums the taps of the row, and for
// each the taps of the column. Blocking as in pointwise.cl.
#include "index.h"

__kernel void resample(__global const float *restrict src, const ulong src_offset, __global float *restrict dst,
                       const ulong dst_offset,
#ifdef ROW_TAPS
                       __global const int *restrict row_table, const uint row_taps,
#endif
#ifdef COLUMN_TAPS
                       __global const int *restrict column_table, const uint column_taps,
#endif
                       const index_t rows, const index_t columns, const index_t dst_rows, const uint row_multiplier,
                       const uint row_shift, const index_t dst_columns, const uint column_multiplier,
                       const uint column_shift, const index_t n) {
  const index_t step = (index_t)get_local_size(0);
  const index_t first = (index_t)get_group_id(0) * step * PER_ITEM + (index_t)get_local_id(0);
  for (int k = 0; k < PER_ITEM; ++k) {
    const index_t i = first + k * step;
    if (i >= n) continue;
    const index_t line = index_divide(i, dst_columns, column_multiplier, column_shift);
    const index_t column = i - line * dst_columns;
    const index_t outer = index_divide(line, dst_rows, row_multiplier, row_shift);
    const index_t row = line - outer * dst_rows;
    __global const float *plane = src + src_offset + (ulong)outer * rows * columns;
    float sum = 0.0f;
#ifdef ROW_TAPS
    for (int t = row_table[row]; t < row_table[row + 1]; ++t) {
      __global const float *from = plane + (ulong)row_table[dst_rows + 1 + t] * columns;
      const float weight = as_float(row_table[dst_rows + 1 + row_taps + t]);
#else
    {
      __global const float *from = plane + (ulong)row * columns;
      const float weight = 1.0f;
#endif
#ifdef COLUMN_TAPS
      float across = 0.0f;
      for (int u = column_table[column]; u < column_table[column + 1]; ++u) {
        across +=
            as_float(column_table[dst_columns + 1 + column_taps + u]) * from[column_table[dst_columns + 1 + u]];
      }
      sum += weight * across;
#else
      sum += weight * from[column];
#endif
    }
    dst[dst_offset + i] = sum;
  }
}
