// gemm_wave_multiply: products on the matrix units of AMD's and Intel's GPUs (gemm/wave/units.h). A work-group of THREADS items
// owns a TILE_M x TILE_N tile of C, a wave WAVE_M x WAVE_N of it. Tiles of A and B of depth TILE_K pass through registers,
// are rounded to what the units multiply, and lie in local memory double-buffered: while one is multiplied, the next is on
// its way. An item loads units of four values of k of one line.
//
// Definitions beside those of gemm/operands.h, gemm/element.h and gemm/wave/units.h:
//   A_VECTOR, B_VECTOR   4: fours along k are adjacent and in range together; else 1
// THREADS is a multiple of TILE_M, TILE_N and TILE_K / 4; TILE_M·TILE_K and TILE_N·TILE_K are multiples of 4·THREADS.
// Local memory: 2·(TILE_M + TILE_N)·TILE_K / CHUNK·16 bytes. Groups run along m first, in bands of BAND tiles of m, so
// that neighbours in time share what they read.
#include "shared/channels_last.h"
#include "gemm/operands.h"
#include "gemm/element.h"
#include "gemm/wave/units.h"

#define WAVES_N (TILE_N / WAVE_N)
#define WAVES (TILE_M / WAVE_M * WAVES_N)
#define M_TILES (WAVE_M / FRAGMENT_M)
#define N_TILES (WAVE_N / FRAGMENT_N)
#define A_CHUNKS (TILE_K / CHUNK * TILE_M)
#define TILE_CHUNKS (A_CHUNKS + TILE_K / CHUNK * TILE_N)
#define K_UNITS (TILE_K / 4)
#define A_UNITS (TILE_M * K_UNITS / THREADS)
#define B_UNITS (TILE_N * K_UNITS / THREADS)

// The line and the first k of the i-th unit that item `t` loads: neighbours in memory go to neighbouring items.
#ifdef A_ALONG_K
#define A_UNIT_K(i) (t % K_UNITS * 4)
#define A_UNIT_LINE(i) (t / K_UNITS + (i) * (THREADS / K_UNITS))
#else
#define A_UNIT_K(i) ((t / TILE_M + (i) * (THREADS / TILE_M)) * 4)
#define A_UNIT_LINE(i) (t % TILE_M)
#endif
#ifdef B_ALONG_K
#define B_UNIT_K(i) (t % K_UNITS * 4)
#define B_UNIT_LINE(i) (t / K_UNITS + (i) * (THREADS / K_UNITS))
#else
#define B_UNIT_K(i) ((t / TILE_N + (i) * (THREADS / TILE_N)) * 4)
#define B_UNIT_LINE(i) (t % TILE_N)
#endif

// What is not wanted is 0, and read at a place that is there: no load waits for a branch.
static inline float element_at(__global const float *from, index_t at, int wanted) {
  const float value = from[wanted ? at : 0];
  return wanted ? value : 0.0f;
}
static inline float4 four_at(__global const float *from, index_t at, int wanted) {
  const float4 values = vload4(0, from + (wanted ? at : 0));
  return wanted ? values : (float4)(0.0f);
}

// Four elements of a line from k on, zeros from k_end on. Lines past the edge repeat the last one; they are never written.
#define UNIT_OF(ELEMENT, line, k) \
  (float4)(ELEMENT(line, k), ELEMENT(line, (k) + 1), ELEMENT(line, (k) + 2), ELEMENT(line, (k) + 3))

#define A_AT(m, k) (A_ROW(m) + A_STEP(k))
#if A_VECTOR == 4
#define A_UNIT(m, k) four_at(a, A_AT(m, k), (k) < k_end)
#else
#define A_ELEMENT(m, k) element_at(a, A_AT(m, k), (k) < k_end)
#define A_UNIT(m, k) UNIT_OF(A_ELEMENT, m, k)
#endif

// B_KEPT: what an item keeps of a column that it loads.
#ifdef B_PATCH
typedef int2 kept_t;
static inline float pixel_at(__global const float *b, int2 tap, int2 place, int wanted) {
  return element_at(b, tap.x + place.x, wanted & IN_IMAGE(tap, place));
}
#ifdef B_ALONG_K
#define B_KEPT(n) taps[n]
#define B_AT(tap, k) ((tap).x + PLACE(min(k, k_size - 4)).x)
#define B_ELEMENT(tap, k) pixel_at(b, tap, PLACE(min(k, k_size - 1)), (k) < k_end)
#else
#define B_KEPT(n) PLACE(n)
#define B_ELEMENT(place, k) pixel_at(b, taps[min(k, k_size - 1)], place, (k) < k_end)
#endif
#else
typedef index_t kept_t;
#define B_KEPT(n) B_COLUMN_OF(n)
#define B_AT(column, k) ((column) + B_STEP_OF(k))
#define B_ELEMENT(column, k) element_at(b, B_AT(column, k), (k) < k_end)
#endif
#if B_VECTOR == 4
#define B_UNIT(kept, k) four_at(b, B_AT(kept, k), (k) < k_end)
#else
#define B_UNIT(kept, k) UNIT_OF(B_ELEMENT, kept, k)
#endif

