// Convolutions of 3x3 by Winograd's F(4x4, 3x3): what stands before and behind the batched product (src/opencl/
// conv/winograd*.cpp). A tile is 6x6 pixels that give 4x4 results; those of all images are counted along rows of pixels, rows of tiles
// and images. At each of the 36 points of a tile stand matrices: U(k, m) of the weights, V(k, tile) of the image, and M(m, tile)
// = Σ_k U·V, with k and m of U as the weights lie. A point's matrix lies `point_stride` floats behind that of the one before it.
// Neighbouring items own neighbouring tiles or kernels, so that matrices are read and written in runs.
#include "gemm/operands.h"
#include "conv/winograd.h"

// An item owns a kernel of 3x3: (9 + 36)·4 bytes. With ROTATED taps are taken from the last to the first.
__kernel void winograd_weights(__global const float *restrict weights, ulong weights_offset, __global float *restrict points,
                               ulong points_offset, uint point_stride, uint kernels) {
  const uint one = (uint)get_global_id(0);
  if (one >= kernels) return;
  weights += weights_offset + (ulong)one * 9;
  float g[9], half_way[POINTS][3];
#ifdef ROTATED
  EACH(i, 9) g[i] = weights[8 - i];
#else
  EACH(i, 9) g[i] = weights[i];
#endif
  EACH(j, 3)
  WEIGHTS_TO_POINTS(g[j], g[3 + j], g[6 + j], half_way[0][j], half_way[1][j], half_way[2][j], half_way[3][j],
                    half_way[4][j], half_way[5][j])
  points += points_offset + one;
  EACH(i, POINTS) {
    float u[POINTS];
    WEIGHTS_TO_POINTS(half_way[i][0], half_way[i][1], half_way[i][2], u[0], u[1], u[2], u[3], u[4], u[5])
    EACH(j, POINTS) points[(i * POINTS + j) * point_stride] = u[j];
  }
}

#define TILE_NUMBERS(NUMBER)                                                                       \
  NUMBER(uint, first) NUMBER(uint, tiles) NUMBER(uint, pitch) DIVISOR_NUMBERS(NUMBER, image_tiles) \
  DIVISOR_NUMBERS(NUMBER, row_tiles)
#define IMAGE_NUMBERS(NUMBER)                                                                                \
  NUMBER(ulong, image_offset) NUMBER(ulong, points_offset) NUMBER(uint, point_stride) NUMBER(uint, channels) \
  TILE_NUMBERS(NUMBER) NUMBER(int, rows) NUMBER(int, columns) NUMBER(int, row_shift) NUMBER(int, column_shift)
typedef struct { IMAGE_NUMBERS(NUMBER_MEMBER) } image_numbers;
// The image, row and column of tile i.
#define TILE_PLACE(i)                                                                                              \
  const uint number = DIVIDE(first + (i), image_tiles), in_image = first + (i) - number * image_tiles;             \
  const uint tile_row = DIVIDE(in_image, row_tiles), tile_column = in_image - tile_row * row_tiles;

// An item owns a tile of a channel, `first` being the first tile here: (36 + 36)·4 bytes, of which neighbours share more than
// half of those read. Tiles from `tiles` to `pitch` are 0, and so are pixels outside of the image.
__kernel void winograd_pixels(__global const float *restrict image, __global float *restrict points,
                              const image_numbers numbers) {
  IMAGE_NUMBERS(NUMBER_CONSTANT)
  const uint tile = (uint)get_global_id(0), channel = (uint)get_global_id(1);
  if (tile >= pitch) return;
  TILE_PLACE(tile)
  const int row = (int)(tile_row * TILE) + row_shift, column = (int)(tile_column * TILE) + column_shift;
  image += image_offset + ((ulong)number * channels + channel) * ((ulong)rows * columns);
  float d[POINTS][POINTS];
  EACH(i, POINTS) {
    const int row_is_inside = (uint)(row + (int)i) < (uint)rows & tile < tiles;
    EACH(j, POINTS) {
      const int is_inside = row_is_inside & (uint)(column + (int)j) < (uint)columns;
      d[i][j] = is_inside ? image[(row + (int)i) * columns + column + (int)j] : 0.0f;
    }
  }
  EACH(j, POINTS) PIXELS_TO_POINTS(d[0][j], d[1][j], d[2][j], d[3][j], d[4][j], d[5][j])
  EACH(i, POINTS) PIXELS_TO_POINTS(d[i][0], d[i][1], d[i][2], d[i][3], d[i][4], d[i][5])
  points += points_offset + channel * pitch + tile;
  EACH(i, POINTS) {
    EACH(j, POINTS) points[(i * POINTS + j) * point_stride] = d[i][j];
  }
}

