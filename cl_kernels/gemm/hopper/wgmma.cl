// gemm_wgmma_multiply: products on the matrix units of NVIDIA's Hopper GPUs (compute capability 9.0) by warpgroup instructions,
// inline PTX. The roles are turned: the right operand, a dense matrix or the patches of an image, gives the rows R of
// what the units see, n of them; the left operand, packed by gemm_wgmma_pack (gemm/hopper/wgmma_pack.cl), the columns Q, m of them.
// A work-group owns a tile of 64·WARPGROUPS rows and TILE_Q columns of C transposed, each warpgroup (128 items) 64 of the rows.
// Right tiles are copied as they are, fp32, and split or rounded on their way from local memory to registers; packed left
// tiles are read by the units themselves. STAGES tiles of depth TILE_K = 32 are on their way or in use.
//
// Definitions beside those of gemm/operands.h and gemm/right.h:
//   PRECISION  SPLIT: fp32 as the sum of six products of bf16 numbers, 24 bits of each factor; sums of 32 are added up
//              outside the matrix unit, which rounds toward zero. TF32, BF16, FP16: one product of rounded factors.
#include "gemm/operands.h"

#define THREADS (WARPGROUPS * 128)
#define TILE_R (WARPGROUPS * 64)
#define TILE_K 32
#define RIGHT_LINES TILE_R
#include "gemm/right.h"
#include "gemm/hopper/wgmma.h"
#if PRECISION == TF32
#define STEP_K 8
#define PACKED_BYTES (TILE_Q * TILE_K * 4)
#else
#define STEP_K 16
#define PACKED_BYTES (PLANES * TILE_Q * TILE_K * 2)
#endif
#define STEPS (TILE_K / STEP_K)
#define SUMS (TILE_Q / 2)  // of an item

// Rows of the right tile are padded so that the reads of a warp come from 32 banks.
#ifdef B_ALONG_K
#define B_PLACE(r, k) ((r) * (TILE_K + 8) + (k))
#define B_BYTES (TILE_R * (TILE_K + 8) * 4)
#else
#define B_PLACE(r, k) ((k) * (TILE_R + 4) + (r))
#define B_BYTES (TILE_K * (TILE_R + 4) * 4)
#endif
#define STAGE_BYTES (PACKED_BYTES + B_BYTES)
#define CHUNKS (PACKED_BYTES / 16)

#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
// All copies but the last STAGES - 3 have arrived, and the matrix units see them.
#if STAGES == 3
#define WAIT_COPIES() asm volatile("cp.async.wait_group 0; fence.proxy.async;" ::: "memory")
#elif STAGES == 4
#define WAIT_COPIES() asm volatile("cp.async.wait_group 1; fence.proxy.async;" ::: "memory")
#endif

// sums = left·right, plus sums where `keep` is not 0; right is a matrix descriptor.
#if TILE_Q == 64
#define WGMMA(sums, left, right, keep)                                                                             \
  asm volatile("//@{ .reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64" WGMMA_TYPES         \
               " {" REGISTERS_32 "}, {%32,%33,%34,%35}, %36, p, 1, 1" WGMMA_FROM_REGISTERS "; }"                   \
               : OPERANDS_32(sums) LEFT_AND_RIGHT(left, right, keep))
#elif TILE_Q == 128
#define WGMMA(sums, left, right, keep)                                                                             \
  asm volatile("//@{ .reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128" WGMMA_TYPES        \
               " {" REGISTERS_64 "}, {%64,%65,%66,%67}, %68, p, 1, 1" WGMMA_FROM_REGISTERS "; }"                   \
               : OPERANDS_64(sums) LEFT_AND_RIGHT(left, right, keep))
#endif
#define LEFT_AND_RIGHT(left, right, keep) \
  : "r"((left)[0]), "r"((left)[1]), "r"((left)[2]), "r"((left)[3]), "l"(right), "r"(keep)

