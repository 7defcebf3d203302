// What the attention kernels on NVIDIA's matrix units share. A work-group owns OWN rows (queries, or keys in the gradient
// of keys and values), each of its warps M_TILES·16 of them, and walks over the other side in tiles of OTHER rows; the
// copy of the next tile runs beside the products of this one. Scores stay in the registers that the matrix unit leaves
// them in, which are those it takes as left factor of the second product, so warps meet once a tile.
//
// Products are fp32 by three tf32 products (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores",
// 2022), sums of 16 added up outside the matrix unit, which rounds toward zero. An infinite operand gives NaN.
//
// What a row does not see has a weight of 0, but 0·NaN is NaN. A group whose results are not all finite computes them once
// more, `guarded`: its tiles lose what is not finite before it is weighted, and what sees it gets it afterwards.
//
// Definitions beside those of ops/attention_form.h: WIDTH, OWN, OTHER (a multiple of 32), M_TILES; ONE_PRODUCT for factors
// rounded to tf32 in place of split ones, BF16_PRODUCT for those rounded to bf16.
#ifndef CONCORD_ATTENTION_MMA_H
#define CONCORD_ATTENTION_MMA_H
#include "ops/attention_form.h"
#include "shared/nvidia/ptx.h"

#define WARP_ROWS (16 * M_TILES)
#define THREADS (OWN / WARP_ROWS * 32)
#define N_TILES (OTHER / 8)
#define PADDED ((WIDTH + 31) / 32 * 32)
#define D_TILES (PADDED / 8)
#define FOURS (PADDED / 4)
#define COPIED_ROWS (THREADS / FOURS)  // at once
#if THREADS % (8 * FOURS) != 0
#error "a group copies whole blocks of eight rows at once"
#endif

#define ITEM ((uint)get_local_id(0))
#define WARP (ITEM / 32)
#define QUAD (ITEM % 4)
#define ROW (ITEM % 32 / 4)

#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

// Where four neighbours of a row of a tile lie, in uint4: exchanged so that both ways to read them meet 32 banks.
#define SWIZZLE(row) (((row) & 6) ^ (((row) & 1) << 2))
#define PLACE(row, four) ((row) * FOURS + ((four) ^ SWIZZLE(row)))

// A factor as the sum of two tf32 numbers; of the lower one the unit takes the first bits. That of the left side has a high
// part that is rounded, so that the product of both lower parts, which is left out, has no sign on average. That of the
// right side, of which there are more, is cut; a unit in the last place of x makes up for what the unit cuts from `low`.
#ifdef BF16_PRODUCT
#define SPLIT_LEFT(x, high, low) high = (x);  // rounded in pairs by ADD_PRODUCTS, which reads no low parts
#else
#define SPLIT_LEFT(x, high, low)                  \
  {                                               \
    high = ((x) + 0x1000u) & 0xffffe000u;         \
    low = as_uint(as_float(x) - as_float(high));  \
  }
#endif
#if defined(ONE_PRODUCT) || defined(BF16_PRODUCT)
#define SPLIT_RIGHT SPLIT_LEFT
#else
#define SPLIT_RIGHT(x, high, low)                                 \
  {                                                               \
    high = (x) & 0xffffe000u;                                     \
    low = as_uint(fma(as_float(x), 0x1.000002p0f, -as_float(high))); \
  }
#endif

// Rows first … first + count of src (rows, WIDTH), `pitch` values apart, on their way into a tile, zeros beyond the last one.
TILE_FUNCTION void copy_rows(__local uint4 *tile, __global const float *src, const uint pitch, const uint first,
                             const uint count, const uint rows) {
#if WIDTH % 4 == 0
  const uint r = ITEM / FOURS, four = ITEM % FOURS;
  __local uint4 *to = tile + PLACE(r, four);
  __global const float *from = src + (ulong)(first + r) * pitch + 4 * four;  // not read beyond the last row
  EACH(i, count * FOURS / THREADS) {
    COPY_4(to + i * THREADS, from + i * COPIED_ROWS * pitch, first + r + i * COPIED_ROWS < rows && 4 * four < WIDTH);
  }
#else
  for (uint e = ITEM; e < count * PADDED; e += THREADS) {
    const uint r = e / PADDED, d = e % PADDED;
    const bool wanted = first + r < rows && d < WIDTH;
    COPY_1((__local float *)(tile + PLACE(r, d / 4)) + d % 4, src + (wanted ? (ulong)(first + r) * pitch + d : 0),
           wanted);
  }
#endif
}

