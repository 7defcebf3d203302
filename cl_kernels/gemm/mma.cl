// gemm_mma_multiply: products on the matrix units of NVIDIA GPUs from compute capability 8.0 on, by inline PTX (mma.sync,
// cp.async). A work-group of THREADS items (warps of 32) owns a TILE_M x TILE_N tile of C, a warp WARP_M x WARP_N of it.
// Tiles of A and B of depth TILE_K are copied to local memory past the registers, STAGES of them on their way at once.
//
// Definitions beside those of gemm/operands.h and gemm/right.h:
//   A_VECTOR             as B_VECTOR, for the left operand
//   C_PAIRS              two neighbours of a row of C are aligned and in range together
//   PRECISION            of gemm/mma_sixteen.h
// Groups run along m first, in bands of BAND tiles of m, so that neighbours in time share what they read.
#include "gemm/operands.h"
#define RIGHT_LINES TILE_N
#include "gemm/right.h"
#include "gemm/mma_sixteen.h"

#define WARPS_N (TILE_N / WARP_N)
#define M_TILES (WARP_M / 16)
#define N_TILES (WARP_N / 8)

// A tile lies in local memory as its operand does in memory, rows padded so that fragments come from 32 banks.
#ifdef A_ALONG_K
#define A_LINE (TILE_K / A_VECTOR)
#define A_PLACE(m, k) ((m) * (TILE_K + 4) + (k))
#define A_FLOATS (TILE_M * (TILE_K + 4))
#else
#define A_LINE (TILE_M / A_VECTOR)
#define A_PLACE(m, k) ((k) * (TILE_M + 8) + (m))
#define A_FLOATS (TILE_K * (TILE_M + 8))
#endif
#ifdef B_ALONG_K
#define B_PLACE(n, k) ((n) * (TILE_K + 4) + (k))
#define B_FLOATS (TILE_N * (TILE_K + 4))
#else
#define B_PLACE(n, k) ((k) * (TILE_N + 8) + (n))
#define B_FLOATS (TILE_K * (TILE_N + 8))
#endif
#define STAGE_FLOATS (A_FLOATS + B_FLOATS)
#define A_LOADS (TILE_M * TILE_K / A_VECTOR / THREADS)
#define A_STRIDE (THREADS / A_LINE)  // lines between two copies of an item

