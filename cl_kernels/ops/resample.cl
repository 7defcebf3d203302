// Resample: src (outer, rows, columns) → dst (outer, dst_rows, dst_columns). ROW_TAPS and COLUMN_TAPS say which axes
// are mapped; a map is a sparse matrix by rows in one table: where each row begins (count + 1 numbers), then for each tap
// its place and the bits of its weight. Where all rows have the same number of taps, ROW_TAPS or COLUMN_TAPS is that
// number, otherwise 0. Taps whose place is negative only fill rows. A work-item owns PER_ITEM elements of dst and sums
// the taps of the row, and for each the taps of the column. Blocking as in formula/pointwise.cl.
#include "shared/index.h"

#define FIRST(table, row, taps) (taps > 0 ? (int)(row)*taps : table[row])
#define COUNT(table, row, taps) (taps > 0 ? taps : table[(row) + 1] - table[row])
#define TAP(place, product) ((place) < 0 ? 0.0f : (product))

__kernel void resample(__global const float *restrict src, const ulong src_offset, __global float *restrict dst,
                       const ulong dst_offset,
#ifdef ROW_TAPS
                       __global const int *restrict row_table,
#endif
#ifdef COLUMN_TAPS
                       __global const int *restrict column_table,
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
#ifdef COLUMN_TAPS
    __global const int *column_taps = column_table + dst_columns + 1 + 2 * FIRST(column_table, column, COLUMN_TAPS);
    const int column_count = COUNT(column_table, column, COLUMN_TAPS);
#endif
#ifdef ROW_TAPS
    __global const int *row_taps = row_table + dst_rows + 1 + 2 * FIRST(row_table, row, ROW_TAPS);
    const int row_count = COUNT(row_table, row, ROW_TAPS);
    for (int t = 0; t < row_count; ++t) {
      const int row_place = row_taps[2 * t];
      __global const float *from = plane + (ulong)max(row_place, 0) * columns;
      const float weight = as_float(row_taps[2 * t + 1]);
#else
    {
      const int row_place = 0;
      __global const float *from = plane + (ulong)row * columns;
      const float weight = 1.0f;
#endif
#ifdef COLUMN_TAPS
      float across = 0.0f;
      for (int u = 0; u < column_count; ++u) {
        const int place = column_taps[2 * u];
        across += TAP(place, as_float(column_taps[2 * u + 1]) * from[max(place, 0)]);
      }
      sum += TAP(row_place, weight * across);
#else
      sum += TAP(row_place, weight * from[column]);
#endif
    }
    dst[dst_offset + i] = sum;
  }
}
