// Tiles of fp32 vectors for the attention kernels on matrix units (ops/attention_mma.h): a row has PIECES times four values.
//
// Products are fp32 by three tf32 products (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores",
// 2022), sums of 16 added up outside the matrix unit, which rounds toward zero. An infinite operand gives NaN.
#ifndef CONCORD_ATTENTION_MMA_FLOATS_H
#define CONCORD_ATTENTION_MMA_FLOATS_H

// Where four neighbours of a row of a tile lie, in uint4: exchanged so that both ways to read them meet 32 banks.
#define SWIZZLE(row) (((row) & 6) ^ (((row) & 1) << 2))
#define PLACE(row, four) ((row) * PIECES + ((four) ^ SWIZZLE(row)))

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
TILE_FUNCTION void copy_rows(__local uint4 *tile, __global const vector_t *src, const uint pitch, const uint first,
                             const uint count, const uint rows) {
#if WIDTH % 4 == 0
  const uint r = ITEM / PIECES, four = ITEM % PIECES;
  __local uint4 *to = tile + PLACE(r, four);
  __global const vector_t *from = src + (ulong)(first + r) * pitch + 4 * four;  // not read beyond the last row
  EACH(i, count * PIECES / THREADS) {
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
  for (uint eight = 0; eight < PIECES; eight += 8) EACH(half_of, 2) {
    const uint at = (half_of == 0 ? place : place ^ 4) + eight;
    uint left[M_TILES][8], left_low[M_TILES][8];
    EACH(i, M_TILES) EACH(below, 2) {
      const uint4 x = own[at + (16 * i + 8 * below) * PIECES];
      SPLIT_LEFT(x.x, left[i][below], left_low[i][below])
      SPLIT_LEFT(x.y, left[i][2 + below], left_low[i][2 + below])
      SPLIT_LEFT(x.z, left[i][4 + below], left_low[i][4 + below])
      SPLIT_LEFT(x.w, left[i][6 + below], left_low[i][6 + below])
    }
    EACH(n, N_TILES / 4) {
      uint right[4][4], right_low[4][4];
      EACH(j, 4) {
        const uint4 x = other[at + (32 * n + 8 * j) * PIECES];
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
        const uint4 x = other[(q % 2 == 0 ? even : odd) + (16 * k + 8 * (q / 2)) * PIECES + 8 * n];
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
TILE_FUNCTION void store_rows(__global vector_t *dst, const uint pitch, const uint first, const uint rows,
                              float results[M_TILES][D_TILES][4], float factors[M_TILES][2]) {
  EACH(i, M_TILES) EACH(below, 2) {
    const uint r = first + 16 * i + 8 * below + ROW;
    if (r < rows) {
      __global vector_t *to = dst + (ulong)r * pitch;
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

#endif
