// gemm_tiled_multiply: for GPUs. A work-group of THREADS items owns a TILE_M x TILE_N tile of C; 32 neighbouring items own
// 4·THREAD_M x 8·THREAD_N of it, 4 rows of 8 items, an item THREAD_M x THREAD_N: so the items that multiply together read
// few different numbers. Tiles of A and B of depth TILE_K pass through local memory, double-buffered: while one is
// multiplied, the next is on its way through registers. A group reads (TILE_M + TILE_N)·K·4 bytes and does
// 2·TILE_M·TILE_N·K FLOPs. Local memory: 8·TILE_K·(TILE_M + TILE_N + 8) bytes.
//
// THREADS = TILE_M·TILE_N / (THREAD_M·THREAD_N). WHOLE_TILES: operands are matrices that are read by fours, and every part
// of k is a multiple of TILE_K. A_VECTOR, B_VECTOR, C_VECTOR: floats that are read or written at once, 4
// where they are adjacent, aligned and in range together, else 1. B_TABLES: patches are told by tables (gemm/element.h).
#include "gemm/operands.h"
#ifdef B_TABLES
#include "gemm/element.h"
#endif
#include "gemm/tiled_loads.h"

#define BAND 8  // rows of tiles that are taken together
#define A_ROW_VECTORS ((TILE_M + 4) / 4)
#define B_ROW_VECTORS ((TILE_N + 4) / 4)
#define M_VECTORS (THREAD_M / 4)
#define N_VECTORS (THREAD_N / 4)
#define M_ITEMS 4
#define N_ITEMS 8
#define M_DISTANCE (M_ITEMS * 4)  // of an item's vectors
#define N_DISTANCE (N_ITEMS * 4)
#define N_BLOCKS (TILE_N / (N_ITEMS * THREAD_N))  // of 32 items

// Other unrolling takes more than 128 registers on NVIDIA's GPUs, which halves the groups.
#ifdef WHOLE_TILES
#define EACH_K _Pragma("unroll") for (uint k = 0; k < TILE_K; ++k)
#else
#define EACH_K _Pragma("unroll 2") for (uint k = 0; k < TILE_K; ++k)
#endif

#ifndef B_TABLES
#define TABLE_PARAMETERS
#define DECLARE_TABLES
#define TABLE_NUMBERS(NUMBER)
#endif
#define TILED_NUMBERS(NUMBER) GEMM_NUMBERS(NUMBER) TABLE_NUMBERS(NUMBER)
typedef struct { TILED_NUMBERS(NUMBER_MEMBER) } tiled_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm_tiled_multiply(
    MEMORY_PARAMETERS(GEMM_MEMORIES) TABLE_PARAMETERS const tiled_numbers numbers EPILOGUE_PARAMETERS) {
  TILED_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  DECLARE_TABLES
  __local float4 a_tiles[2][TILE_K * A_ROW_VECTORS];
  __local float4 b_tiles[2][TILE_K * B_ROW_VECTORS];
  const uint t = (uint)get_local_id(0), z = (uint)get_group_id(2);
  const uint tiles_m = (m_size + TILE_M - 1) / TILE_M, tiles_n = (n_size + TILE_N - 1) / TILE_N;
  const uint group = (uint)get_group_id(0), band = group / (BAND * tiles_n), in_band = group - band * BAND * tiles_n;
  const uint band_rows = min(tiles_m - band * BAND, (uint)BAND);
  const uint m_begin = (band * BAND + in_band % band_rows) * TILE_M, n_begin = in_band / band_rows * TILE_N;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;

  KEEP_A(m_begin)
  KEEP_B(n_begin)
  A_NUMBERS a_next[A_LOADS];
  B_NUMBERS b_next[B_LOADS];
  float sums[THREAD_M][THREAD_N];
  EACH(i, THREAD_M) {
    EACH(j, THREAD_N) sums[i][j] = 0.0f;
  }
  const uint lane = t % (M_ITEMS * N_ITEMS), block = t / (M_ITEMS * N_ITEMS);
  const uint m_item = block / N_BLOCKS * (M_ITEMS * THREAD_M) + lane / N_ITEMS * 4;
  const uint n_item = block % N_BLOCKS * (N_ITEMS * THREAD_N) + lane % N_ITEMS * 4;

  uint current = 0;
  LOAD_A(k_begin)
  LOAD_B(k_begin)
  for (uint next = k_begin + TILE_K;; next += TILE_K) {
    STORE_A(a_tiles[current])
    STORE_B(b_tiles[current])
    barrier(CLK_LOCAL_MEM_FENCE);
    if (next < k_end) {
      LOAD_A(next)
      LOAD_B(next)
    }
    __local const float4 *a_tile = a_tiles[current] + m_item / 4, *b_tile = b_tiles[current] + n_item / 4;
    EACH_K {
      float left[THREAD_M];
      EACH(i, M_VECTORS) {
        const float4 v = a_tile[k * A_ROW_VECTORS + i * (M_DISTANCE / 4)];
        left[4 * i] = v.x;
        left[4 * i + 1] = v.y;
        left[4 * i + 2] = v.z;
        left[4 * i + 3] = v.w;
      }
      EACH(j, N_VECTORS) {
        const float4 right = b_tile[k * B_ROW_VECTORS + j * (N_DISTANCE / 4)];
        EACH(i, THREAD_M) {
          sums[i][4 * j] = fma(left[i], right.x, sums[i][4 * j]);
          sums[i][4 * j + 1] = fma(left[i], right.y, sums[i][4 * j + 1]);
          sums[i][4 * j + 2] = fma(left[i], right.z, sums[i][4 * j + 2]);
          sums[i][4 * j + 3] = fma(left[i], right.w, sums[i][4 * j + 3]);
        }
      }
    }
    if (next >= k_end) break;
    current ^= 1;
  }

  c += c_offset + z * c_batch;
  EACH(j, N_VECTORS) {
    const uint n_first = n_begin + n_item + j * N_DISTANCE;
    EACH(x, 4 / C_VECTOR) {
      const uint n = n_first + x;
      if (n >= n_size) continue;
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
      __global float *to = c + (index_t)(m_begin + m_item) * c_m + C_COLUMN(outer, inner);
      EACH(i, THREAD_M) {
        const uint m = m_begin + m_item + (i / 4) * M_DISTANCE + i % 4;
        if (m < m_size) {
#if C_VECTOR == 4
          *(__global float4 *)to =
              (float4)(EPILOGUE(sums[i][4 * j], batch, m, outer, inner),
                       EPILOGUE(sums[i][4 * j + 1], batch, m, outer, inner + 1),
                       EPILOGUE(sums[i][4 * j + 2], batch, m, outer, inner + 2),
                       EPILOGUE(sums[i][4 * j + 3], batch, m, outer, inner + 3));
#else
          *to = EPILOGUE(sums[i][4 * j + x], batch, m, outer, inner);
#endif
        }
        to += i % 4 == 3 ? (M_DISTANCE - 3) * c_m : c_m;
      }
    }
  }
}
