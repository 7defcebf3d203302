// How gemm/tiled.cl brings a tile of each operand through registers to local memory, where k is the outer index. Of the
// index that is adjacent in memory an item takes A_VECTOR or B_VECTOR neighbours, of the other one every so many lines.
// KEEP_…(begin): what an item keeps of its lines, from row or column `begin` on; those past the edge repeat the last
// ones and are never written; with WHOLE_TILES where its next numbers stand. LOAD_…(tile): the numbers from k = `tile`
// on, 0 from k_end on. Uses that file's names.
#ifndef CONCORD_GEMM_TILED_LOADS_H
#define CONCORD_GEMM_TILED_LOADS_H

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

#if A_VECTOR == 4
#define A_NUMBERS float4
#else
#define A_NUMBERS float
#endif
#if B_VECTOR == 4
#define B_NUMBERS float4
#else
#define B_NUMBERS float
#endif
#define READ_A(place) (*(__global const A_NUMBERS *)(a + (place)))
#define READ_B(place) (*(__global const B_NUMBERS *)(b + (place)))

#ifdef A_ALONG_K
#define A_LINE (TILE_K / A_VECTOR)
#else
#define A_LINE (TILE_M / A_VECTOR)
#endif
#ifdef B_ALONG_K
#define B_LINE (TILE_K / B_VECTOR)
#else
#define B_LINE (TILE_N / B_VECTOR)
#endif
#define A_LOADS (TILE_M * TILE_K / A_VECTOR / THREADS)
#define B_LOADS (TILE_N * TILE_K / B_VECTOR / THREADS)
#define A_STRIDE (THREADS / A_LINE)
#define B_STRIDE (THREADS / B_LINE)
#define ALONG(line, vector) (t % (line) * (vector))
#define LOAD_AND_STEP(next, at, loads, step) \
  EACH(i, loads) {                           \
    next[i] = *at[i];                        \
    at[i] += step;                           \
  }

// The left operand.
#ifdef WHOLE_TILES
#ifdef A_ALONG_K
#define A_AT(begin, i) (A_ROW(min((begin) + a_line + (i) * A_STRIDE, m_size - 1)) + k_begin + a_along)
#define A_NEXT_TILE (TILE_K / 4)
#else
#define A_AT(begin, i) (A_ROW(min((begin) + a_along, m_size - 4)) + A_STEP(k_begin + a_line + (i) * A_STRIDE))
#define A_NEXT_TILE (a_k * TILE_K / 4)
#endif
#define KEEP_A(begin)                                               \
  const uint a_along = ALONG(A_LINE, A_VECTOR), a_line = t / A_LINE; \
  __global const float4 *a_at[A_LOADS];                             \
  EACH(i, A_LOADS) a_at[i] = (__global const float4 *)(a + A_AT(begin, i));
#define LOAD_A(tile) LOAD_AND_STEP(a_next, a_at, A_LOADS, A_NEXT_TILE)
#elif defined(A_ALONG_K)
#define KEEP_A(begin)                                               \
  const uint a_along = ALONG(A_LINE, A_VECTOR), a_line = t / A_LINE; \
  index_t a_rows[A_LOADS];                                          \
  EACH(i, A_LOADS) a_rows[i] = A_ROW(min((begin) + a_line + i * A_STRIDE, m_size - 1));
#define LOAD_A(tile)                                                                                 \
  {                                                                                                  \
    const uint k = (tile) + a_along;                                                                 \
    EACH(i, A_LOADS) a_next[i] = k < k_end ? READ_A(a_rows[i] + A_STEP(k)) : (A_NUMBERS)(0.0f);       \
  }
#else
#define KEEP_A(begin)                                               \
  const uint a_along = ALONG(A_LINE, A_VECTOR), a_line = t / A_LINE; \
  const index_t a_row = A_ROW(min((begin) + a_along, m_size - A_VECTOR));
#define LOAD_A(tile)                                                                \
  EACH(i, A_LOADS) {                                                                \
    const uint k = (tile) + a_line + i * A_STRIDE;                                  \
    a_next[i] = k < k_end ? READ_A(a_row + A_STEP(k)) : (A_NUMBERS)(0.0f);          \
  }
#endif

// The right operand: patches by tables, patches by arithmetic (one number at a time), matrices.
#if defined(B_PATCH) && defined(B_TABLES)
#define READ_PATCH(tap, place) (IN_IMAGE(tap, place) ? READ_B((tap).x + (place).x) : (B_NUMBERS)(0.0f))
#define B_LINE_PART int2
#define B_OF_LINE(i) taps[i]
#define B_OF_COLUMN(i) PLACE(i)
#define B_AT_K_OF_LINE(k) PLACE(k)
#define B_AT_K_OF_COLUMN(k) taps[k]
#define READ_RIGHT(at_k, at_n, along_k) ((along_k) ? READ_PATCH(at_n, at_k) : READ_PATCH(at_k, at_n))
#elif defined(B_PATCH)
#define B_LINE_PART patch_part
#define B_OF_LINE(i) PATCH_N(i)
#define B_OF_COLUMN(i) PATCH_N(i)
#define B_AT_K_OF_LINE(k) PATCH_K(k)
#define B_AT_K_OF_COLUMN(k) PATCH_K(k)
#define READ_RIGHT(at_k, at_n, along_k) PATCH_LOAD(at_k, at_n)
#else
#define B_LINE_PART index_t
#define B_OF_LINE(i) B_COLUMN_OF(i)
#define B_OF_COLUMN(i) B_COLUMN_OF(i)
#define B_AT_K_OF_LINE(k) B_STEP_OF(k)
#define B_AT_K_OF_COLUMN(k) B_STEP_OF(k)
#define READ_RIGHT(at_k, at_n, along_k) READ_B((at_k) + (at_n))
#endif
#ifdef WHOLE_TILES
#ifdef B_ALONG_K
#define B_AT(begin, i) (B_COLUMN_OF(min((begin) + b_line + (i) * B_STRIDE, n_size - 1)) + k_begin + b_along)
#define B_NEXT_TILE (TILE_K / 4)
#else
#define B_AT(begin, i) (B_COLUMN_OF(min((begin) + b_along, n_size - 4)) + B_STEP_OF(k_begin + b_line + (i) * B_STRIDE))
#define B_NEXT_TILE (b_k * TILE_K / 4)
#endif
#define KEEP_B(begin)                                               \
  const uint b_along = ALONG(B_LINE, B_VECTOR), b_line = t / B_LINE; \
  __global const float4 *b_at[B_LOADS];                             \
  EACH(i, B_LOADS) b_at[i] = (__global const float4 *)(b + B_AT(begin, i));
