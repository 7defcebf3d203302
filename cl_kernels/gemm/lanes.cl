// gemm_lanes_multiply: for small products of two matrices whose rows lie along k, as in the forward pass of a linear layer
// at a small batch. 32 items own 4 rows and 8 columns of C; neighbouring items read neighbouring fours of k, so that each
// read is one piece of memory, and an item keeps the sums of its own k. At the end they exchange the sums through local
// memory: each adds up the 32 sums of one element. A work-group has WARPS times 32 items, which share nothing else.
//
// Both operands are read by fours along k (gemm/tiled.cl), and k_part is a multiple of 128. Local memory: 4224·WARPS bytes.
#include "gemm/operands.h"

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)
#define ROWS 4
#define COLUMNS 8
#define LANES 32  // ROWS·COLUMNS: each adds up one element
typedef struct { GEMM_NUMBERS(NUMBER_MEMBER) } lanes_numbers;

__kernel __attribute__((reqd_work_group_size(WARPS * LANES, 1, 1))) void gemm_lanes_multiply(
    MEMORY_PARAMETERS(GEMM_MEMORIES) const lanes_numbers numbers EPILOGUE_PARAMETERS) {
  GEMM_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  __local float exchange[WARPS * LANES * (LANES + 1)];
  const uint lane = (uint)get_local_id(0) % LANES, warp = (uint)get_local_id(0) / LANES, z = (uint)get_group_id(2);
  const uint blocks_m = (m_size + ROWS - 1) / ROWS, block = (uint)get_group_id(0) * WARPS + warp;
  const uint m_begin = block % blocks_m * ROWS, n_begin = block / blocks_m * COLUMNS;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;

  // Rows and columns past the edge repeat the last ones and are not written.
  __global const float *left_rows[ROWS], *right_columns[COLUMNS];
  EACH(i, ROWS) left_rows[i] = a + A_ROW(min(m_begin + i, m_size - 1));
  EACH(j, COLUMNS) right_columns[j] = b + B_COLUMN_OF(min(n_begin + j, n_size - 1));
  float sums[ROWS][COLUMNS];
  EACH(i, ROWS) {
    EACH(j, COLUMNS) sums[i][j] = 0.0f;
  }
  for (uint k = k_begin + lane * 4; k < k_end; k += LANES * 4) {
    float4 left[ROWS], right[COLUMNS];
    EACH(i, ROWS) left[i] = *(__global const float4 *)(left_rows[i] + A_STEP(k));
    EACH(j, COLUMNS) right[j] = *(__global const float4 *)(right_columns[j] + B_STEP_OF(k));
    EACH(i, ROWS) {
      EACH(j, COLUMNS) {
        sums[i][j] = fma(left[i].x, right[j].x, sums[i][j]);
        sums[i][j] = fma(left[i].y, right[j].y, sums[i][j]);
        sums[i][j] = fma(left[i].z, right[j].z, sums[i][j]);
        sums[i][j] = fma(left[i].w, right[j].w, sums[i][j]);
      }
    }
  }

  __local float *const own = exchange + warp * LANES * (LANES + 1);
  EACH(i, ROWS) {
    EACH(j, COLUMNS) own[(i * COLUMNS + j) * (LANES + 1) + lane] = sums[i][j];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  EACH(i, LANES) sum += own[lane * (LANES + 1) + i];
  const uint m = m_begin + lane / COLUMNS, n = n_begin + lane % COLUMNS;
  if (m >= m_size || n >= n_size) return;
  c += c_offset + z * c_batch;
  const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
  c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
}
