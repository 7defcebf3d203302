// What the attention kernels share: a work-group owns a block of OWN rows (queries, or keys in the gradient of keys and
// values) and walks over the other side in tiles of OTHER rows. Its TX x TY items stand in a grid: an item has the OWN
// rows ty + TY·i (i < OWN_ITEM) and, of scores, the columns tx + TX·j (j < OTHER_ITEM), of vectors of WIDTH, the values
// tx + TX·j (j < WIDTH_ITEM). Rows of WIDTH values lie in local memory STRIDE4 float4 apart, an odd number, and zero
// beyond WIDTH; rows of scores SCORE_STRIDE floats apart.
//
// Definitions: WIDTH, OWN, OTHER, TX, TY; CAUSAL_FIRST or CAUSAL_LAST; MASK; LENGTHS; DROPOUT. OWN and OTHER are
// multiples of 4, OWN of TY, OTHER of TX.
#ifndef CONCORD_ATTENTION_H
#define CONCORD_ATTENTION_H
#include "philox.h"

#define THREADS (TX * TY)
#define OWN_ITEM (OWN / TY)
#define OTHER_ITEM (OTHER / TX)
#define WIDTH_ITEM ((WIDTH + TX - 1) / TX)
#define WIDTH4 ((TX * WIDTH_ITEM + 3) / 4)
#define STRIDE4 (WIDTH4 | 1)
#define STRIDE (4 * STRIDE4)
#define SCORE_STRIDE (OTHER + 4)

// Always inlined: PoCL 3.1 gives the local memory that a function of its own is called with to all threads at once.
#define TILE_FUNCTION static inline __attribute__((always_inline))

#define ITEM ((uint)get_local_id(0))
#define ITEM_X (ITEM % TX)
#define ITEM_Y (ITEM / TX)

// The operands of the form (src/ops/attention.hpp), as arguments of a kernel.
#ifdef MASK
#define MASK_PARAMETERS , __global const float *mask, ulong mask_offset, ulong mask_batch, ulong mask_head, ulong mask_row
#else
#define MASK_PARAMETERS
#endif
#ifdef LENGTHS
#define LENGTH_PARAMETERS , __global const int *lengths, ulong lengths_offset
#define LENGTH_OF(batch) lengths[lengths_offset + (batch)]
#else
#define LENGTH_PARAMETERS
#define LENGTH_OF(batch) ((int)keys)
#endif
#ifdef DROPOUT
#define DROPOUT_PARAMETERS , __global const int *state, ulong state_offset, uint purpose, float keep, float kept
#define DRAW_ARGUMENTS , state + state_offset, purpose, keep, kept
#else
#define DROPOUT_PARAMETERS
#endif
#define FORM_PARAMETERS MASK_PARAMETERS LENGTH_PARAMETERS DROPOUT_PARAMETERS
#define SIZE_PARAMETERS uint heads, uint key_heads, uint queries, uint keys, float scale

// How many keys query t sees: the first ones.
static inline uint keys_seen(const uint t, const int length, const uint queries) {
#if defined(CAUSAL_FIRST)
  return min((uint)length, t + 1);
#elif defined(CAUSAL_LAST)
  return (uint)clamp((int)t + 1 + length - (int)queries, 0, length);
#else
  return (uint)length;
#endif
}

// The first query that sees key s; may be beyond the last one.
static inline uint first_query(const uint s, const int length, const uint queries) {
#if defined(CAUSAL_FIRST)
  return s;
#elif defined(CAUSAL_LAST)
  return (uint)max((int)s + (int)queries - length, 0);
#else
  return 0;
#endif
}

// Rows first … first + count of src (rows, WIDTH) into a tile; zeros beyond the last row: what is hidden may be anything.
TILE_FUNCTION void load_tile(__local float4 *tile4, __global const float *src, const uint first, const uint count,
                             const uint rows) {
  __local float *tile = (__local float *)tile4;
  for (uint e = ITEM; e < count * 4 * WIDTH4; e += THREADS) {
    const uint r = e / (4 * WIDTH4), d = e % (4 * WIDTH4);
    const bool inside = first + r < rows && d < WIDTH;
    tile[r * STRIDE + d] = inside ? src[(ulong)(first + r) * WIDTH + d] : 0.0f;
  }
}

