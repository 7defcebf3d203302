// gemm_direct_multiply: small products on the matrix units of NVIDIA GPUs, whose factors go from memory to registers by
// fours, past local memory. A work-group owns a TILE_M x TILE_N tile of C. Its WARPS warps take turns at sixteen values of
// k, begin all reads of DEPTH turns before they multiply, and add up their sums in local memory at the end.
//
// Definitions beside those of gemm/operands.h: WARPS, DEPTH, N_TILES (1, 2, 4), and PRECISION of gemm/mma_sixteen.h.
// A tile reads 4·k·(TILE_M + TILE_N) bytes for 2·k·TILE_M·TILE_N operations: for small products, which are not many tiles.
// Both operands are adjacent, aligned and in range by fours (gemm/tiled.cl).
// Local memory: 4·SUMS·SUM_STRIDE·WARPS bytes.
#include "gemm/operands.h"
#define M_TILES 2
#include "gemm/mma_sixteen.h"

// With quad = lane % 4 and row = lane / 4 a lane has four neighbouring rows of the tile, from 4·row on, and N_TILES
// neighbouring columns, from N_TILES·row on: so fours of either direction are what it reads. Rows 2·i and 2·i + 1 of
// them belong to the i-th tile of 16 rows, column j to the j-th tile of 8. It has the four values of k from 4·quad on.
#define TILE_M 32
#define TILE_N (8 * N_TILES)
#define THREADS (32 * WARPS)
#define TURN (16 * WARPS)

typedef struct {
  uint left[4][4], right[N_TILES][4];
} direct_factors;

// Reads `type` at `from` + STEP(k), zeros from k_end on. No read waits for a branch.
#define READ(type, from, STEP, k) \
  (*(__global const type *)((from) + ((k) < k_end ? STEP(k) : 0)) & ((k) < k_end ? 0xffffffffu : 0u))
#ifdef A_ALONG_K
#define READ_LEFT(to, k)                                                                                    \
  EACH(r, 4) {                                                                                              \
    const uint4 four = READ(uint4, a + a_rows[r], A_STEP, k);                                               \
    (to).left[r][0] = four.x, (to).left[r][1] = four.y, (to).left[r][2] = four.z, (to).left[r][3] = four.w; \
  }
#else
#define READ_LEFT(to, k)                                                                                    \
  EACH(q, 4) {                                                                                              \
    const uint4 four = READ(uint4, a + a_row, A_STEP, (k) + q);                                             \
    (to).left[0][q] = four.x, (to).left[1][q] = four.y, (to).left[2][q] = four.z, (to).left[3][q] = four.w; \
  }
#endif
#ifdef B_ALONG_K
#define READ_RIGHT(to, k)                                                                                       \
  EACH(j, N_TILES) {                                                                                            \
    const uint4 four = READ(uint4, b + b_columns[j], B_STEP_OF, k);                                             \
    (to).right[j][0] = four.x, (to).right[j][1] = four.y, (to).right[j][2] = four.z, (to).right[j][3] = four.w; \
  }
#elif N_TILES == 4
#define READ_RIGHT(to, k)                                                                                       \
  EACH(q, 4) {                                                                                                  \
    const uint4 four = READ(uint4, b + b_column, B_STEP_OF, (k) + q);                                           \
    (to).right[0][q] = four.x, (to).right[1][q] = four.y, (to).right[2][q] = four.z, (to).right[3][q] = four.w; \
  }
#elif N_TILES == 2
#define READ_RIGHT(to, k)                                             \
  EACH(q, 4) {                                                        \
    const uint2 two = READ(uint2, b + b_column, B_STEP_OF, (k) + q);  \
    (to).right[0][q] = two.x, (to).right[1][q] = two.y;               \
  }
#else
#define READ_RIGHT(to, k) EACH(q, 4) (to).right[0][q] = READ(uint, b + b_column, B_STEP_OF, (k) + q);
#endif