// Zeros for what is not finite in a tile of OTHER rows that has arrived, a mark for the rows that had it. Begins and ends
// with a barrier.
TILE_FUNCTION void clean_rows(__local uint4 *tile, __local int *marks) {
  if (ITEM < OTHER) marks[ITEM] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  __local uint *values = (__local uint *)tile;
  for (uint e = ITEM; e < OTHER * PADDED; e += THREADS) {
    if (is_strange(as_float(values[e]))) {
      values[e] = 0;
      atomic_or(marks + e / PADDED, 1);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// Whether a sum of this item is not finite.
static inline bool has_strange(float results[M_TILES][D_TILES][4]) {
  float sum = 0.0f;
  EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) sum += results[i][j][e] - results[i][j][e];
  return !(sum == 0.0f);
}

// exp(score − largest); `largest` is −∞ for a row that sees nothing.
static inline float power_of(const float score, const float largest) {
  const float base = largest == -INFINITY ? 0.0f : largest;  // not −∞ − −∞; a NaN stays one
  return power_of_two((score - base) * LOG2_E);
}

// The six products of a step of sixteen, smallest first: `left` holds two steps of four values a lane, `right` two of two.
#ifdef BF16_PRODUCT
// Two steps are one of the unit's in bf16: any order of k serves that is the same on both sides.
#define ADD_PRODUCTS(part, left, left_low, right, right_low)                                   \
  EACH(i, M_TILES) EACH(j, 4) {                                                                \
    uint rows[4], columns[2];                                                                  \
    EACH(e, 4) PACK_BF16(rows[e], left[i][e / 2 * 4 + e % 2], left[i][e / 2 * 4 + e % 2 + 2]); \
    EACH(e, 2) PACK_BF16(columns[e], right[j][2 * e], right[j][2 * e + 1]);                    \
    MMA_BF16_FIRST(part[i][j], rows, columns);                                                 \
  }
#elif defined(ONE_PRODUCT)
#define ADD_PRODUCTS(part, left, left_low, right, right_low)                              \
  EACH(i, M_TILES) EACH(j, 4) MMA_FIRST(part[i][j], left[i], right[j]);                    \
  EACH(i, M_TILES) EACH(j, 4) MMA(part[i][j], left[i] + 4, right[j] + 2);
#else
#define ADD_PRODUCTS(part, left, left_low, right, right_low)                              \
  EACH(i, M_TILES) EACH(j, 4) MMA_FIRST(part[i][j], left_low[i], right[j]);                \
  EACH(i, M_TILES) EACH(j, 4) MMA(part[i][j], left_low[i] + 4, right[j] + 2);              \
  EACH(i, M_TILES) EACH(j, 4) MMA(part[i][j], left[i], right_low[j]);                      \
  EACH(i, M_TILES) EACH(j, 4) MMA(part[i][j], left[i] + 4, right_low[j] + 2);              \
  EACH(i, M_TILES) EACH(j, 4) MMA(part[i][j], left[i], right[j]);                          \
  EACH(i, M_TILES) EACH(j, 4) MMA(part[i][j], left[i] + 4, right[j] + 2);
#endif

// products = own·otherᵀ: element e of tile (i, j) belongs to own row 16·i + ROW + 8·(e / 2), other row
// 8·j + 2·QUAD + e % 2. The matrix unit's k is the width in an order in which a lane has four neighbours.
TILE_FUNCTION void multiply_rows(__local const uint4 *own, __local const uint4 *other,
                                 float products[M_TILES][N_TILES][4]) {
  const uint place = PLACE(ROW, QUAD);
  EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) products[i][j][e] = 0.0f;
#pragma unroll 1
  for (uint eight = 0; eight < FOURS; eight += 8) EACH(half_of, 2) {
    const uint at = (half_of == 0 ? place : place ^ 4) + eight;
    uint left[M_TILES][8], left_low[M_TILES][8];
    EACH(i, M_TILES) EACH(below, 2) {
      const uint4 x = own[at + (16 * i + 8 * below) * FOURS];
      SPLIT_LEFT(x.x, left[i][below], left_low[i][below])
      SPLIT_LEFT(x.y, left[i][2 + below], left_low[i][2 + below])
      SPLIT_LEFT(x.z, left[i][4 + below], left_low[i][4 + below])
      SPLIT_LEFT(x.w, left[i][6 + below], left_low[i][6 + below])
    }
    EACH(n, N_TILES / 4) {
      uint right[4][4], right_low[4][4];
      EACH(j, 4) {
        const uint4 x = other[at + (32 * n + 8 * j) * FOURS];
        SPLIT_RIGHT(x.x, right[j][0], right_low[j][0])
        SPLIT_RIGHT(x.y, right[j][1], right_low[j][1])
        SPLIT_RIGHT(x.z, right[j][2], right_low[j][2])
        SPLIT_RIGHT(x.w, right[j][3], right_low[j][3])
      }
      float part[M_TILES][4][4];
      ADD_PRODUCTS(part, left, left_low, right, right_low)
      EACH(i, M_TILES) EACH(j, 4) EACH(e, 4) products[i][4 * n + j][e] += part[i][j][e];
    }
  }
}

// results = factors·results + weights·other, the weights in the places of multiply_rows. Element e of result (i, j)
// belongs to row 16·i + ROW + 8·(e / 2) and value RESULT_VALUE(j, e): a lane reads four neighbours and writes them.
#define RESULT_VALUE(j, e) ((j) / 4 * 32 + 8 * QUAD + 4 * ((e) % 2) + (j) % 4)
TILE_FUNCTION void add_weighted(float weights[M_TILES][N_TILES][4], __local const uint4 *other,
                                float factors[M_TILES][2], float results[M_TILES][D_TILES][4]) {
  const uint even = PLACE(2 * QUAD, ROW), odd = PLACE(2 * QUAD + 1, ROW);
  EACH(k, N_TILES / 2) {
    uint left[M_TILES][8], left_low[M_TILES][8];
    EACH(i, M_TILES) EACH(e, 8) {
      // The unit's k are other rows 0 2 4 6 1 3 5 7 of eight.
      const uint x = as_uint(weights[i][2 * k + e / 4][e % 2 * 2 + e / 2 % 2]);
      SPLIT_LEFT(x, left[i][e], left_low[i][e])
    }
    EACH(n, D_TILES / 4) {
      uint right[4][4], right_low[4][4];
      EACH(q, 4) {
        const uint4 x = other[(q % 2 == 0 ? even : odd) + (16 * k + 8 * (q / 2)) * FOURS + 8 * n];
        SPLIT_RIGHT(x.x, right[0][q], right_low[0][q])
        SPLIT_RIGHT(x.y, right[1][q], right_low[1][q])
        SPLIT_RIGHT(x.z, right[2][q], right_low[2][q])
        SPLIT_RIGHT(x.w, right[3][q], right_low[3][q])
      }
      float part[M_TILES][4][4];
      ADD_PRODUCTS(part, left, left_low, right, right_low)
      EACH(i, M_TILES) EACH(j, 4) EACH(e, 4) {
        const float before = results[i][4 * n + j][e];
        results[i][4 * n + j][e] = k == 0 ? fma(before, factors[i][e / 2], part[i][j][e]) : before + part[i][j][e];
      }
    }
  }
}

// What a warp holds, times its rows' factors, to rows first … of dst (rows, WIDTH), `pitch` values apart.
TILE_FUNCTION void store_rows(__global float *dst, const uint pitch, const uint first, const uint rows,
                              float results[M_TILES][D_TILES][4], float factors[M_TILES][2]) {
  EACH(i, M_TILES) EACH(below, 2) {
    const uint r = first + 16 * i + 8 * below + ROW;
    if (r < rows) {
      __global float *to = dst + (ulong)r * pitch;
      EACH(n, D_TILES / 4) EACH(odd, 2) {
        const uint d = RESULT_VALUE(4 * n, odd), e = 2 * below + odd;
#if WIDTH % 4 == 0
        const float4 four = (float4)(results[i][4 * n][e], results[i][4 * n + 1][e], results[i][4 * n + 2][e],
                                     results[i][4 * n + 3][e]);
        if (d < WIDTH) *(__global float4 *)(to + d) = four * factors[i][below];
#else
        EACH(x, 4) {
          if (d + x < WIDTH) to[d + x] = results[i][4 * n + x][e] * factors[i][below];
        }
#endif
      }
    }
  }
}

#ifdef DROPOUT
#define FACTOR(word) (convert_float((word) >> 8) * 5.9604644775390625e-8f < keep ? kept : 0.0f)

// The factors of a tile whose rows are queries and whose columns are keys: row ROW is `row` of the stream, and row
// ROW + 8; the first of the eight keys is s. Lanes with neighbouring keys draw for one row each and exchange halves.
TILE_FUNCTION void draw_keys(float factors[4], const ulong row, const uint s, const uint keys,
                             __global const int *state, const uint purpose, const float keep, const float kept) {
  const bool odd = QUAD % 2 == 1;
  const philox_block block = drawn_block(row + (odd ? 8 : 0), s + 4 * (QUAD / 2), keys, state, purpose);
  const uint mine0 = odd ? block.word[2] : block.word[0], mine1 = odd ? block.word[3] : block.word[1];
  const uint other0 = lane_xor(odd ? block.word[0] : block.word[2], 1);
  const uint other1 = lane_xor(odd ? block.word[1] : block.word[3], 1);
  factors[0] = FACTOR(odd ? other0 : mine0);
  factors[1] = FACTOR(odd ? other1 : mine1);
  factors[2] = FACTOR(odd ? mine0 : other0);
  factors[3] = FACTOR(odd ? mine1 : other1);
}

#define EXCHANGE_WORDS(low, high, is_high, mask)              \
  {                                                           \
    const uint other = lane_xor((is_high) ? low : high, mask); \
    low = (is_high) ? other : low;                            \
    high = (is_high) ? high : other;                          \
  }
// Those of a tile whose rows are keys, the first of them s, and whose columns are queries: column 2·QUAD is `row` of the
// stream. Four lanes with neighbouring keys draw for one query and one half of the rows each, and transpose the words.
TILE_FUNCTION void draw_queries(float factors[4], const ulong row, const uint s, const uint keys,
                                __global const int *state, const uint purpose, const float keep, const float kept) {
  const uint place = ROW % 4;
  const philox_block block = drawn_block(row + place % 2, s + place / 2 * 8 + ROW / 4 * 4, keys, state, purpose);
  uint word0 = block.word[0], word1 = block.word[1], word2 = block.word[2], word3 = block.word[3];
  EXCHANGE_WORDS(word0, word1, place % 2 == 1, 4)
  EXCHANGE_WORDS(word2, word3, place % 2 == 1, 4)
  EXCHANGE_WORDS(word0, word2, place / 2 == 1, 8)
  EXCHANGE_WORDS(word1, word3, place / 2 == 1, 8)
  factors[0] = FACTOR(word0);
  factors[1] = FACTOR(word1);
  factors[2] = FACTOR(word2);
  factors[3] = FACTOR(word3);
}
#endif

#endif
