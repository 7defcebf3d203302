// gemm_panel_multiply: for CPUs. A work-item is a work-group and owns COLUMNS = VECTORS·WIDTH columns of C and m_part of its
// rows. It packs DEPTH x COLUMNS of B into private memory (first-level cache), where patches of an image are also
// gathered, and multiplies ROWS x COLUMNS of C at a time out of vector registers; longer k goes on in C.
// 2·m_part·COLUMNS·K FLOPs; reads COLUMNS·K of B once and m_part·K of A. No local memory, no barrier.
#include "gemm_operands.h"

#define CONCAT_(x, y) x##y
#define CONCAT(x, y) CONCAT_(x, y)
typedef CONCAT(float, WIDTH) vector_t;
#define VLOAD CONCAT(vload, WIDTH)
#define VSTORE CONCAT(vstore, WIDTH)
#define COLUMNS (VECTORS * WIDTH)
// Columns that are checked together for being neighbours in memory.
#define RUN 8

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_panel_multiply(
    GEMM_PARAMETERS, uint m_part EPILOGUE_PARAMETERS) {
  const uint n_begin = (uint)get_group_id(0) * COLUMNS, z = (uint)get_group_id(2);
  const uint m_begin = (uint)get_group_id(1) * m_part, m_end = min(m_size, m_begin + m_part);
  const uint batch = z % batches, k_begin = z / batches * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;
  c += c_offset + z * c_batch;
  vector_t panel[DEPTH * VECTORS];
  float *const packed = (float *)panel;

  // Columns past the edge repeat the last one; they are never written.
  const uint count = min((uint)COLUMNS, n_size - n_begin);
  const uint first_outer = C_OUTER(n_begin), first_inner = C_INNER(n_begin, first_outer);
  const bool c_is_run = count == COLUMNS && C_OUTER(n_begin + COLUMNS - 1) == first_outer;
#ifdef B_PATCH
  index_t places[COLUMNS];
#ifndef B_INSIDE
  int row_of[COLUMNS], column_of[COLUMNS];
#endif
  bool is_run[COLUMNS / RUN];
  for (uint j = 0; j < COLUMNS; ++j) {
    const patch_part part = PATCH_N(n_begin + min(j, count - 1));
    places[j] = part.place;
#ifndef B_INSIDE
    row_of[j] = part.row;
    column_of[j] = part.column;
#endif
  }
  for (uint g = 0; g < COLUMNS; g += RUN) {
    bool run = true;
    for (uint j = 1; j < RUN; ++j) {
      run = run && places[g + j] == places[g] + (index_t)j;
#ifndef B_INSIDE
      run = run && row_of[g + j] == row_of[g];
#endif
    }
    is_run[g / RUN] = run;
  }
#else
  index_t places[COLUMNS];
  for (uint j = 0; j < COLUMNS; ++j) places[j] = (index_t)(n_begin + min(j, count - 1)) * b_n;
#endif
#ifdef A_BLOCKED
  index_t steps[DEPTH];
#endif

  uint k_first = k_begin;
  do {
    const uint depth = min((uint)DEPTH, k_end - k_first);
    for (uint i = 0; i < depth; ++i) {
      float *const line = packed + i * COLUMNS;
#ifdef A_BLOCKED
      steps[i] = A_STEP(k_first + i);
#endif
#ifdef B_PATCH
      const patch_part part = PATCH_K(k_first + i);
      for (uint g = 0; g < COLUMNS; g += RUN) {
#if defined(B_INSIDE)
        __global const float *const from = b + part.place;
        if (is_run[g / RUN]) {
          vstore8(vload8(0, from + places[g]), 0, line + g);
        } else {
          for (uint j = g; j < g + RUN; ++j) line[j] = from[places[j]];
        }
#else
#ifndef B_STEP
        const int column = part.column + column_of[g];
        if (is_run[g / RUN] && (uint)(part.row + row_of[g]) >= (uint)rows) {
          vstore8((float8)(0.0f), 0, line + g);
        } else if (is_run[g / RUN] && column >= 0 && column + RUN <= columns) {
          vstore8(vload8(0, b + (part.place + places[g])), 0, line + g);
        } else
#endif
        {
          for (uint j = g; j < g + RUN; ++j) {
            patch_part other;
            other.place = places[j];
            other.row = row_of[j];
            other.column = column_of[j];
            line[j] = PATCH_LOAD(part, other);
          }
        }
#endif
      }
#else
      __global const float *const from = b + (index_t)(k_first + i) * b_k;
#ifndef B_ALONG_K
      if (count == COLUMNS) {
        for (uint v = 0; v < VECTORS; ++v) panel[i * VECTORS + v] = VLOAD(v, from + n_begin);
        continue;
      }
#endif
      for (uint j = 0; j < COLUMNS; ++j) line[j] = from[places[j]];
#endif
    }

    const bool is_first = k_first == k_begin, is_last = k_first + depth == k_end;
    for (uint m = m_begin; m < m_end; m += ROWS) {
      index_t row_begin[ROWS];
#pragma unroll
      for (uint r = 0; r < ROWS; ++r) row_begin[r] = A_ROW(min(m + r, m_end - 1));
      vector_t sums[ROWS][VECTORS];
#pragma unroll
      for (uint r = 0; r < ROWS; ++r) {
#pragma unroll
        for (uint v = 0; v < VECTORS; ++v) sums[r][v] = (vector_t)(0.0f);
      }
      for (uint i = 0; i < depth; ++i) {
#ifdef A_BLOCKED
        const index_t step = steps[i];
#else
        const index_t step = A_STEP(k_first + i);
#endif
#pragma unroll
        for (uint r = 0; r < ROWS; ++r) {
          const float left = a[row_begin[r] + step];
#pragma unroll
          for (uint v = 0; v < VECTORS; ++v) sums[r][v] += left * panel[i * VECTORS + v];
        }
      }
      float tile[ROWS * COLUMNS];
#pragma unroll
      for (uint r = 0; r < ROWS; ++r) {
#pragma unroll
        for (uint v = 0; v < VECTORS; ++v) VSTORE(sums[r][v], r * VECTORS + v, tile);
      }
      for (uint r = 0; r < min((uint)ROWS, m_end - m); ++r) {
        __global float *const line = c + (index_t)(m + r) * c_m;
        if (c_is_run) {
          __global float *const to = line + C_COLUMN(first_outer, first_inner);
          for (uint j = 0; j < COLUMNS; ++j) {
            const float sum = is_first ? tile[r * COLUMNS + j] : tile[r * COLUMNS + j] + to[j];
            to[j] = is_last ? EPILOGUE(sum, batch, m + r, first_outer, first_inner + j) : sum;
          }
        } else {
          for (uint j = 0; j < count; ++j) {
            const uint outer = C_OUTER(n_begin + j), inner = C_INNER(n_begin + j, outer);
            __global float *const to = line + C_COLUMN(outer, inner);
            const float sum = is_first ? tile[r * COLUMNS + j] : tile[r * COLUMNS + j] + *to;
            *to = is_last ? EPILOGUE(sum, batch, m + r, outer, inner) : sum;
          }
        }
      }
    }
    k_first += depth;
  } while (k_first < k_end);
}
