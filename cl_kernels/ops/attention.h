// What the attention kernels share: a work-group owns a block of OWN rows (queries, or keys in the gradient of keys and
// values) and walks over the other side in tiles of OTHER rows. Its TX x TY items stand in a grid: an item has the OWN
// rows ty + TY·i (i < OWN_ITEM) and, of scores, the columns tx + TX·j (j < OTHER_ITEM), of vectors of WIDTH, the values
// tx + TX·j (j < WIDTH_ITEM). Rows of WIDTH values lie in local memory STRIDE4 float4 apart, an odd number, and zero
// beyond WIDTH; rows of scores SCORE_STRIDE floats apart.
//
// Definitions beside those of ops/attention_form.h: WIDTH, OWN, OTHER, TX, TY. OWN and OTHER are multiples of 4, OWN of TY,
// OTHER of TX.
#ifndef CONCORD_ATTENTION_H
#define CONCORD_ATTENTION_H
#include "ops/attention_form.h"

#define THREADS (TX * TY)
#define OWN_ITEM (OWN / TY)
#define OTHER_ITEM (OTHER / TX)
#define WIDTH_ITEM ((WIDTH + TX - 1) / TX)
#define WIDTH4 ((TX * WIDTH_ITEM + 3) / 4)
#define STRIDE4 (WIDTH4 | 1)
#define STRIDE (4 * STRIDE4)
#define SCORE_STRIDE (OTHER + 4)

#define ITEM ((uint)get_local_id(0))
#define ITEM_X (ITEM % TX)
#define ITEM_Y (ITEM / TX)

// Rows first … first + count of src (rows, WIDTH), `pitch` values apart, into a tile; zeros beyond the last row: what is
// hidden may be anything. Whether any value that this item loads is not finite.
TILE_FUNCTION bool load_tile(__local float4 *tile4, __global const float *src, const uint pitch, const uint first,
                             const uint count, const uint rows) {
  __local float *tile = (__local float *)tile4;
  bool strange = false;
  for (uint e = ITEM; e < count * 4 * WIDTH4; e += THREADS) {
    const uint r = e / (4 * WIDTH4), d = e % (4 * WIDTH4);
    const bool inside = first + r < rows && d < WIDTH;
    const float x = inside ? src[(ulong)(first + r) * pitch + d] : 0.0f;
    tile[r * STRIDE + d] = x;
    strange = strange || is_strange(x);
  }
  return strange;
}

// Zeros for what is not finite among the values that this item loaded: 0·NaN would reach rows that do not see it.
TILE_FUNCTION void clean_tile(__local float4 *tile4, const uint count) {
  __local float *tile = (__local float *)tile4;
  for (uint e = ITEM; e < count * 4 * WIDTH4; e += THREADS) {
    const uint place = e / (4 * WIDTH4) * STRIDE + e % (4 * WIDTH4);
    if (is_strange(tile[place])) tile[place] = 0.0f;
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

// What an item holds, times its row's factor, to rows first … of dst (rows, WIDTH), `pitch` values apart.
TILE_FUNCTION void store_rows(__global float *dst, const uint pitch, const uint first, const uint rows,
                              float results[OWN_ITEM][WIDTH_ITEM], const float factors[OWN_ITEM]) {
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) {
    const uint row = first + ITEM_Y + TY * i;
#pragma unroll
    for (uint j = 0; j < WIDTH_ITEM; ++j) {
      const uint d = ITEM_X + TX * j;
      if (row < rows && d < WIDTH) dst[(ulong)row * pitch + d] = results[i][j] * factors[i];
    }
  }
}

#ifdef DROPOUT
// The factors of `rows` queries from t on and `columns` keys from s on of head b·H + h: that of query t + i and key s + j
// at i·row_stride + j·column_stride. Whole squares are drawn (shared/attention_dropout.h), of which the tile may be a part.
TILE_FUNCTION void draw_tile(__local float *factors, const uint rows, const uint columns, const uint row_stride,
                             const uint column_stride, const uint head, const uint t, const uint s,
                             const uint queries DROPOUT_OPERANDS) {
  const uint high = (rows + DRAWN_SQUARE - 1) / DRAWN_SQUARE, wide = (columns + DRAWN_SQUARE - 1) / DRAWN_SQUARE;
  for (uint e = ITEM; e < high * wide * DRAWN_BLOCKS; e += THREADS) {
    const uint block = e % DRAWN_BLOCKS, square = e / DRAWN_BLOCKS % wide, row = e / DRAWN_BLOCKS / wide;
    const uint place = (s / DRAWN_SQUARE + square) * DRAWN_BLOCKS + block;
    const philox_block words = drawn_block(dropout, drawn_row(head, t, queries) + row, place);
#pragma unroll
    for (uint i = 0; i < 8; ++i) {
      // Beyond the tile also where it begins within a square: the difference wraps around.
      const uint r = row * DRAWN_SQUARE + block / 4 + i / 2 % 2 * 8 - t % DRAWN_SQUARE;
      const uint c = square * DRAWN_SQUARE + block % 4 * 2 + i / 4 * 8 + i % 2 - s % DRAWN_SQUARE;
      if (r < rows && c < columns)
        factors[r * row_stride + c * column_stride] = keeps_half(dropout, words.word[i / 2], i % 2) ? kept : 0.0f;
    }
  }
}
#endif
#endif