#define LOAD_B(tile) LOAD_AND_STEP(b_next, b_at, B_LOADS, B_NEXT_TILE)
#elif defined(B_ALONG_K)
#define KEEP_B(begin)                                               \
  const uint b_along = ALONG(B_LINE, B_VECTOR), b_line = t / B_LINE; \
  B_LINE_PART b_lines[B_LOADS];                                     \
  EACH(i, B_LOADS) b_lines[i] = B_OF_LINE(min((begin) + b_line + i * B_STRIDE, n_size - 1));
#define LOAD_B(tile)                                                                                    \
  {                                                                                                     \
    const uint k = (tile) + b_along;                                                                    \
    const B_LINE_PART at_k = B_AT_K_OF_LINE(min(k, k_size - B_VECTOR));                                  \
    EACH(i, B_LOADS) b_next[i] = k < k_end ? READ_RIGHT(at_k, b_lines[i], true) : (B_NUMBERS)(0.0f);     \
  }
#else
#define KEEP_B(begin)                                               \
  const uint b_along = ALONG(B_LINE, B_VECTOR), b_line = t / B_LINE; \
  const B_LINE_PART b_column = B_OF_COLUMN(min((begin) + b_along, n_size - B_VECTOR));
#define LOAD_B(tile)                                                                                    \
  EACH(i, B_LOADS) {                                                                                    \
    const uint k = (tile) + b_line + i * B_STRIDE;                                                      \
    const B_LINE_PART at_k = B_AT_K_OF_COLUMN(min(k, k_size - 1));                                       \
    b_next[i] = k < k_end ? READ_RIGHT(at_k, b_column, false) : (B_NUMBERS)(0.0f);                       \
  }
#endif

// To (k, m) and (k, n). Four values of k are four rows.
#define STORE_ACROSS(tile, pitch, along, line, four)                            \
  ((__local float *)(tile))[(along) * (pitch) + (line)] = (four).x;             \
  ((__local float *)(tile))[((along) + 1) * (pitch) + (line)] = (four).y;       \
  ((__local float *)(tile))[((along) + 2) * (pitch) + (line)] = (four).z;       \
  ((__local float *)(tile))[((along) + 3) * (pitch) + (line)] = (four).w;
#define STORE_ONE(tile, pitch, k, line, value) ((__local float *)(tile))[(k) * (pitch) + (line)] = (value);

#if defined(A_ALONG_K) && A_VECTOR == 4
#define STORE_A(tile) \
  EACH(i, A_LOADS) { STORE_ACROSS(tile, A_ROW_VECTORS * 4, a_along, a_line + i * A_STRIDE, a_next[i]) }
#elif defined(A_ALONG_K)
#define STORE_A(tile) \
  EACH(i, A_LOADS) STORE_ONE(tile, A_ROW_VECTORS * 4, a_along, a_line + i * A_STRIDE, a_next[i])
#elif A_VECTOR == 4
#define STORE_A(tile) \
  EACH(i, A_LOADS) (tile)[(a_line + i * A_STRIDE) * A_ROW_VECTORS + a_along / 4] = a_next[i];
#else
#define STORE_A(tile) \
  EACH(i, A_LOADS) STORE_ONE(tile, A_ROW_VECTORS * 4, a_line + i * A_STRIDE, a_along, a_next[i])
#endif
#if defined(B_ALONG_K) && B_VECTOR == 4
#define STORE_B(tile) \
  EACH(i, B_LOADS) { STORE_ACROSS(tile, B_ROW_VECTORS * 4, b_along, b_line + i * B_STRIDE, b_next[i]) }
#elif defined(B_ALONG_K)
#define STORE_B(tile) \
  EACH(i, B_LOADS) STORE_ONE(tile, B_ROW_VECTORS * 4, b_along, b_line + i * B_STRIDE, b_next[i])
#elif B_VECTOR == 4
#define STORE_B(tile) \
  EACH(i, B_LOADS) (tile)[(b_line + i * B_STRIDE) * B_ROW_VECTORS + b_along / 4] = b_next[i];
#else
#define STORE_B(tile) \
  EACH(i, B_LOADS) STORE_ONE(tile, B_ROW_VECTORS * 4, b_line + i * B_STRIDE, b_along, b_next[i])
#endif

#endif