#if A_VECTOR == 4
#define COPY_A COPY_4
#else
#define COPY_A COPY_1
#endif
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_BUT_(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define WAIT_BUT(n) WAIT_BUT_(n)
#if STAGES != 4
#error "the wait below is for four stages"
#endif
#define WAIT_OLDEST() WAIT_BUT(2)

#define MMA_NUMBERS(NUMBER) GEMM_NUMBERS(NUMBER) TABLE_NUMBERS(NUMBER)
typedef struct { MMA_NUMBERS(NUMBER_MEMBER) } mma_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm_mma_multiply(
    MEMORY_PARAMETERS(GEMM_MEMORIES) TABLE_PARAMETERS const mma_numbers numbers EPILOGUE_PARAMETERS) {
  MMA_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  DECLARE_TABLES
  __local uint4 tiles[STAGES * STAGE_FLOATS / 4] __attribute__((aligned(128)));
  const uint t = (uint)get_local_id(0), lane = t & 31, warp = t >> 5, z = (uint)get_group_id(2);
  const uint quad = lane & 3, row_of_lane = lane >> 2;
  const uint tiles_m = (m_size + TILE_M - 1) / TILE_M, tiles_n = (n_size + TILE_N - 1) / TILE_N;
  const uint group = (uint)get_group_id(0), band = group / (BAND * tiles_n), in_band = group - band * BAND * tiles_n;
  const uint band_rows = min(tiles_m - band * BAND, (uint)BAND);
  const uint m_begin = (band * BAND + in_band % band_rows) * TILE_M, n_begin = in_band / band_rows * TILE_N;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;
  c += c_offset + z * c_batch;

  // Columns past the edge repeat the last one, rows count as zero: if every group read the last row again and again, it
  // would wait for that. Neither is ever written.
  const uint a_along = t % A_LINE * A_VECTOR, a_line = t / A_LINE;
  const uint b_along = t % B_LINE * B_VECTOR, b_line = t / B_LINE;
#ifdef A_ALONG_K
  index_t a_rows[A_LOADS];
  EACH(i, A_LOADS) a_rows[i] = A_ROW(min(m_begin + a_line + i * A_STRIDE, m_size - 1));
#else
  const index_t a_row = A_ROW(min(m_begin + a_along, m_size - A_VECTOR));
#endif
  KEEP_LINES(n_begin)
  const uint local_base = (uint)(size_t)tiles;
#ifdef A_ALONG_K
  const uint a_to = local_base + A_PLACE(a_line, a_along) * 4;
#define A_TO(i) (A_PLACE((i) * A_STRIDE, 0) * 4)
#else
  const uint a_to = local_base + A_PLACE(a_along, a_line) * 4;
#define A_TO(i) (A_PLACE(0, (i) * A_STRIDE) * 4)
#endif
#ifdef B_ALONG_K
  const uint b_to = local_base + (A_FLOATS + B_PLACE(b_line, b_along)) * 4;
#define B_TO(i) (B_PLACE((i) * B_STRIDE, 0) * 4)
#else
  const uint b_to = local_base + (A_FLOATS + B_PLACE(b_along, b_line)) * 4;
#define B_TO(i) (B_PLACE(0, (i) * B_STRIDE) * 4)
#endif

#ifdef A_ALONG_K
#define LOAD_A(tile, stage)                                          \
  {                                                                  \
    const uint k = (tile) + a_along;                                 \
    const bool wanted = k < k_end;                                   \
    __global const float *from = a + (wanted ? A_STEP(k) : 0);       \
    EACH(i, A_LOADS) COPY_A(a_to + (stage) + A_TO(i), from + a_rows[i],            \
                            wanted && m_begin + a_line + i * A_STRIDE < m_size);   \
  }
#else
#define LOAD_A(tile, stage)                                                           \
  EACH(i, A_LOADS) {                                                                  \
    const uint k = (tile) + a_line + i * A_STRIDE;                                    \
    const bool wanted = k < k_end && m_begin + a_along < m_size;                      \
    COPY_A(a_to + (stage) + A_TO(i), a + a_row + (wanted ? A_STEP(k) : 0), wanted);   \
  }
#endif
  const uint warp_m = warp / WARPS_N * WARP_M, warp_n = warp % WARPS_N * WARP_N;
  float sums[M_TILES][N_TILES][4];
  EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) sums[i][j][e] = 0.0f;

  uint next = k_begin, to_stage = 0, from_stage = 0;  // the tile to copy, and where in local memory copies go and come from
#define COPY_NEXT()                                                                          \
  {                                                                                          \
    if (next < k_end) {                                                                      \
      LOAD_A(next, to_stage * 4)                                                             \
      LOAD_B(next, to_stage * 4)                                                             \
    }                                                                                        \
    COMMIT();                                                                                \
    next += TILE_K;                                                                          \
    to_stage = to_stage == (STAGES - 1) * STAGE_FLOATS ? 0 : to_stage + STAGE_FLOATS;        \
  }
  EACH(i, STAGES - 1) COPY_NEXT()
  for (uint tile = k_begin; tile < k_end; tile += TILE_K) {
    WAIT_OLDEST();
    barrier(CLK_LOCAL_MEM_FENCE);
    COPY_NEXT()
    __local const uint *a_tile = (__local const uint *)tiles + from_stage, *b_tile = a_tile + A_FLOATS;
    from_stage = from_stage == (STAGES - 1) * STAGE_FLOATS ? 0 : from_stage + STAGE_FLOATS;
#pragma unroll
    for (uint step = 0; step < TILE_K; step += 16) {
      // Sixteen values of k: of an operand's element, that at quad, quad + 4, quad + 8 and quad + 12.
      uint right[N_TILES][4];
      EACH(j, N_TILES) EACH(q, 4) right[j][q] = b_tile[B_PLACE(warp_n + j * 8 + row_of_lane, step + quad + q * 4)];
#define LEFT(i, q, below) a_tile[A_PLACE(warp_m + (i) * 16 + row_of_lane + (below) * 8, step + quad + (q) * 4)]
      ADD_SIXTEEN(sums, LEFT, right)
    }
  }

  // Sum e of tile (i, j) belongs to row row_of_lane + 8·(e / 2) and column 2·quad + e % 2 of the tile.
#define SUM_M(i, e) (m_begin + warp_m + (i) * 16 + row_of_lane + (e) / 2 * 8)
#define SUM_N(j, e) (n_begin + warp_n + (j) * 8 + quad * 2 + (e) % 2)
#if PRECISION == SPLIT
  // An infinity has become NaN, as the difference of itself and its high part. Such sums are taken again, one by one.
  bool finite = true;
  EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) finite = finite & isfinite(sums[i][j][e]);
  if (!finite) {
    for (uint s = 0; s < M_TILES * N_TILES * 4; ++s) {
      const uint m = SUM_M(s / (N_TILES * 4), s % 4), n = SUM_N(s / 4 % N_TILES, s % 4);
      if (m >= m_size || n >= n_size) continue;
      float sum = 0.0f;
      for (uint k = k_begin; k < k_end; ++k) sum = fma(a[A_ROW(m) + A_STEP(k)], RIGHT_ELEMENT(k, n), sum);
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
      c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
    }
    return;
  }
#endif
  // All operands of the epilogue are read before the first write: C may be one of them, so a read never passes a write. No
  // read waits for a branch: past the edge they repeat the last row or column.
  EACH(j, N_TILES) EACH(odd, 2) {
    const uint n = min(SUM_N(j, odd), n_size - 1), outer = C_OUTER(n), inner = C_INNER(n, outer);
    EACH(i, M_TILES) EACH(lower, 2) {
      const uint m = min(SUM_M(i, 2 * lower), m_size - 1), e = 2 * lower + odd;
      sums[i][j][e] = EPILOGUE(sums[i][j][e], batch, m, outer, inner);
    }
  }
#define EACH_PAIR(STATEMENT)                                        \
  EACH(j, N_TILES) {                                                \
    const uint n = SUM_N(j, 0);                                     \
    if (n < n_size) {                                               \
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);     \
      EACH(i, M_TILES) EACH(lower, 2) {                             \
        const uint m = SUM_M(i, 2 * lower);                         \
        if (m < m_size) STATEMENT;                                  \
      }                                                             \
    }                                                               \
  }
#define EACH_ELEMENT(STATEMENT)                                     \
  EACH(j, N_TILES) EACH(odd, 2) {                                   \
    const uint n = SUM_N(j, odd);                                   \
    if (n < n_size) {                                               \
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);     \
      EACH(i, M_TILES) EACH(lower, 2) {                             \
        const uint m = SUM_M(i, 2 * lower), e = 2 * lower + odd;    \
        if (m < m_size) STATEMENT;                                  \
      }                                                             \
    }                                                               \
  }
#ifdef C_PAIRS
  EACH_PAIR(*(__global float2 *)(c + (index_t)m * c_m + C_COLUMN(outer, inner)) =
                (float2)(sums[i][j][2 * lower], sums[i][j][2 * lower + 1]))
#else
  EACH_ELEMENT(c[(index_t)m * c_m + C_COLUMN(outer, inner)] = sums[i][j][e])
#endif
}
