// What gemm/hopper/tokens.cl is made of: the works of a group, the products of a tile, and how results go to local memory.
// Uses that file's names.
#ifndef CONCORD_NVIDIA_GEMM_TOKENS_H
#define CONCORD_NVIDIA_GEMM_TOKENS_H
#include "shared/nvidia/tma.h"
#include "shared/nvidia/units.h"
#include "gemm/hopper/wgmma.h"
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"

#define THREADS 384
#define TILE_K 64
#define TILE_R (64 * BLOCKS)
#define PIECE_BYTES 8192  // 64 rows of 128 bytes, in which 16-byte chunks are swizzled
#define LEFT_BYTES (BLOCKS * PIECE_BYTES)
#define STAGE_BYTES (LEFT_BYTES + TILE_Q / 64 * PIECE_BYTES)
#define STAGED_BYTES (STAGED * PIECE_BYTES)
#define SUMS (TILE_Q / 2)  // of an item for 64 rows
#define MAP_BYTES 128
#define COPIER_REGISTERS 24
#define MULTIPLIER_REGISTERS 240

#define SET_REGISTERS(change, count) \
  asm volatile("//@setmaxnreg." change ".sync.aligned.u32 %0;" ::"n"(count) : "memory")
#define WARPGROUP_BARRIER() asm volatile("bar.sync %0, 128;" ::"r"(1 + warpgroup) : "memory")
// Both warpgroups have a barrier that the other one joins without waiting.
#define TAKE_TURN() asm volatile("bar.sync %0, 256;" ::"r"(3 + warpgroup) : "memory")
#define GIVE_TURN() asm volatile("bar.arrive %0, 256;" ::"r"(4 - warpgroup) : "memory")
#define WARP_BARRIER() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
// Again from its register, so that nothing of it is kept while tiles are multiplied.
static inline uint lane_now(void) {
  uint lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
#define FENCE_DEVICE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
#define SHOW_TO_COPIES() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define COPY_MATRIX(to, map, full, x, y)                                                                      \
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"                  \
               " [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(map), "r"(full), "r"(x), "r"(y) : "memory")
#define STORE_MATRIX(map, from, x, y)                                                            \
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"     \
               ::"l"(map), "r"(from), "r"(x), "r"(y) : "memory")

// The works of a group: first its share of the tiles that are cut, then every so many whole tiles. A work: tiles of k from
// `begin` to `end` of a tile. Tiles follow each other in bands of `band` rows of tiles, which share what they read.
#ifdef CUT
#define CUT_PARAMETERS \
  , uint cut, __global float4 *parts, ulong parts_offset, __global uint *arrivals, ulong arrivals_offset
#define AT_ONCE 4  // parts that are read at once
#define SHARE_BEGIN(of_group) (cut * tiles_k * (of_group) / groups)
// The group whose share has this tile of k, counted over all that are cut; where its part of a tile lies.
#define GROUP_OF(unit) ((((unit) + 1) * groups - 1) / (cut * tiles_k))
#define PART_OF(of_group) \
  ((ulong)(2 * (of_group) + (SHARE_BEGIN(of_group) <= tile * tiles_k ? 1 : 0)) * (BLOCKS * SUMS / 4 * 128))
#define BEGIN_WORKS()                                        \
  uint unit = SHARE_BEGIN(group);                            \
  const uint unit_end = SHARE_BEGIN(group + 1);              \
  uint next_tile = cut + group;
#define HAS_WORK() (unit < unit_end || next_tile < tiles_r * tiles_q)
#define TAKE_SPAN()                                          \
  uint tile, begin, end;                                     \
  if (unit < unit_end) {                                     \
    tile = unit / tiles_k;                                   \
    begin = unit - tile * tiles_k;                           \
    end = min(tiles_k, begin + unit_end - unit);             \
    unit += end - begin;                                     \
  } else {                                                   \
    tile = next_tile;                                        \
    begin = 0;                                               \
    end = tiles_k;                                           \
    next_tile += groups;                                     \
  }
#else
#define CUT_PARAMETERS
#define BEGIN_WORKS() uint next_tile = group;
#define HAS_WORK() (next_tile < tiles_r * tiles_q)
#define TAKE_SPAN()                           \
  const uint tile = next_tile, begin = 0, end = tiles_k; \
  next_tile += groups;
#endif
#define TAKE_WORK()                                                                                      \
  TAKE_SPAN()                                                                                            \
  const uint of_band = tile / (band * tiles_q), in_band = tile - of_band * band * tiles_q;               \
  const uint height = min(tiles_r - of_band * band, band), tile_q = in_band / height;                    \
  const uint r_begin = (of_band * band + in_band - tile_q * height) * TILE_R, q_begin = tile_q * TILE_Q;

// Factors in local memory: rows of 128 bytes, 16 values of k 32 bytes further; turned, pieces of 64 values by 64 rows of
// k, 16 of which are 2048 bytes further.
#define FACTOR(address) ((ulong)((address)&0x3ffff) >> 4 | 64ul << 32 | 1ul << 62)
#define BY_K(address) (FACTOR(address) | 1ul << 16)
#define BY_VALUES(address) (FACTOR(address) | (ulong)(PIECE_BYTES / 16) << 16)
#ifdef LEFT_TURNED
#define LEFT_FACTOR(address) BY_VALUES(address)
#define LEFT_STEP 128
#define LEFT_FLAG ", 1"
#else
#define LEFT_FACTOR(address) BY_K(address)
#define LEFT_STEP 2
#define LEFT_FLAG ", 0"
#endif
#ifdef RIGHT_TURNED
#define RIGHT_FACTOR(address) BY_VALUES(address)
#define RIGHT_STEP 128
#define RIGHT_FLAG ", 1"
#else
#define RIGHT_FACTOR(address) BY_K(address)
#define RIGHT_STEP 2
#define RIGHT_FLAG ", 0"
#endif
// sums += left·right.
#define MULTIPLY_OF(size, registers, operands, left_number, right_number, left, right)                          \
  asm volatile("//@{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n" size WGMMA_TYPES     \
               " {" registers "}, %" left_number ", %" right_number ", p, 1, 1" LEFT_FLAG RIGHT_FLAG "; }"      \
               : operands : "l"(left), "l"(right))
#if TILE_Q == 64
#define MULTIPLY(sums, left, right) MULTIPLY_OF("64", REGISTERS_32, OPERANDS_32(sums), "32", "33", left, right)
#elif TILE_Q == 128
#define MULTIPLY(sums, left, right) MULTIPLY_OF("128", REGISTERS_64, OPERANDS_64(sums), "64", "65", left, right)
#elif TILE_Q == 192
#define MULTIPLY(sums, left, right) MULTIPLY_OF("192", REGISTERS_96, OPERANDS_96(sums), "96", "97", left, right)
#else
#define MULTIPLY(sums, left, right) MULTIPLY_OF("256", REGISTERS_128, OPERANDS_128(sums), "128", "129", left, right)
#endif

// Sums 4·j + 2·h and the next of an item belong to row lane / 4 + 8·h of its warp's 16 and to columns 8·j + 2·quad and
// the next. STORE_CHUNK finishes and writes the 32 values of an item in 64 rows and columns, a piece after the
// other; each warp writes its own 16 rows.
#define STORE_CHUNK(values, chunk, block)                                                                           \
  {                                                                                                                 \
    FINISH_CHUNK(values, r_begin + 64 * (block), q_begin + 64 * (chunk))                                            \
    EACH(piece, 64 / PIECE_COLUMNS) {                                                                               \
      const uint to = staged + (((chunk)*BLOCKS + (block)) * (64 / PIECE_COLUMNS) + piece) % STAGED * PIECE_BYTES;  \
      /* What left from here before has been read. */                                                               \
      if (lane == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(STAGED - 1) : "memory");                \
      WARP_BARRIER();                                                                                               \
      STAGE_PIECE(to, (values) + piece * (PIECE_COLUMNS / 2))                                                       \
      SHOW_TO_COPIES();                                                                                             \
      WARP_BARRIER();                                                                                               \
      if (lane == 0) {                                                                                              \
        STORE_MATRIX(result_map, to + warp * 16 * 128, q_begin + 64 * (chunk) + piece * PIECE_COLUMNS,              \
                     r_begin + 64 * (block) + warp * 16);                                                           \
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");                                                   \
      }                                                                                                             \
    }                                                                                                               \
  }
#define CHUNK_AT(to, row, chunk) ((to) + (row)*128 + (((chunk) ^ ((row) % 8)) * 16))
// No read of an epilogue waits for a branch: past the edge they repeat others.
#ifdef RESULT_FLOATS
#define PIECE_COLUMNS 32
#ifdef HAS_EPILOGUE
#define FINISH_PAIR(values, r, q)                                \
  (values)[0] = EPILOGUE((values)[0], 0, r, 0, q);               \
  (values)[1] = EPILOGUE((values)[1], 0, r, 0, min(q + 1, columns - 1));
#define LAST_PAIR (columns - 1)
#endif
#define STAGE_PIECE(to, values)                                                                                 \
  EACH(h, 2) {                                                                                                  \
    const uint now = lane_now(), quad = now % 4, row = warp * 16 + now / 4 + 8 * h;                             \
    EACH(j, 4)                                                                                                  \
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(CHUNK_AT(to, row, 2 * j + quad / 2) + quad % 2 * 8), \
                   "f"((values)[4 * j + 2 * h]), "f"((values)[4 * j + 2 * h + 1]) : "memory");                  \
  }
#else
#define PIECE_COLUMNS 64
#ifdef HAS_EPILOGUE
#define FINISH_PAIR(values, r, q) EPILOGUE_BLOCK(values, ((ulong)(r)*pitch + (q)) / 2, r, q);
#define LAST_PAIR (columns - 2)
#endif
// Four 8 x 8 squares at a time: both halves of the rows and two of the columns.
#define STAGE_PIECE(to, values)                                                                                 \
  EACH(pair, 4) {                                                                                               \
    const uint now = lane_now();                                                                                \
    uint squares[4];                                                                                            \
    EACH(s, 4) squares[s] = pair_of((values)[8 * pair + 2 * s], (values)[8 * pair + 2 * s + 1]);                \
    asm volatile("//@stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"                          \
                 ::"r"(CHUNK_AT(to, warp * 16 + now % 16, 2 * pair + now / 16)), "r"(squares[0]), "r"(squares[1]), \
                 "r"(squares[2]), "r"(squares[3]) : "memory");                                                  \
  }
#endif
#if BLOCKS * TILE_Q / PIECE_COLUMNS % STAGED != 0
#error "a tile must begin where the first piece of results lies"
#endif
#ifdef FINISH_PAIR
#define FINISH_CHUNK(values, r_first, q_first)                                      \
  {                                                                                 \
    const uint now = lane_now(), pitch = (columns + 7) / 8 * 8;                     \
    EACH(h, 2) {                                                                    \
      const uint r = min((r_first) + warp * 16 + now / 4 + 8 * h, rows - 1);        \
      EACH(j, 8) {                                                                  \
        const uint q = min((q_first) + 8 * j + now % 4 * 2, LAST_PAIR);             \
        FINISH_PAIR((values) + 4 * j + 2 * h, r, q)                                 \
      }                                                                             \
    }                                                                               \
  }
#else
#define FINISH_CHUNK(values, r_first, q_first)
#endif

#endif