static inline __attribute__((always_inline)) void store_unit(__local uint4 *chunks, uint lines, uint line, uint k,
                                                             float4 unit) {
#if PRECISION == FP32
  chunks[CHUNK_PLACE(lines, k / 4, 0, line)] = as_uint4(unit);
#else
  ((__local uint2 *)chunks)[CHUNK_PLACE(lines, k / 8, 0, line) * 2 + k / 4 % 2] =
      (uint2)(pair_of(unit.x, unit.y), pair_of(unit.z, unit.w));
#endif
}

typedef union {
  sums_t all;
  float each[SUMS];
} fragment_sums;

#define WAVE_NUMBERS(NUMBER) GEMM_NUMBERS(NUMBER) TABLE_NUMBERS(NUMBER)
typedef struct { WAVE_NUMBERS(NUMBER_MEMBER) } wave_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) WAVE_ATTRIBUTE void gemm_wave_multiply(
    MEMORY_PARAMETERS(GEMM_MEMORIES) TABLE_PARAMETERS const wave_numbers numbers EPILOGUE_PARAMETERS) {
  WAVE_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  DECLARE_TABLES
  __local uint4 tiles[2 * TILE_CHUNKS];
#ifdef EMULATED
  __local uint4 exchange[WAVES * EXCHANGE] __attribute__((aligned(32)));
#endif
  const uint t = (uint)get_local_id(0), lane = LANE_OF(t), wave = WAVE_OF(t), z = (uint)get_group_id(2);
  const uint tiles_m = (m_size + TILE_M - 1) / TILE_M, tiles_n = (n_size + TILE_N - 1) / TILE_N;
  const uint group = (uint)get_group_id(0), band = group / (BAND * tiles_n), in_band = group - band * BAND * tiles_n;
  const uint band_rows = min(tiles_m - band * BAND, (uint)BAND);
  const uint m_begin = (band * BAND + in_band % band_rows) * TILE_M, n_begin = in_band / band_rows * TILE_N;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;
  c += c_offset + z * c_batch;

  kept_t b_kept[B_UNITS];
  EACH(i, B_UNITS) b_kept[i] = B_KEPT(min(n_begin + B_UNIT_LINE(i), n_size - 1));
  const uint wave_m = wave / WAVES_N * WAVE_M, wave_n = wave % WAVES_N * WAVE_N;
  fragment_sums sums[M_TILES][N_TILES];
  EACH(i, M_TILES) EACH(j, N_TILES) sums[i][j].all = (sums_t)(0.0f);

  float4 a_next[A_UNITS], b_next[B_UNITS];
  uint current = 0;
  for (uint tile = k_begin;; tile += TILE_K) {
    // `tile` is the one to load; the one before it is multiplied meanwhile.
    if (tile < k_end) {
      EACH(i, A_UNITS) {
        const uint k = tile + A_UNIT_K(i), m = min(m_begin + A_UNIT_LINE(i), m_size - 1);
        a_next[i] = A_UNIT(m, k);
      }
      EACH(i, B_UNITS) {
        const uint k = tile + B_UNIT_K(i);
        b_next[i] = B_UNIT(b_kept[i], k);
      }
    }
    if (tile > k_begin) {
      __local const uint4 *a_tile = tiles + current, *b_tile = a_tile + A_CHUNKS;
      EACH(step, TILE_K / CHUNK / STEP_CHUNKS) {
        right_t right[N_TILES];
        EACH(j, N_TILES) {
          right[j] = RIGHT_FRAGMENT(b_tile, TILE_N, step * STEP_CHUNKS, wave_n + j * FRAGMENT_N);
        }
        EACH(i, M_TILES) {
          const left_t left = LEFT_FRAGMENT(a_tile, TILE_M, step * STEP_CHUNKS, wave_m + i * FRAGMENT_M);
          EACH(j, N_TILES) MULTIPLY(sums[i][j].all, left, right[j])
        }
      }
      current ^= TILE_CHUNKS;
    }
    if (tile >= k_end) break;
    __local uint4 *to = tiles + current;
    EACH(i, A_UNITS) store_unit(to, TILE_M, A_UNIT_LINE(i), A_UNIT_K(i), a_next[i]);
    EACH(i, B_UNITS) store_unit(to + A_CHUNKS, TILE_N, B_UNIT_LINE(i), B_UNIT_K(i), b_next[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#define SUM_M(i, e) (m_begin + wave_m + (i) * FRAGMENT_M + SUM_ROW(e))
#define SUM_N(j) (n_begin + wave_n + (j) * FRAGMENT_N + SUM_COLUMN)
  // All operands of the epilogue are read before the first write: C may be one of them, so a read never passes a write. No
  // read waits for a branch: past the edge they repeat the last row or column.
  EACH(j, N_TILES) {
    const uint n = min(SUM_N(j), n_size - 1), outer = C_OUTER(n), inner = C_INNER(n, outer);
    EACH(i, M_TILES) EACH(e, SUMS) {
      const uint m = min(SUM_M(i, e), m_size - 1);
      sums[i][j].each[e] = EPILOGUE(sums[i][j].each[e], batch, m, outer, inner);
    }
  }
  EACH(j, N_TILES) {
    const uint n = SUM_N(j);
    if (n < n_size) {
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
      EACH(i, M_TILES) EACH(e, SUMS) {
        const uint m = SUM_M(i, e);
        if (m < m_size) c[(index_t)m * c_m + C_COLUMN(outer, inner)] = sums[i][j].each[e];
      }
    }
  }
}
