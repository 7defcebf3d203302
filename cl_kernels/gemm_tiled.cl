// gemm_tiled_multiply: for GPUs. A work-group of THREADS items owns a TILE_M x TILE_N tile of C, an item THREAD_M x THREAD_N
// of it as float4 columns 4 apart from its neighbours'. Tiles of A and B of depth TILE_K pass through local memory,
// double-buffered: while one is multiplied, the next is on its way through registers. A group reads
// (TILE_M + TILE_N)·K·4 bytes and does 2·TILE_M·TILE_N·K FLOPs. Local memory: 8·TILE_K·(TILE_M + TILE_N + 8) bytes.
// THREADS = TILE_M·TILE_N / (THREAD_M·THREAD_N), a multiple of TILE_M, TILE_N and TILE_K.
#include "gemm_operands.h"

#define A_LOADS (TILE_M * TILE_K / THREADS)
#define B_LOADS (TILE_N * TILE_K / THREADS)
#define A_ROW_VECTORS ((TILE_M + 4) / 4)
#define B_ROW_VECTORS ((TILE_N + 4) / 4)
#define M_VECTORS (THREAD_M / 4)
#define N_VECTORS (THREAD_N / 4)
#define M_DISTANCE (TILE_M / M_VECTORS)
#define N_DISTANCE (TILE_N / N_VECTORS)

// Place in a tile of the i-th element that item `t` loads: neighbours in memory go to neighbouring items.
#ifdef A_ALONG_K
#define A_TILE_K(i) (t % TILE_K)
#define A_TILE_M(i) (t / TILE_K + (i) * (THREADS / TILE_K))
#else
#define A_TILE_K(i) (t / TILE_M + (i) * (THREADS / TILE_M))
#define A_TILE_M(i) (t % TILE_M)
#endif
#ifdef B_ALONG_K
#define B_TILE_K(i) (t % TILE_K)
#define B_TILE_N(i) (t / TILE_K + (i) * (THREADS / TILE_K))
#define B_COLUMNS B_LOADS
#define B_COLUMN(i) (i)
#else
#define B_TILE_K(i) (t / TILE_N + (i) * (THREADS / TILE_N))
#define B_TILE_N(i) (t % TILE_N)
#define B_COLUMNS 1
#define B_COLUMN(i) 0
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm_tiled_multiply(
    GEMM_PARAMETERS EPILOGUE_PARAMETERS) {
  __local float4 a_tiles[2][TILE_K * A_ROW_VECTORS];
  __local float4 b_tiles[2][TILE_K * B_ROW_VECTORS];
  const uint t = (uint)get_local_id(0), z = (uint)get_group_id(2);
  const uint n_begin = (uint)get_group_id(0) * TILE_N, m_begin = (uint)get_group_id(1) * TILE_M;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;
  c += c_offset + z * c_batch;

  // Rows and columns past the edge repeat the last one; they are never written.
#ifdef B_PATCH
  patch_part columns_of_b[B_COLUMNS];
#pragma unroll
  for (uint i = 0; i < B_COLUMNS; ++i) columns_of_b[i] = PATCH_N(min(n_begin + B_TILE_N(i), n_size - 1));
#endif

  float a_next[A_LOADS], b_next[B_LOADS];
  float4 sums[THREAD_M][N_VECTORS];
#pragma unroll
  for (uint i = 0; i < THREAD_M; ++i) {
#pragma unroll
    for (uint j = 0; j < N_VECTORS; ++j) sums[i][j] = (float4)(0.0f);
  }
  const uint t_n = t % (TILE_N / THREAD_N), t_m = t / (TILE_N / THREAD_N);

  uint current = 0;
  for (uint tile = k_begin; ; tile += TILE_K) {
    // `tile` is the one to load; the one before it is multiplied meanwhile.
    if (tile < k_end) {
#pragma unroll
      for (uint i = 0; i < A_LOADS; ++i) {
        const uint k = tile + A_TILE_K(i), m = min(m_begin + A_TILE_M(i), m_size - 1);
        a_next[i] = k < k_end ? a[A_ROW(m) + A_STEP(k)] : 0.0f;
      }
#pragma unroll
      for (uint i = 0; i < B_LOADS; ++i) {
        const uint k = tile + B_TILE_K(i);
#ifdef B_PATCH
        b_next[i] = 0.0f;
        if (k < k_end) b_next[i] = PATCH_LOAD(PATCH_K(k), columns_of_b[B_COLUMN(i)]);
#else
        const uint n = min(n_begin + B_TILE_N(i), n_size - 1);
        b_next[i] = k < k_end ? b[B_STEP_OF(k) + B_COLUMN_OF(n)] : 0.0f;
#endif
      }
    }
    if (tile > k_begin) {
      __local const float4 *a_tile = a_tiles[current], *b_tile = b_tiles[current];
#pragma unroll 8
      for (uint k = 0; k < TILE_K; ++k) {
        float left[THREAD_M];
#pragma unroll
        for (uint i = 0; i < M_VECTORS; ++i) {
          const float4 v = a_tile[k * A_ROW_VECTORS + i * (M_DISTANCE / 4) + t_m];
          left[4 * i] = v.x;
          left[4 * i + 1] = v.y;
          left[4 * i + 2] = v.z;
          left[4 * i + 3] = v.w;
        }
#pragma unroll
        for (uint j = 0; j < N_VECTORS; ++j) {
          const float4 right = b_tile[k * B_ROW_VECTORS + j * (N_DISTANCE / 4) + t_n];
#pragma unroll
          for (uint i = 0; i < THREAD_M; ++i) sums[i][j] += left[i] * right;
        }
      }
      current ^= 1;
    }
    if (tile >= k_end) break;
    __local float *a_store = (__local float *)a_tiles[current], *b_store = (__local float *)b_tiles[current];
#pragma unroll
    for (uint i = 0; i < A_LOADS; ++i) a_store[A_TILE_K(i) * (A_ROW_VECTORS * 4) + A_TILE_M(i)] = a_next[i];
#pragma unroll
    for (uint i = 0; i < B_LOADS; ++i) b_store[B_TILE_K(i) * (B_ROW_VECTORS * 4) + B_TILE_N(i)] = b_next[i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (uint j = 0; j < N_VECTORS; ++j) {
#pragma unroll
    for (uint x = 0; x < 4; ++x) {
      const uint n = n_begin + j * N_DISTANCE + t_n * 4 + x;
      if (n < n_size) {
        const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
#pragma unroll
        for (uint i = 0; i < THREAD_M; ++i) {
          const uint m = m_begin + (i / 4) * M_DISTANCE + t_m * 4 + i % 4;
          const float4 v = sums[i][j];
          const float sum = x == 0 ? v.x : x == 1 ? v.y : x == 2 ? v.z : v.w;
          if (m < m_size) c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
        }
      }
    }
  }
}