// A matrix descriptor of packed 8 x 16 byte blocks at `address`: neighbours along k are 16·TILE_Q bytes apart, along Q 128.
#define DESCRIPTOR(address) (((ulong)((address)&0x3ffff) >> 4) | ((ulong)TILE_Q << 16) | (8ul << 32))

#define WGMMA_NUMBERS(NUMBER) GEMM_NUMBERS(NUMBER) NUMBER(ulong, packed_offset) TABLE_NUMBERS(NUMBER)
typedef struct { WGMMA_NUMBERS(NUMBER_MEMBER) } wgmma_numbers;
#define WGMMA_MEMORIES(MEMORY) GEMM_MEMORIES(MEMORY) MEMORY(const uint4 *restrict, packed)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm_wgmma_multiply(
    MEMORY_PARAMETERS(WGMMA_MEMORIES) TABLE_PARAMETERS const wgmma_numbers numbers EPILOGUE_PARAMETERS) {
  WGMMA_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(WGMMA_MEMORIES)
  DECLARE_TABLES
  __local uint4 tiles[STAGES * STAGE_BYTES / 16] __attribute__((aligned(128)));
  const uint t = (uint)get_local_id(0), lane = t & 31, z = (uint)get_group_id(2);
  const uint quad = lane & 3, warp_row = (t >> 5) * 16 + (lane >> 2);
  const uint tiles_q = (m_size + TILE_Q - 1) / TILE_Q, tiles_k = (k_size + TILE_K - 1) / TILE_K;
  const uint group = (uint)get_group_id(0), r_begin = group / tiles_q * TILE_R, q_tile = group % tiles_q;
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;
  c += c_offset + z * c_batch;
  packed += packed_offset + ((ulong)batch * tiles_k * tiles_q + q_tile) * CHUNKS + t;

  const uint b_along = t % B_LINE * B_VECTOR, b_line = t / B_LINE;
  KEEP_LINES(r_begin)
  const uint local_base = (uint)(size_t)tiles, packed_to = local_base + t * 16;
#ifdef B_ALONG_K
  const uint b_to = local_base + PACKED_BYTES + B_PLACE(b_line, b_along) * 4;
#define B_TO(i) (B_PLACE((i) * B_STRIDE, 0) * 4)
#else
  const uint b_to = local_base + PACKED_BYTES + B_PLACE(b_along, b_line) * 4;
#define B_TO(i) (B_PLACE(0, (i) * B_STRIDE) * 4)
#endif

  uint next = k_begin, to_stage = 0, from_stage = 0;  // the tile to copy, and where in local memory copies go and come from
#define COPY_NEXT()                                                                                         \
  {                                                                                                         \
    if (next < k_end) {                                                                                     \
      __global const uint4 *from = packed + (ulong)(next / TILE_K) * tiles_q * CHUNKS;                       \
      EACH(i, (CHUNKS + THREADS - 1) / THREADS) {                                                           \
        if (CHUNKS % THREADS == 0 || t + i * THREADS < CHUNKS) {                                            \
          COPY_4(packed_to + to_stage + i * THREADS * 16, from + i * THREADS, 1);                           \
        }                                                                                                   \
      }                                                                                                     \
      LOAD_B(next, to_stage)                                                                                \
    }                                                                                                       \
    COMMIT();                                                                                               \
    next += TILE_K;                                                                                         \
    to_stage = to_stage == (STAGES - 1) * STAGE_BYTES ? 0 : to_stage + STAGE_BYTES;                         \
  }
  // The registers of one tile: element (row, k) of this item's two rows, split or rounded, in the order of the instruction.
#define RIGHT(row, k) tile[B_PLACE(warp_row + (row), k)]
#if PRECISION == TF32
#define READ_TILE(to)                                                                                            \
  {                                                                                                              \
    __local const float *tile = (__local const float *)((__local const char *)tiles + from_stage + PACKED_BYTES); \
    EACH(step, STEPS) EACH(h, 2) EACH(low, 2)                                                                    \
        ROUND(to[0][step][h * 2 + low], RIGHT(low * 8, step * 8 + h * 4 + quad));                                \
  }
#elif PRECISION == SPLIT
#define READ_TILE(to)                                                                                             \
  {                                                                                                               \
    __local const float *tile = (__local const float *)((__local const char *)tiles + from_stage + PACKED_BYTES); \
    EACH(step, STEPS) EACH(h, 2) EACH(low, 2) {                                                                   \
      const float x = RIGHT(low * 8, step * 16 + h * 8 + quad * 2), y = RIGHT(low * 8, step * 16 + h * 8 + quad * 2 + 1); \
      uint high, middle;                                                                                          \
      PACK(high, x, y);                                                                                           \
      const float x1 = x - as_float(high << 16), y1 = y - as_float(high & 0xffff0000u);                           \
      PACK(middle, x1, y1);                                                                                       \
      to[0][step][h * 2 + low] = high;                                                                            \
      to[1][step][h * 2 + low] = middle;                                                                          \
      PACK(to[2][step][h * 2 + low], x1 - as_float(middle << 16), y1 - as_float(middle & 0xffff0000u));           \
    }                                                                                                             \
  }
#else
#define READ_TILE(to)                                                                                             \
  {                                                                                                               \
    __local const float *tile = (__local const float *)((__local const char *)tiles + from_stage + PACKED_BYTES); \
    EACH(step, STEPS) EACH(h, 2) EACH(low, 2)                                                                     \
        PACK(to[0][step][h * 2 + low], RIGHT(low * 8, step * 16 + h * 8 + quad * 2),                              \
             RIGHT(low * 8, step * 16 + h * 8 + quad * 2 + 1));                                                   \
  }
#endif
#define ADVANCE() from_stage = from_stage == (STAGES - 1) * STAGE_BYTES ? 0 : from_stage + STAGE_BYTES

  float sums[SUMS];
  EACH(i, SUMS) sums[i] = 0.0f;
#if PRECISION == SPLIT
  float part[SUMS];
  EACH(i, SUMS) part[i] = 0.0f;
  // The products of small parts first; `keep` is 0 for the first of a tile.
#define MULTIPLY(left)                                                                    \
  {                                                                                       \
    const ulong high = DESCRIPTOR(local_base + from_stage);                               \
    const ulong middle = high + TILE_Q * TILE_K * 2 / 16, low = middle + TILE_Q * TILE_K * 2 / 16; \
    WGMMA_FENCE();                                                                        \
    EACH(step, STEPS) {                                                                   \
      const ulong at = step * (TILE_Q * 32 / 16);                                         \
      WGMMA(part, left[0][step], low + at, step != 0);                                    \
      WGMMA(part, left[2][step], high + at, 1);                                           \
      WGMMA(part, left[1][step], middle + at, 1);                                         \
      WGMMA(part, left[0][step], middle + at, 1);                                         \
      WGMMA(part, left[1][step], high + at, 1);                                           \
      WGMMA(part, left[0][step], high + at, 1);                                           \
    }                                                                                     \
    WGMMA_COMMIT();                                                                       \
  }
#define FINISH()  \
  {               \
    WGMMA_WAIT(); \
    EACH(i, SUMS) sums[i] += part[i]; \
  }
#else
#define MULTIPLY(left)                                                                                 \
  {                                                                                                    \
    const ulong at = DESCRIPTOR(local_base + from_stage);                                              \
    WGMMA_FENCE();                                                                                     \
    EACH(step, STEPS) WGMMA(sums, left[0][step], at + step * (TILE_Q * 32 / 16), 1);                    \
    WGMMA_COMMIT();                                                                                    \
  }
#define FINISH() \
  { WGMMA_WAIT(); }
#endif

  // While the units multiply one tile, the next is read into the other registers. A tile's place is filled again two
  // tiles later, when every warpgroup has done with it. A warp waits while its instructions queue for the units, so of two
  // warpgroups one multiplies first and then copies and reads, the other the other way round.
#define ARRIVE()                                \
  {                                             \
    WAIT_COPIES();                              \
    asm volatile("bar.sync 0;" ::: "memory");   \
  }
#define MULTIPLY_ARRIVE_READ(left, next_left) \
  {                                         \
    MULTIPLY(left)                          \
    ADVANCE();                              \
    ARRIVE()                                \
    COPY_NEXT()                             \
    READ_TILE(next_left)                    \
    FINISH()                                \
  }
#define ARRIVE_MULTIPLY_READ(left, next_left) \
  {                                         \
    ARRIVE()                                \
    MULTIPLY(left)                          \
    ADVANCE();                              \
    COPY_NEXT()                             \
    READ_TILE(next_left)                    \
    FINISH()                                \
  }
#define EACH_TILE(STEP)                                         \
  for (uint tile = k_begin; tile < k_end; tile += 2 * TILE_K) { \
    STEP(one, other)                                            \
    if (tile + TILE_K < k_end) STEP(other, one)                 \
  }
  uint one[PLANES][STEPS][4], other[PLANES][STEPS][4];
  EACH(i, STAGES - 2) COPY_NEXT()
  ARRIVE()
  COPY_NEXT()
  READ_TILE(one)
#if WARPGROUPS == 2
  if (t < 128) {
    EACH_TILE(MULTIPLY_ARRIVE_READ)
  } else {
    EACH_TILE(ARRIVE_MULTIPLY_READ)
  }
#else
  EACH_TILE(MULTIPLY_ARRIVE_READ)
#endif

  // Sum 4·j + e belongs to row warp_row + 8·(e / 2) and column 8·j + 2·quad + e % 2 of the tile.
#define SUM_Q(s) (q_tile * TILE_Q + (s) / 4 * 8 + quad * 2 + (s) % 2)
#define SUM_R(s) (r_begin + warp_row + (s) % 4 / 2 * 8)
#if PRECISION == SPLIT
  // An infinity has become NaN, as the difference of itself and its high part. Such sums are taken again, one by one.
  bool finite = true;
  EACH(s, SUMS) finite = finite & isfinite(sums[s]);
  if (!finite) {
    for (uint s = 0; s < SUMS; ++s) {
      const uint m = SUM_Q(s), n = SUM_R(s);
      if (m >= m_size || n >= n_size) continue;
      float sum = 0.0f;
      for (uint k = k_begin; k < k_end; ++k) sum = fma(a[A_ROW(m) + A_STEP(k)], RIGHT_ELEMENT(k, n), sum);
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
      c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
    }
    return;
  }
#endif
  // All operands of the epilogue are read before the first write: C may be one of them, so a read never passes a write. No
  // read waits for a branch: past the edge they repeat the last row or column.
  EACH(lower, 2) {
    const uint n = min(r_begin + warp_row + lower * 8, n_size - 1), outer = C_OUTER(n), inner = C_INNER(n, outer);
    EACH(j, TILE_Q / 8) EACH(odd, 2) {
      const uint m = min(SUM_Q(j * 4 + odd), m_size - 1), s = j * 4 + lower * 2 + odd;
      sums[s] = EPILOGUE(sums[s], batch, m, outer, inner);
    }
  }
#define EACH_ELEMENT(STATEMENT)                                        \
  EACH(lower, 2) {                                                     \
    const uint n = r_begin + warp_row + lower * 8;                     \
    if (n < n_size) {                                                  \
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);        \
      EACH(j, TILE_Q / 8) EACH(odd, 2) {                               \
        const uint m = SUM_Q(j * 4 + odd), s = j * 4 + lower * 2 + odd; \
        if (m < m_size) STATEMENT;                                     \
      }                                                                \
    }                                                                  \
  }
  EACH_ELEMENT(c[(index_t)m * c_m + C_COLUMN(outer, inner)] = sums[s])
}
