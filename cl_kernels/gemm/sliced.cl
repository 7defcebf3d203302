// gemm_sliced_multiply: for products with fewer tiles than a GPU has compute units. A work-group owns a TILE_M x TILE_N tile
// of C. Each of its SLICES slices, THREADS items, multiplies a part of k of its own; the group then adds the slices'
// sums in the order of k. So one launch uses many items on a long k, where gemm/tiled.cl would write parts of k to global
// memory and add them in a second launch. A slice works as a group of gemm/tiled.cl does: 32 neighbouring items own
// 16 rows and 32 columns, an item 4 x 4, and tiles of depth TILE_K pass through registers to local memory,
// double-buffered. Local memory: 8·SLICES·TILE_K·(TILE_M + TILE_N + 8) bytes.
//
// THREADS = TILE_M·TILE_N / 16. The other definitions are those of gemm/tiled.cl.
#include "gemm/operands.h"
#ifdef B_TABLES
#include "gemm/element.h"
#endif
#include "gemm/tiled_loads.h"

#define A_ROW_VECTORS ((TILE_M + 4) / 4)
#define B_ROW_VECTORS ((TILE_N + 4) / 4)
#define TILE_VECTORS (TILE_K * (A_ROW_VECTORS + B_ROW_VECTORS))  // of both operands
#define N_BLOCKS (TILE_N / 32)                                   // of 32 items

#ifndef B_TABLES
#define TABLE_PARAMETERS
#define DECLARE_TABLES
#define TABLE_NUMBERS(NUMBER)
#endif
#define SLICED_NUMBERS(NUMBER) GEMM_NUMBERS(NUMBER) TABLE_NUMBERS(NUMBER)
typedef struct { SLICED_NUMBERS(NUMBER_MEMBER) } sliced_numbers;

__kernel __attribute__((reqd_work_group_size(SLICES * THREADS, 1, 1))) void gemm_sliced_multiply(
    MEMORY_PARAMETERS(GEMM_MEMORIES) TABLE_PARAMETERS const sliced_numbers numbers EPILOGUE_PARAMETERS) {
  SLICED_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  DECLARE_TABLES
  __local float4 memory[SLICES * 2 * TILE_VECTORS];
  const uint item = (uint)get_local_id(0), slice = item / THREADS, t = item % THREADS, z = (uint)get_group_id(2);
  const uint tiles_m = (m_size + TILE_M - 1) / TILE_M, group = (uint)get_group_id(0);
  const uint m_begin = group % tiles_m * TILE_M, n_begin = group / tiles_m * TILE_N;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint part_begin = part_number * k_part, part_end = min(k_size, part_begin + k_part);
  const uint steps = (part_end - part_begin + SLICES * TILE_K - 1) / (SLICES * TILE_K);  // of every slice
  const uint k_begin = part_begin + slice * steps * TILE_K, k_end = min(part_end, k_begin + steps * TILE_K);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;

  KEEP_A(m_begin)
  KEEP_B(n_begin)
  A_NUMBERS a_next[A_LOADS];
  B_NUMBERS b_next[B_LOADS];
  float sums[4][4];
  EACH(i, 4) {
    EACH(j, 4) sums[i][j] = 0.0f;
  }
  const uint lane = t % 32, block = t / 32;
  const uint m_item = block / N_BLOCKS * 16 + lane / 8 * 4, n_item = block % N_BLOCKS * 32 + lane % 8 * 4;

  __local float4 *const tiles = memory + slice * 2 * TILE_VECTORS;
  LOAD_A(k_begin)
  LOAD_B(k_begin)
  for (uint step = 0;;) {
    __local float4 *const a_tile = tiles + step % 2 * TILE_VECTORS, *const b_tile = a_tile + TILE_K * A_ROW_VECTORS;
    STORE_A(a_tile)
    STORE_B(b_tile)
    barrier(CLK_LOCAL_MEM_FENCE);
    if (++step < steps) {
      LOAD_A(k_begin + step * TILE_K)
      LOAD_B(k_begin + step * TILE_K)
    }
    EACH(k, TILE_K) {
      const float4 left = a_tile[k * A_ROW_VECTORS + m_item / 4], right = b_tile[k * B_ROW_VECTORS + n_item / 4];
      const float rows[4] = {left.x, left.y, left.z, left.w}, columns[4] = {right.x, right.y, right.z, right.w};
      EACH(i, 4) {
        EACH(j, 4) sums[i][j] = fma(rows[i], columns[j], sums[i][j]);
      }
    }
    if (step == steps) break;
  }

  barrier(CLK_LOCAL_MEM_FENCE);
  EACH(i, 4) {
    memory[((slice * TILE_M + m_item + i) * TILE_N + n_item) / 4] =
        (float4)(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  c += c_offset + z * c_batch;
  EACH(i, TILE_M * TILE_N / (SLICES * THREADS)) {
    const uint place = i * SLICES * THREADS + item, m = m_begin + place / TILE_N, n = n_begin + place % TILE_N;
    float sum = 0.0f;
    EACH(s, SLICES) sum += ((__local const float *)memory)[s * TILE_M * TILE_N + place];
    if (m < m_size && n < n_size) {
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
      c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
    }
  }
}
