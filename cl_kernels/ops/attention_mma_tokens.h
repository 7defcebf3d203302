// Tiles of vectors in 16 bits for the attention kernels on matrix units (ops/attention_mma.h): a row has PIECES times eight
// values. A product takes its factors as they are, or rounded to 16 bits, and adds up within the matrix unit.
#ifndef CONCORD_ATTENTION_MMA_TOKENS_H
#define CONCORD_ATTENTION_MMA_TOKENS_H

#if WIDTH % 8 != 0
#error "vectors are whole pieces"
#endif

// Where eight neighbours of a row of a tile lie: exchanged so that eight rows of one piece meet 32 banks.
#if PIECES % 8 == 0
#define SWIZZLE(row) ((row) & 7)
#else
#define SWIZZLE(row) ((row) >> 1 & 3)
#endif
#define PLACE(row, piece) ((row) * PIECES + ((piece) ^ SWIZZLE(row)))

// Four 8 x 8 matrices of a tile; lane l gives the address of row l % 8 of matrix l / 8. A lane gets of each the numbers 2·quad
// and the next of row lane / 4 or, TURNED, of column lane / 4 the rows 2·quad and the next.
#define LOAD_MATRICES_AS(turned, to0, to1, to2, to3, place)                                        \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" turned ".shared.b16 {%0,%1,%2,%3}, [%4];"            \
               : "=r"(to0), "=r"(to1), "=r"(to2), "=r"(to3) : "r"((uint)(size_t)(place)) : "memory")
#define LOAD_MATRICES(to0, to1, to2, to3, place) LOAD_MATRICES_AS("", to0, to1, to2, to3, place)
#define LOAD_TURNED(to0, to1, to2, to3, place) LOAD_MATRICES_AS(".trans", to0, to1, to2, to3, place)

#ifdef NUMBERS_F16
#define MMA_TYPES ".f32.f16.f16.f32"
#else
#define MMA_TYPES ".f32.bf16.bf16.f32"
#endif
// c += a·b of 16 x 8 x 16 numbers, as MMA_BF16_FIRST says where they lie.
#define MMA_16(c, a, b0, b1)                                                                      \
  asm volatile("mma.sync.aligned.m16n8k16.row.col" MMA_TYPES                                       \
               " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"                               \
               : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                            \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1))

// Rows first … first + count of src (rows, WIDTH), `pitch` values apart, on their way into a tile, zeros beyond the last one.
TILE_FUNCTION void copy_rows(__local uint4 *tile, __global const vector_t *src, const uint pitch, const uint first,
                             const uint count, const uint rows) {
  const uint r = ITEM / PIECES, piece = ITEM % PIECES;
  __local uint4 *to = tile + PLACE(r, piece);
  __global const vector_t *from = src + (ulong)(first + r) * pitch + 8 * piece;  // not read beyond the last row
  EACH(i, count * PIECES / THREADS) {
    COPY_4(to + i * THREADS, from + i * COPIED_ROWS * pitch, first + r + i * COPIED_ROWS < rows && 8 * piece < WIDTH);
  }
}

// products = own·otherᵀ: element e of tile (i, j) belongs to own row 16·i + ROW + 8·(e / 2), other row
// 8·j + 2·QUAD + e % 2.
TILE_FUNCTION void multiply_rows(__local const uint4 *own, __local const uint4 *other,
                                 float products[M_TILES][N_TILES][4]) {
  const uint lane = ITEM % 32, own_row = lane % 16, other_row = lane / 16 * 8 + lane % 8;
  EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) products[i][j][e] = 0.0f;
  EACH(step, PIECES / 2) {
    uint left[M_TILES][4];
    EACH(i, M_TILES)
      LOAD_MATRICES(left[i][0], left[i][1], left[i][2], left[i][3],
                    own + 16 * i * PIECES + PLACE(own_row, 2 * step + lane / 16));
    EACH(j, N_TILES / 2) {
      uint right[4];
      LOAD_MATRICES(right[0], right[1], right[2], right[3],
                    other + 16 * j * PIECES + PLACE(other_row, 2 * step + lane / 8 % 2));
      EACH(i, M_TILES) {
        MMA_16(products[i][2 * j], left[i], right[0], right[1]);
        MMA_16(products[i][2 * j + 1], left[i], right[2], right[3]);
      }
    }
  }
}

// results = factors·results + weights·other, the weights in the places of multiply_rows. Element e of result (i, j)
// belongs to row 16·i + ROW + 8·(e / 2) and value 8·j + 2·QUAD + e % 2.
TILE_FUNCTION void add_weighted(float weights[M_TILES][N_TILES][4], __local const uint4 *other,
                                float factors[M_TILES][2], float results[M_TILES][D_TILES][4]) {
  const uint lane = ITEM % 32, row = lane % 16;
  EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) results[i][j][e] *= factors[i][e / 2];
  EACH(k, N_TILES / 2) {
    uint left[M_TILES][4];
    EACH(i, M_TILES) EACH(e, 4)
      left[i][e] = pair_of(weights[i][2 * k + e / 2][e % 2 * 2], weights[i][2 * k + e / 2][e % 2 * 2 + 1]);
    EACH(n, D_TILES / 2) {
      uint right[4];
      LOAD_TURNED(right[0], right[1], right[2], right[3], other + 16 * k * PIECES + PLACE(row, 2 * n + lane / 16));
      EACH(i, M_TILES) {
        MMA_16(results[i][2 * n], left[i], right[0], right[1]);
        MMA_16(results[i][2 * n + 1], left[i], right[2], right[3]);
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
      EACH(n, D_TILES) {
        const uint d = 8 * n + 2 * QUAD;
        if (d < WIDTH)
          *(__global uint *)(to + d) =
              pair_of(results[i][n][2 * below] * factors[i][below], results[i][n][2 * below + 1] * factors[i][below]);
      }
    }
  }
}

#endif