// products[i][j] = Σ_d own[row i][d]·other[column j][d]
TILE_FUNCTION void multiply_tiles(__local const float4 *own, __local const float4 *other,
                                  float products[OWN_ITEM][OTHER_ITEM]) {
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) {
#pragma unroll
    for (uint j = 0; j < OTHER_ITEM; ++j) products[i][j] = 0.0f;
  }
#pragma unroll 2
  for (uint d = 0; d < WIDTH4; ++d) {
    float4 right[OTHER_ITEM];
#pragma unroll
    for (uint j = 0; j < OTHER_ITEM; ++j) right[j] = other[(ITEM_X + TX * j) * STRIDE4 + d];
#pragma unroll
    for (uint i = 0; i < OWN_ITEM; ++i) {
      const float4 left = own[(ITEM_Y + TY * i) * STRIDE4 + d];
#pragma unroll
      for (uint j = 0; j < OTHER_ITEM; ++j) {
        products[i][j] += left.x * right[j].x;
        products[i][j] += left.y * right[j].y;
        products[i][j] += left.z * right[j].z;
        products[i][j] += left.w * right[j].w;
      }
    }
  }
}

TILE_FUNCTION void clear_results(float results[OWN_ITEM][WIDTH_ITEM]) {
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) {
#pragma unroll
    for (uint j = 0; j < WIDTH_ITEM; ++j) results[i][j] = 0.0f;
  }
}

// results[i][j] += Σ_c scores[row i][c]·other[c][value j]
TILE_FUNCTION void add_weighted(__local const float *scores, __local const float4 *other4,
                                float results[OWN_ITEM][WIDTH_ITEM]) {
  __local const float *other = (__local const float *)other4;
  for (uint c = 0; c < OTHER; c += 4) {
    float values[4][WIDTH_ITEM];
#pragma unroll
    for (uint x = 0; x < 4; ++x) {
#pragma unroll
      for (uint j = 0; j < WIDTH_ITEM; ++j) values[x][j] = other[(c + x) * STRIDE + ITEM_X + TX * j];
    }
#pragma unroll
    for (uint i = 0; i < OWN_ITEM; ++i) {
      const float4 w = *(__local const float4 *)(scores + (ITEM_Y + TY * i) * SCORE_STRIDE + c);
#pragma unroll
      for (uint j = 0; j < WIDTH_ITEM; ++j) {
        results[i][j] += w.x * values[0][j];
        results[i][j] += w.y * values[1][j];
        results[i][j] += w.z * values[2][j];
        results[i][j] += w.w * values[3][j];
      }
    }
  }
}

// What an item holds, times its row's factor, to rows first … of dst (rows, WIDTH).
TILE_FUNCTION void store_rows(__global float *dst, const uint first, const uint rows,
                              float results[OWN_ITEM][WIDTH_ITEM], const float factors[OWN_ITEM]) {
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) {
    const uint row = first + ITEM_Y + TY * i;
#pragma unroll
    for (uint j = 0; j < WIDTH_ITEM; ++j) {
      const uint d = ITEM_X + TX * j;
      if (row < rows && d < WIDTH) dst[(ulong)row * WIDTH + d] = results[i][j] * factors[i];
    }
  }
}

#ifdef DROPOUT
// The factors of four weights: key s (a multiple of 4) and its neighbours, of row `row` = (b·H + h)·T + t.
static inline float4 draw_four(const ulong row, const uint s, const uint keys, __global const int *state,
                               const uint purpose, const float keep, const float kept) {
  const ulong seed = (ulong)(uint)state[0] | ((ulong)(uint)state[1] << 32);
  const philox_block block = philox4x32(row * ((keys + 3) / 4) + s / 4, purpose, (uint)state[2], seed);
  const uint4 bits = (uint4)(block.word[0], block.word[1], block.word[2], block.word[3]) >> 8;
  return select((float4)(0.0f), (float4)(kept), convert_float4(bits) * 5.9604644775390625e-8f < keep);
}

// The factors of a tile of scores, of the OWN queries from row `row` on and the OTHER keys from s on.
TILE_FUNCTION void draw_tile(__local float4 *factors, const ulong row, const uint s, const uint keys,
                             __global const int *state, const uint purpose, const float keep, const float kept) {
  for (uint e = ITEM; e < OWN * OTHER / 4; e += THREADS) {
    const uint r = e / (OTHER / 4), c = e % (OTHER / 4);
    factors[r * (SCORE_STRIDE / 4) + c] = draw_four(row + r, s + 4 * c, keys, state, purpose, keep, kept);
  }
}
#endif

#endif