// The sums of a warp: of each the values of all lanes, padded so that neighbours of a row of C come from 32 banks. The
// e-th sum of tile (i, j) is number SUM_OF(i, e / 2, j, e % 2).
#define SUMS (M_TILES * N_TILES * 4)
#define SUM_STRIDE 36
#define SUM_OF(i, below, j, odd) (((i) * 2 + (below)) * 2 * N_TILES + (j) * 2 + (odd))

typedef struct { GEMM_NUMBERS(NUMBER_MEMBER) } direct_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm_direct_multiply(
    MEMORY_PARAMETERS(GEMM_MEMORIES) const direct_numbers numbers EPILOGUE_PARAMETERS) {
  GEMM_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  __local float exchange[WARPS * SUMS * SUM_STRIDE];
  const uint t = (uint)get_local_id(0), lane = t & 31, warp = t >> 5, z = (uint)get_group_id(2);
  const uint quad = lane & 3, row = lane >> 2;
  const uint tiles_m = (m_size + TILE_M - 1) / TILE_M, group = (uint)get_group_id(0);
  const uint m_begin = group % tiles_m * TILE_M, n_begin = group / tiles_m * TILE_N;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;

  // Rows and columns past the edge repeat the last ones and are not written. Values of k past the end count as zero.
#ifdef A_ALONG_K
  index_t a_rows[4];
  EACH(r, 4) a_rows[r] = A_ROW(min(m_begin + row * 4 + r, m_size - 1));
#else
  const index_t a_row = A_ROW(min(m_begin + row * 4, m_size - 4));
#endif
#ifdef B_ALONG_K
  index_t b_columns[N_TILES];
  EACH(j, N_TILES) b_columns[j] = B_COLUMN_OF(min(n_begin + row * N_TILES + j, n_size - 1));
#else
  const index_t b_column = B_COLUMN_OF(min(n_begin + row * N_TILES, n_size - N_TILES));
#endif
  float sums[M_TILES][N_TILES][4];
  EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) sums[i][j][e] = 0.0f;
  for (uint turn = k_begin + warp * 16; turn < k_end; turn += DEPTH * TURN) {
    direct_factors factors[DEPTH];
    EACH(d, DEPTH) {
      const uint k = turn + d * TURN + quad * 4;
      READ_LEFT(factors[d], k)
      READ_RIGHT(factors[d], k)
    }
    EACH(d, DEPTH) {
#define LEFT(i, q, below) factors[d].left[2 * (i) + (below)][q]
      ADD_SIXTEEN(sums, LEFT, factors[d].right)
    }
  }

  __local float *const own = exchange + warp * SUMS * SUM_STRIDE + lane;
  EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) own[SUM_OF(i, e / 2, j, e % 2) * SUM_STRIDE] = sums[i][j][e];
  barrier(CLK_LOCAL_MEM_FENCE);
  c += c_offset + z * c_batch;
  // Neighbouring items add up and write neighbours of a row of C.
  for (uint i = t; i < TILE_M * TILE_N; i += THREADS) {
    const uint tile_row = i / TILE_N, tile_column = i % TILE_N, pair = tile_column / N_TILES;
    const uint m = m_begin + tile_row, n = n_begin + tile_column;
    if (m >= m_size || n >= n_size) continue;
    const uint number = SUM_OF(0, tile_row % 4, tile_column % N_TILES, pair % 2);
    __local const float *const from = exchange + number * SUM_STRIDE + tile_row / 4 * 4 + pair / 2;
    float sum = 0.0f;
    EACH(w, WARPS) sum += from[w * SUMS * SUM_STRIDE];
#if PRECISION == SPLIT
    // An infinity has become NaN, as the difference of itself and its high part. Such sums are taken again.
    if (!isfinite(sum)) {
      sum = 0.0f;
      for (uint k = k_begin; k < k_end; ++k) {
        sum = fma(a[A_ROW(m) + A_STEP(k)], b[B_STEP_OF(k) + B_COLUMN_OF(n)], sum);
      }
    }
#endif
    const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
    c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
  }
}
