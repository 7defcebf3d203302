// A sum of gemm/hopper/tma.cl taken again, one product after the other, for what a split into planes loses. Uses that file's
// names.
#ifndef CONCORD_NVIDIA_GEMM_EXACT_H
#define CONCORD_NVIDIA_GEMM_EXACT_H

#if RIGHT == MATRIX
#define TABLE_FORMALS
#else
#define TABLE_FORMALS \
  , __global const int2 *restrict taps, __global const int2 *restrict places, DIVISOR(place_block), int place_plane
#endif

// The sum of a part of k for C(m, n), one by one: an infinity splits into an infinity and NaN, so a sum with one is
// NaN. n counts as C's columns do.
static inline float exact_sum(uint m, uint n, uint tile_begin, uint tile_end, uint k_size, uint channel_tiles,
                              __global const float *a, index_t a_m, index_t a_k, index_t a_outer, DIVISOR(a_block),
                              __global const float *b, index_t b_k, index_t b_n, DIVISOR(k_block), uint n_size,
                              uint tap_count, bool backward TABLE_FORMALS) {
  float sum = 0.0f;
#if RIGHT == IMAGE
  for (uint k_tile = tile_begin; k_tile < tile_end; ++k_tile) {
    const uint tap = k_tile / channel_tiles, first = (k_tile - tap * channel_tiles) * TILE_K;
    for (uint channel = first; channel < min(first + TILE_K, k_size / tap_count); ++channel) {
      const uint k = channel * tap_count + (backward ? tap_count - 1 - tap : tap);
      sum = fma(a[A_ROW(m) + A_STEP(k)], RIGHT_ELEMENT(k, n), sum);
    }
  }
#else
#if RIGHT == IMAGE_TURNED
  const uint channels = n_size / tap_count;
  n = n % channels * tap_count + n / channels;
#endif
  for (uint k = tile_begin * TILE_K; k < min(tile_end * TILE_K, k_size); ++k) {
    sum = fma(a[A_ROW(m) + A_STEP(k)], RIGHT_ELEMENT(k, n), sum);
  }
#endif
  return sum;
}
#if RIGHT == MATRIX
#define TAP_ACTUALS 1, false
#define TABLE_ACTUALS
#else
#define TAP_ACTUALS TAPS(_block), TAPS(_row) < 0 || TAPS(_column) < 0
#define TABLE_ACTUALS , taps, places, place_block, place_block_magic, place_block_shift, place_plane
#endif
#define EXACT_SUM(m, n)                                                                                                \
  exact_sum(m, n, tile_begin, tile_end, k_size, channel_tiles, a + batch * a_batch, a_m, a_k, a_outer, a_block,         \
            a_block_magic, a_block_shift, b + batch * b_batch, b_k, b_n, k_block, k_block_magic, k_block_shift, n_size, \
            TAP_ACTUALS TABLE_ACTUALS)

#endif
