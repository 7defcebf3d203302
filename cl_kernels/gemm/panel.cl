// gemm_panel_multiply: for CPUs. A work-item is a work-group and owns m_part rows of C and PANELS panels of
// COLUMNS = VECTORS·WIDTH columns. It packs DEPTH x COLUMNS of B for each of them into private memory (second-level
// cache), where patches of an image are also gathered (one panel then), and multiplies ROWS x COLUMNS of C at a time out
// of vector registers, with ROWS rows of A in the first-level cache for all panels; longer k goes on in C.
// 2·m_part·PANELS·COLUMNS·K FLOPs; reads PANELS·COLUMNS·K of B and m_part·K of A once. No local memory, no barrier.
#include "gemm/panel_pack.h"

#define PANEL_NUMBERS(NUMBER) GEMM_NUMBERS(NUMBER) NUMBER(uint, m_part)
typedef struct { PANEL_NUMBERS(NUMBER_MEMBER) } panel_numbers;

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_panel_multiply(
    MEMORY_PARAMETERS(GEMM_MEMORIES) const panel_numbers numbers EPILOGUE_PARAMETERS) {
  PANEL_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  const uint n_begin = (uint)get_group_id(0) * (PANELS * COLUMNS), z = (uint)get_group_id(2);
  const uint m_begin = (uint)get_group_id(1) * m_part, m_end = min(m_size, m_begin + m_part);
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;
  c += c_offset + z * c_batch;
  // Two vectors of slack: segments are stored whole and what stands over is overwritten by the next one.
  vector_t right[PANELS * DEPTH * VECTORS + 2];
  if (n_begin + PANELS * COLUMNS > n_size) {
    for (uint i = 0; i < PANELS * DEPTH * VECTORS; ++i) right[i] = (vector_t)(0.0f);
  }
#ifdef A_PACKED
  float left_rows[DEPTH * ROWS];
#endif

  const uint all = min((uint)(PANELS * COLUMNS), n_size - n_begin), panels = (all + COLUMNS - 1) / COLUMNS;
  bool is_run[PANELS];  // whether a panel is whole and its columns lie beside each other in C
  index_t places_in_c[PANELS * COLUMNS];
  uint outers[PANELS * COLUMNS], inners[PANELS * COLUMNS];
  for (uint p = 0; p < panels; ++p) {
    const uint first = p * COLUMNS, last = min(first + COLUMNS, all) - 1;
    for (uint j = first; j <= last; ++j) {
      outers[j] = C_OUTER(n_begin + j);
      inners[j] = C_INNER(n_begin + j, outers[j]);
      places_in_c[j] = C_COLUMN(outers[j], inners[j]);
    }
    is_run[p] = last - first == COLUMNS - 1 && outers[last] == outers[first] && inners[last] - inners[first] == last - first;
  }
#ifdef B_PATCH
  const index_t image_size = b_size - (index_t)(batch * b_batch);
  segment segments[COLUMNS];
  uint segment_count = 0;
  const uint longest = n_column == 2 ? SEGMENT / 2 : SEGMENT;
  for (uint j = 0; j < all; j += segments[segment_count++].length) {
    const uint n = n_begin + j, x = n - DIVIDE(n, n_line) * n_line;
    segments[segment_count].part = PATCH_N(n);
    segments[segment_count].begin = j;
    segments[segment_count].length = min(longest, min(n_line - x, all - j));
  }
#endif
#ifdef A_STEPS
  long steps[DEPTH];
#endif

  uint k_first = k_begin;
  do {
    const uint length = min((uint)DEPTH, k_end - k_first);
#ifdef B_PATCH
    uint depth = 0;  // how many of these k are packed
    for (uint i = 0; i < length; ++i) {
      float *const line = (float *)right + depth * COLUMNS;
#ifdef A_STEPS
      steps[depth] = A_STEP(k_first + i);
#endif
      const patch_part part = PATCH_K(k_first + i);
      bool any = false;
      for (uint g = 0; g < segment_count; ++g) {
        const segment one = segments[g];
        any |= PACK_SEGMENT(one, part, line + one.begin);
      }
#ifdef B_STEP
      // A row between pixels is zero for every column of it: with wide images half of all k or more.
      if (!any) continue;
#endif
      ++depth;
    }
#else
    const uint depth = length;
#ifdef A_STEPS
    for (uint i = 0; i < length; ++i) steps[i] = A_STEP(k_first + i);
#endif
    for (uint p = 0; p < panels; ++p) {
      pack_columns(b, k_first, length, n_begin + p * COLUMNS, min((uint)COLUMNS, all - p * COLUMNS),
                   (float *)(right + p * (DEPTH * VECTORS)), b_k, b_n, k_block, k_block_magic, k_block_shift);
    }
#endif

    const bool is_first = k_first == k_begin, is_last = k_first + length == k_end;
    for (uint m = m_begin; m < m_end; m += ROWS) {
#ifdef A_PACKED
      pack_rows(a, m, m_end, k_first, length, left_rows, a_k);
#else
      // Pointers, not indices: a compiler may pack what it adds to indices into vectors, and take it out again.
      __global const float *rows_of_a[ROWS];
#pragma unroll
      for (uint r = 0; r < ROWS; ++r) rows_of_a[r] = a + A_ROW(min(m + r, m_end - 1));
#endif
      for (uint p = 0; p < panels; ++p) {
        const vector_t *const panel = right + p * (DEPTH * VECTORS);
        vector_t sums[ROWS][VECTORS];
#pragma unroll
        for (uint r = 0; r < ROWS; ++r) {
#pragma unroll
          for (uint v = 0; v < VECTORS; ++v) sums[r][v] = (vector_t)(0.0f);
        }
        for (uint i = 0; i < depth; ++i) {
#pragma unroll
          for (uint r = 0; r < ROWS; ++r) {
            const float left = LEFT(i, r);
#pragma unroll
            for (uint v = 0; v < VECTORS; ++v) sums[r][v] += left * panel[i * VECTORS + v];
          }
        }
        const uint first = p * COLUMNS, count = min((uint)COLUMNS, all - first);
        if (is_run[p]) {
          __global float *const to = c + ((index_t)m * c_m + places_in_c[first]);
#pragma unroll
          for (uint r = 0; r < ROWS; ++r) {
            if (m + r >= m_end) break;
            __global float *const line = to + (index_t)r * c_m;
#pragma unroll
            for (uint v = 0; v < VECTORS; ++v) {
              vector_t sum = sums[r][v];
              if (!is_first) sum += VLOAD(v, line);
              VSTORE(sum, v, line);
            }
#ifdef EPILOGUE_IS_EXPRESSION
            if (!is_last) continue;
            for (uint j = 0; j < COLUMNS; ++j) line[j] = EPILOGUE(line[j], batch, m + r, outers[first], inners[first] + j);
#endif
          }
        } else {
          float tile[ROWS * COLUMNS];
#pragma unroll
          for (uint r = 0; r < ROWS; ++r) {
#pragma unroll
            for (uint v = 0; v < VECTORS; ++v) VSTORE(sums[r][v], r * VECTORS + v, tile);
          }
          const bool rows_inside = c_m == 1 && m + ROWS <= m_end;
          for (uint j = 0; j < count && rows_inside; ++j) {
            __global float *const to = c + (m + places_in_c[first + j]);
            float column[ROWS];
#pragma unroll
            for (uint r = 0; r < ROWS; ++r) column[r] = tile[r * COLUMNS + j];
            VSTORE_ROWS(is_first ? VLOAD_ROWS(0, column) : VLOAD_ROWS(0, column) + VLOAD_ROWS(0, to), 0, to);
          }
          for (uint r = 0; r < min((uint)ROWS, m_end - m); ++r) {
            __global float *const line = c + (index_t)(m + r) * c_m;
            for (uint j = 0; j < count && !rows_inside; ++j) {
              __global float *const to = line + places_in_c[first + j];
              *to = is_first ? tile[r * COLUMNS + j] : tile[r * COLUMNS + j] + *to;
            }
#ifdef EPILOGUE_IS_EXPRESSION
            if (!is_last) continue;
            for (uint j = first; j < first + count; ++j) {
              __global float *const to = line + places_in_c[j];
              *to = EPILOGUE(*to, batch, m + r, outers[j], inners[j]);
            }
#endif
          }
        }
      }
    }
    k_first += length;
  } while (k_first < k_end);
}
