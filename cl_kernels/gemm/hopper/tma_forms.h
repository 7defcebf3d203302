// How gemm/hopper/tma.cl's tiles lie in local memory in each form of a product, the instruction that multiplies them, and which
// of n and k walks over an image's places and which over its taps. Uses that file's definitions.
#ifndef CONCORD_NVIDIA_GEMM_TMA_FORMS_H
#define CONCORD_NVIDIA_GEMM_TMA_FORMS_H

#if RIGHT == IMAGE_TURNED
#define TURNED_TEXT ", 1, 1"
// Blocks of 64 numbers by TILE_K rows of 128 bytes; 16 values of k are 2048 bytes apart.
#define DESCRIPTOR(address) \
  (((ulong)((address)&0x3ffff) >> 4) | ((ulong)(TILE_K * 128 / 16) << 16) | (64ul << 32) | (1ul << 62))
#define STEP_UNITS 128
#define ROWS_64_BYTES (TILE_K * 128)
#else
#define TURNED_TEXT ", 0, 0"
// Rows of ROW_BYTES with their 16-byte chunks swizzled; 16 values of k (8 of TF32) are 32 bytes apart.
#define DESCRIPTOR(address)                                                                             \
  (((ulong)((address)&0x3ffff) >> 4) | (1ul << 16) | ((ulong)(8 * ROW_BYTES / 16) << 32) |               \
   ((ROW_BYTES == 128 ? 1ul : 2ul) << 62))
#define STEP_UNITS 2
#define ROWS_64_BYTES (64 * ROW_BYTES)
#endif
#if PRECISION == TF32
#define WGMMA_FLAGS ""
#else
#define WGMMA_FLAGS TURNED_TEXT
#endif

// sums = rows·columns of two descriptors, of numbers of these types, plus sums where `keep` is not 0.
#if TILE_Q == 64
#define WGMMA_OF(types, sums, rows, columns, keep)                                                              \
  asm volatile("//@{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64" types      \
               " {" REGISTERS_32 "}, %32, %33, p, 1, 1" WGMMA_FLAGS "; }"                                       \
               : OPERANDS_32(sums) : "l"(rows), "l"(columns), "r"(keep))
#elif TILE_Q == 128
#define WGMMA_OF(types, sums, rows, columns, keep)                                                              \
  asm volatile("//@{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128" types     \
               " {" REGISTERS_64 "}, %64, %65, p, 1, 1" WGMMA_FLAGS "; }"                                       \
               : OPERANDS_64(sums) : "l"(rows), "l"(columns), "r"(keep))
#elif TILE_Q == 256
#define WGMMA_OF(types, sums, rows, columns, keep)                                                              \
  asm volatile("//@{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256" types    \
               " {" REGISTERS_128 "}, %128, %129, p, 1, 1" WGMMA_FLAGS "; }"                                    \
               : OPERANDS_128(sums) : "l"(rows), "l"(columns), "r"(keep))
#endif
#define WGMMA(sums, rows, columns, keep) WGMMA_OF(WGMMA_TYPES, sums, rows, columns, keep)

// The column n of C of a line of the right tile, and whether there is one. With IMAGE_TURNED lines count whole blocks of
// channels, n counts channels.
#if RIGHT == IMAGE_TURNED
#define FIND_COLUMN(line, column, is_column)                                               \
  {                                                                                        \
    const uint block = (line) / BLOCK_64, tap = block / channel_tiles;                     \
    const uint channels = n_size / TAPS(_block);                                           \
    const uint channel = (block - tap * channel_tiles) * BLOCK_64 + (line) % BLOCK_64;     \
    column = tap * channels + channel;                                                     \
    is_column = channel < channels && column < n_size;                                     \
  }
#else
#define FIND_COLUMN(line, column, is_column) \
  {                                          \
    column = (line);                         \
    is_column = (line) < n_size;             \
  }
#endif

#if RIGHT != MATRIX
// Which of k and n walks over the places of the image, and which over the taps.
#if RIGHT == IMAGE
#define PLACES(name) n##name
#define TAPS(name) k##name
#else
#define PLACES(name) k##name
#define TAPS(name) n##name
#endif
// How a product's places and taps lie on the image: where the lowest tap of place i is, and how far the next ones are.
#define FIND_TAPS()                                                           \
  const uint taps_x = TAPS(_line), taps_y = TAPS(_block) / taps_x;            \
  const uint tap_step_x = abs(TAPS(_column)), tap_step_y = abs(TAPS(_row));   \
  const int low_x = column_shift + min(TAPS(_column), 0) * (int)(taps_x - 1); \
  const int low_y = row_shift + min(TAPS(_row), 0) * (int)(taps_y - 1);
#define FIND_PLACE(i)                                                                   \
  const uint image = (i) / PLACES(_block), in_image = (i)-image * PLACES(_block);       \
  const uint line = in_image / PLACES(_line);                                           \
  const int place_x = (int)(in_image - line * PLACES(_line)) * PLACES(_column) + low_x; \
  const int place_y = (int)line * PLACES(_row) + low_y;
#endif

#ifdef C_CHANNELS_LAST
// values[i] of lane j of four to values[j] of lane i.
static inline void turn_quad(float values[4][2], uint quad) {
#pragma unroll
  for (uint mask = 1; mask < 4; mask *= 2) {
    const bool is_high = (quad & mask) != 0;
    EACH(i, 4) EACH(e, 2) {
      if ((i & mask) != 0) continue;
      const float sent = is_high ? values[i][e] : values[i | mask][e];
      float got;
      asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(got) : "f"(sent), "r"(mask));
      values[i][e] = is_high ? got : values[i][e];
      values[i | mask][e] = is_high ? values[i | mask][e] : got;
    }
  }
}
#endif

#endif