// The same of 4x4 slopes of results: (16 + 36)·4 bytes.
__kernel void winograd_slopes(__global const float *restrict image, __global float *restrict points,
                              const image_numbers numbers) {
  IMAGE_NUMBERS(NUMBER_CONSTANT)
  const uint tile = (uint)get_global_id(0), channel = (uint)get_global_id(1);
  if (tile >= pitch) return;
  TILE_PLACE(tile)
  const int row = (int)(tile_row * TILE) + row_shift, column = (int)(tile_column * TILE) + column_shift;
  image += image_offset + ((ulong)number * channels + channel) * ((ulong)rows * columns);
  float half_way[POINTS][TILE];
  EACH(j, TILE) {
    float g[TILE];
    EACH(i, TILE) {
      const int is_inside =
          (uint)(row + (int)i) < (uint)rows & (uint)(column + (int)j) < (uint)columns & tile < tiles;
      g[i] = is_inside ? image[(row + (int)i) * columns + column + (int)j] : 0.0f;
    }
    SLOPES_TO_POINTS(g[0], g[1], g[2], g[3], half_way[0][j], half_way[1][j], half_way[2][j], half_way[3][j],
                     half_way[4][j], half_way[5][j])
  }
  points += points_offset + channel * pitch + tile;
  EACH(i, POINTS) {
    float u[POINTS];
    SLOPES_TO_POINTS(half_way[i][0], half_way[i][1], half_way[i][2], half_way[i][3], u[0], u[1], u[2], u[3], u[4], u[5])
    EACH(j, POINTS) points[(i * POINTS + j) * point_stride] = u[j];
  }
}

// An item owns a kernel of 3x3 and adds up what the slices gave for it, in their order: (36·slices + 9)·4 bytes.
__kernel void winograd_kernels(__global const float *restrict points, ulong points_offset, __global float *restrict weights,
                               ulong weights_offset, uint point_stride, uint kernels, uint slices) {
  const uint one = (uint)get_global_id(0);
  if (one >= kernels) return;
  points += points_offset + one;
  float m[POINTS][POINTS];
  EACH(i, POINTS) {
    EACH(j, POINTS) m[i][j] = points[(i * POINTS + j) * point_stride];
  }
  for (uint slice = 1; slice < slices; ++slice) {
    points += (ulong)POINTS * POINTS * point_stride;
    EACH(i, POINTS) {
      EACH(j, POINTS) m[i][j] += points[(i * POINTS + j) * point_stride];
    }
  }
  EACH(j, POINTS) POINTS_TO_WEIGHTS(m[0][j], m[1][j], m[2][j], m[3][j], m[4][j], m[5][j])
  EACH(i, 3) POINTS_TO_WEIGHTS(m[i][0], m[i][1], m[i][2], m[i][3], m[i][4], m[i][5])
  weights += weights_offset + (ulong)one * 9;
  EACH(i, 3) {
    EACH(j, 3) weights[i * 3 + j] = m[i][j];
  }
}

// An item owns a tile of an output m: (36 + 16)·4 bytes and the epilogue's. C_VECTOR: results that are written at once, 4 where
// rows have a multiple of 4.
#define RESULT_NUMBERS(NUMBER)                                                                    \
  NUMBER(ulong, points_offset) NUMBER(uint, point_stride) TILE_NUMBERS(NUMBER) NUMBER(uint, rows) \
  NUMBER(uint, columns) GEMM_C_NUMBERS(NUMBER)
typedef struct { RESULT_NUMBERS(NUMBER_MEMBER) } result_numbers;
__kernel void winograd_results(__global const float *restrict points, __global float *c,
                               const result_numbers numbers EPILOGUE_PARAMETERS) {
  RESULT_NUMBERS(NUMBER_CONSTANT)
  const uint tile = (uint)get_global_id(0), m = (uint)get_global_id(1);
  if (tile >= tiles) return;
  TILE_PLACE(tile)
  points += points_offset + m * pitch + tile;
  // Step by step: 36 distances at once are more scalar registers than AMD's GPUs have beside an epilogue.
  float r[POINTS][POINTS];
  EACH(i, POINTS) {
    EACH(j, POINTS) {
      r[i][j] = *points;
      points += point_stride;
    }
  }
  EACH(j, POINTS) POINTS_TO_RESULTS(r[0][j], r[1][j], r[2][j], r[3][j], r[4][j], r[5][j])
  EACH(i, TILE) POINTS_TO_RESULTS(r[i][0], r[i][1], r[i][2], r[i][3], r[i][4], r[i][5])
  c += c_offset + (index_t)m * c_m;
  EACH(i, TILE) {
    const uint row = tile_row * TILE + i, place = row * columns + tile_column * TILE;
    if (row >= rows) continue;
    __global float *to = c + C_COLUMN(number, place);
#if C_VECTOR == 4
    *(__global float4 *)to = (float4)(EPILOGUE(r[i][0], 0u, m, number, place), EPILOGUE(r[i][1], 0u, m, number, place + 1),
                                      EPILOGUE(r[i][2], 0u, m, number, place + 2), EPILOGUE(r[i][3], 0u, m, number, place + 3));
#else
    EACH(j, TILE) {
      if (tile_column * TILE + j < columns) to[j] = EPILOGUE(r[i][j], 0u, m, number, place + j);
    }
#endif
  }
}
