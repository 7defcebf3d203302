// What the attention kernels on NVIDIA's matrix units share. A work-group owns OWN rows (queries, or keys in the gradient
// of keys and values), each of its warps M_TILES·16 of them, and walks over the other side in tiles of OTHER rows; the
// copy of the next tile runs beside the products of this one. Scores stay in the registers that the matrix unit leaves
// them in, which are those it takes as left factor of the second product, so warps meet once a tile.
//
// Vectors are fp32 (ops/attention_mma_floats.h) or, with TOKENS, of 16 bits (ops/attention_mma_tokens.h). Both files give
//   PIECES                                        16-byte pieces of a row of a tile
//   copy_rows                                     from memory to a tile
//   multiply_rows, add_weighted                   the two kinds of product
//   store_rows                                    results to memory
//
// What a row does not see has a weight of 0, but 0·NaN is NaN. A group whose results are not all finite computes them once
// more, `guarded`: its tiles lose what is not finite before it is weighted, and what sees it gets it afterwards.
//
// Definitions beside those of ops/attention_form.h: WIDTH, OWN, OTHER (a multiple of 32), M_TILES; ONE_PRODUCT for factors
// rounded to tf32 in place of split ones, BF16_PRODUCT for those rounded to bf16.
#ifndef CONCORD_ATTENTION_MMA_H
#define CONCORD_ATTENTION_MMA_H
#include "ops/attention_form.h"
#include "ops/attention_strange.h"
#include "shared/nvidia/ptx.h"

#define WARP_ROWS (16 * M_TILES)
#define THREADS (OWN / WARP_ROWS * 32)
#define N_TILES (OTHER / 8)
#define PADDED ((WIDTH + 31) / 32 * 32)
#define D_TILES (PADDED / 8)
#ifdef TOKENS
#define PIECES (PADDED / 8)
#else
#define PIECES (PADDED / 4)
#endif
#define COPIED_ROWS (THREADS / PIECES)  // at once
#if THREADS % (8 * PIECES) != 0
#error "a group copies whole blocks of eight rows at once"
#endif

#define ITEM ((uint)get_local_id(0))
#define WARP (ITEM / 32)
#define QUAD (ITEM % 4)
#define ROW (ITEM % 32 / 4)

#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

// Whether a sum of this item is not finite.
static inline bool has_strange(float results[M_TILES][D_TILES][4]) {
  float sum = 0.0f;
  EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) sum += results[i][j][e] - results[i][j][e];
  return !(sum == 0.0f);
}

// exp(score − largest); `largest` is −∞ for a row that sees nothing. With a mask, scores may all be near −1e9. Without one
// the rounding of −largest·LOG2_E, the same for all scores of a row, cancels in its sum.
static inline float power_of(const float score, const float largest) {
  const float base = largest == -INFINITY ? 0.0f : largest;  // not −∞ − −∞; a NaN stays one
#if defined(TOKENS) && !defined(MASK)
  return power_of_two(fma(score, LOG2_E, -base * LOG2_E));
#else
  return power_of_two((score - base) * LOG2_E);
#endif
}

// What was summed up with the largest score `before` changes by when it is `now`; not rounded where it stays.
static inline float change_of(const float before, const float now) {
  return before == now ? 1.0f : power_of_two((before - now) * LOG2_E);
}

// Zeros for what is not finite in a tile of OTHER rows that has arrived, a mark for the rows that had it. Begins and ends
// with a barrier.
TILE_FUNCTION void clean_rows(__local uint4 *tile, __local int *marks) {
  if (ITEM < OTHER) marks[ITEM] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  __local vector_t *values = (__local vector_t *)tile;
  for (uint e = ITEM; e < OTHER * PADDED; e += THREADS) {
    if (is_strange(value_of(values[e]))) {
      values[e] = 0;
      atomic_or(marks + e / PADDED, 1);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

#ifdef TOKENS
#include "ops/attention_mma_tokens.h"
#else
#include "ops/attention_mma_floats.h"
#endif

#include "ops/attention_draws.h"

#endif
