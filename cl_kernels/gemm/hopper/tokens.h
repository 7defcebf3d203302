// What gemm/hopper/tokens.cl is made of: the works of a group, the products of a tile, and how results go to local memory.
// Uses that file's names.
#ifndef CONCORD_NVIDIA_GEMM_TOKENS_H
#define CONCORD_NVIDIA_GEMM_TOKENS_H
#include "shared/nvidia/ptx.h"
#include "shared/nvidia/claims.h"
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
#ifdef TOGETHER
#if BLOCKS != 2
#error "each warpgroup takes a block"
#endif
#define GROUP_BLOCKS 1  // of a warpgroup
#define FIRST_BLOCK warpgroup
#define READING_WARPS 8
#define OF_WARPGROUP(tile) (2 * (tile) + warpgroup)
#else
#define GROUP_BLOCKS BLOCKS
#define FIRST_BLOCK 0
#define READING_WARPS 4
#define OF_WARPGROUP(tile) (tile)
#endif
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

// The works of a group: its share of the tiles that are cut, the whole tile that has its number, and those that it claims
// (shared/nvidia/claims.h). A work: tiles of k from `begin` to `end` of a tile. Tiles follow each other in bands of `band`
// rows of tiles, which share what they read.
#ifndef MEMBERS
#define MEMBERS 1
#endif
#define TILES (MEMBERS * tiles_r * tiles_q)
#ifdef APPENDED_WHOLES
#define RESULTS 2
#else
#define RESULTS 1
#define APPENDED_PARAMETERS
#endif
// The map of A (0), B (1) or a result (2, 3) of a member.
#define MAP_OF(member, which) (maps + maps_offset + ((2 + RESULTS) * (member) + (which)) * MAP_BYTES)
#ifdef CUT
#define CUT_PARAMETERS \
  , uint cut, __global float4 *parts, ulong parts_offset, __global uint *arrivals, ulong arrivals_offset
#define AT_ONCE 4  // parts that are read at once
#define SHARE_BEGIN(of_group) (cut * tiles_k * (of_group) / groups)
// The group whose share has this tile of k, counted over all that are cut; where its part of a tile lies.
#define GROUP_OF(unit) ((((unit) + 1) * groups - 1) / (cut * tiles_k))
#define PART_OF(of_group) \
  ((ulong)(2 * (of_group) + (SHARE_BEGIN(of_group) <= tile * tiles_k ? 1 : 0)) * (BLOCKS * SUMS / 4 * 128))
#define CUT_TILES cut
#define BEGIN_SHARE()               \
  uint unit = SHARE_BEGIN(group);   \
  const uint unit_end = SHARE_BEGIN(group + 1);
#define HAS_SHARE() (unit < unit_end)
#define TAKE_SHARE()                     \
  tile = unit / tiles_k;                 \
  begin = unit - tile * tiles_k;         \
  end = min(tiles_k, begin + unit_end - unit); \
  unit += end - begin;
#else
#define CUT_PARAMETERS
#define CUT_TILES 0
#define BEGIN_SHARE()
#define HAS_SHARE() 0
#define TAKE_SHARE()
#endif
#define BEGIN_WORKS() \
  BEGIN_SHARE()       \
  uint next_tile = CUT_TILES + group;
#define HAS_WORK() (HAS_SHARE() || next_tile < TILES)
// CLAIM: the whole tile behind the one that is taken, where there is any.
#define TAKE_WORK(CLAIM)                                                                                 \
  uint tile, begin = 0, end = tiles_k;                                                                   \
  if (HAS_SHARE()) {                                                                                     \
    TAKE_SHARE()                                                                                         \
  } else {                                                                                               \
    tile = next_tile;                                                                                    \
    CLAIM                                                                                                \
  }                                                                                                      \
  const uint member = MEMBERS == 1 ? 0 : tile / (tiles_r * tiles_q);                                     \
  const uint of_member = tile - member * (tiles_r * tiles_q);                                            \
  const uint of_band = of_member / (band * tiles_q), in_band = of_member - of_band * band * tiles_q;     \
  const uint height = min(tiles_r - of_band * band, band), tile_q = in_band / height;                    \
  const uint r_begin = (of_band * band + in_band - tile_q * height) * TILE_R, q_begin = tile_q * TILE_Q;

#define WHOLE_TILES (TILES - CUT_TILES)
// The number of claims lies behind the maps.
#define CLAIM_TILE()                                                                                     \
  next_tile = TILES;                                                                                     \
  if (WHOLE_TILES > groups) next_tile = CUT_TILES + claimed_work(MAP_OF(MEMBERS, 0), WHOLE_TILES, groups);

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
// the next. STORE_CHUNK finishes and writes the 32 values of an item in 64 rows and columns, and then what the appended
// formula makes of them. STORE_VALUES writes a piece after the other; each warp writes its own 16 rows.
#define STORE_VALUES(values, chunk, block, result)                                                                  \
  EACH(piece, 64 / PIECE_COLUMNS) {                                                                                 \
    const uint of_chunk = ((chunk)*GROUP_BLOCKS + (block)) * (64 / PIECE_COLUMNS) + piece;                          \
    const uint to = staged + (of_chunk * RESULTS + (result)) % STAGED * PIECE_BYTES;                                \
    /* What left from here before has been read. */                                                                 \
    if (lane == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(STAGED - 1) : "memory");                  \
    WARP_BARRIER();                                                                                                 \
    STAGE_PIECE(to, (values) + piece * (PIECE_COLUMNS / 2))                                                         \
    SHOW_TO_COPIES();                                                                                               \
    WARP_BARRIER();                                                                                                 \
    if (lane == 0) {                                                                                                \
      STORE_MATRIX(MAP_OF(member, 2 + (result)), to + warp * 16 * 128,                                              \
                   q_begin + 64 * (chunk) + piece * PIECE_COLUMNS, ROW_OF_CHUNK(block) + warp * 16);                \
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");                                                     \
    }                                                                                                               \
  }
#define STORE_CHUNK(values, chunk, block)                                                                           \
  {                                                                                                                 \
    FINISH_CHUNK(values, ROW_OF_CHUNK(block), q_begin + 64 * (chunk))                                               \
    READ_AHEAD((chunk)*GROUP_BLOCKS + (block) + 1)                                                                  \
    STORE_VALUES(values, chunk, block, 0)                                                                           \
    if (RESULTS == 2) {                                                                                             \
      APPEND_CHUNK(values, ROW_OF_CHUNK(block), q_begin + 64 * (chunk))                                             \
      STORE_VALUES(values, chunk, block, 1)                                                                         \
    }                                                                                                               \
  }
#define ROW_OF_CHUNK(block) (r_begin + 64 * (FIRST_BLOCK + (block)))
#define CHUNKS (GROUP_BLOCKS * TILE_Q / 64)
#define CHUNK_AT(to, row, chunk) ((to) + (row)*128 + (((chunk) ^ ((row) % 8)) * 16))
#ifdef RESULT_FLOATS
#define PIECE_COLUMNS 32
#define STAGE_PIECE(to, values)                                                                                 \
  EACH(h, 2) {                                                                                                  \
    const uint now = lane_now(), quad = now % 4, row = warp * 16 + now / 4 + 8 * h;                             \
    EACH(j, 4)                                                                                                  \
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(CHUNK_AT(to, row, 2 * j + quad / 2) + quad % 2 * 8), \
                   "f"((values)[4 * j + 2 * h]), "f"((values)[4 * j + 2 * h + 1]) : "memory");                  \
  }
#else
#define PIECE_COLUMNS 64
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
#if GROUP_BLOCKS * TILE_Q / PIECE_COLUMNS % STAGED != 0
#error "a tile must begin where the first piece of results lies"
#endif
// Of four lanes each has the pairs of a block; then lane q has pair q of each block.
static inline void turn_pairs(uint *pairs, uint quad) {
  EXCHANGE_WORDS(pairs[0], pairs[1], quad & 1, 1)
  EXCHANGE_WORDS(pairs[2], pairs[3], quad & 1, 1)
  EXCHANGE_WORDS(pairs[0], pairs[2], quad & 2, 2)
  EXCHANGE_WORDS(pairs[1], pairs[3], quad & 2, 2)
}
#define ROW_OF_PAIR(r_first, h) min((r_first) + warp * 16 + now / 4 + 8 * (h), rows - 1)
// The operands that have the shape of the result are read in blocks of 8 columns: lane q of four reads block q of a row of
// each half of a chunk, and needs pair q of each of the four blocks. Past the edge reads repeat others: none waits for a branch.
#define READ_HALF(KIND, read, half_number, r_first, q_first)                                                   \
  {                                                                                                            \
    const uint now = lane_now(), blocks = (columns + 7) / 8;                                                   \
    const uint column_block = min((q_first) / 8 + 4 * (half_number) + now % 4, blocks - 1);                    \
    EACH(h, 2) KIND##_READ((read)[h], ((ulong)ROW_OF_PAIR(r_first, h) * blocks + column_block) * 4);           \
  }
#define APPLY_HALF(KIND, values, read, half_number, r_first, q_first)                                          \
  {                                                                                                            \
    const uint now = lane_now(), quad = now % 4;                                                               \
    EACH(h, 2) {                                                                                               \
      block_t wholes[4][KIND##_WHOLES + 1];                                                                    \
      EACH(w, KIND##_WHOLES) {                                                                                 \
        uint pairs[4] = {(read)[h][w].x, (read)[h][w].y, (read)[h][w].z, (read)[h][w].w};                      \
        turn_pairs(pairs, quad);                                                                               \
        EACH(i, 4) wholes[i][w] = pairs[i];                                                                    \
      }                                                                                                        \
      EACH(i, 4) {                                                                                             \
        const uint j = 4 * (half_number) + i, q = min((q_first) + 8 * j + 2 * quad, columns - 2);              \
        KIND##_APPLY((values) + 4 * j + 2 * h, wholes[i], ROW_OF_PAIR(r_first, h), q);                         \
      }                                                                                                        \
    }                                                                                                          \
  }
#define CHANGE_CHUNK(KIND, values, r_first, q_first)                                                           \
  EACH(half_number, 2) {                                                                                       \
    uint4 read[2][KIND##_WHOLES + 1];                                                                          \
    READ_HALF(KIND, read, half_number, r_first, q_first)                                                       \
    APPLY_HALF(KIND, values, read, half_number, r_first, q_first)                                              \
  }

#define BEGIN_CHUNKS()
#define READ_AHEAD(number)
#ifndef HAS_EPILOGUE
#define FINISH_CHUNK(values, r_first, q_first)
#elif defined(RESULT_FLOATS)
#define FINISH_CHUNK(values, r_first, q_first)                                                                 \
  {                                                                                                            \
    const uint now = lane_now();                                                                               \
    EACH(h, 2) EACH(j, 8) {                                                                                    \
      const uint r = ROW_OF_PAIR(r_first, h), q = min((q_first) + 8 * j + now % 4 * 2, columns - 1);           \
      float *const pair = (values) + 4 * j + 2 * h;                                                            \
      pair[0] = EPILOGUE(pair[0], 0, r, 0, q);                                                                 \
      pair[1] = EPILOGUE(pair[1], 0, r, 0, min(q + 1, columns - 1));                                           \
    }                                                                                                          \
  }
#elif EPILOGUE_WHOLES > (GROUP_BLOCKS == 1 ? 3 : 1)
#define FINISH_CHUNK(values, r_first, q_first) CHANGE_CHUNK(EPILOGUE, values, r_first, q_first)
#else
// The operands of a chunk are on their way while the chunk before it is written.
#undef BEGIN_CHUNKS
#undef READ_AHEAD
#define BEGIN_CHUNKS()                           \
  uint4 ahead[2][2][EPILOGUE_WHOLES + 1];        \
  READ_AHEAD(0)
#define READ_AHEAD(number)                                                                                     \
  if ((number) < CHUNKS) EACH(half_number, 2)                                                                  \
    READ_HALF(EPILOGUE, ahead[half_number], half_number, ROW_OF_CHUNK((number) % GROUP_BLOCKS),                \
              q_begin + 64 * ((number) / GROUP_BLOCKS))
#define FINISH_CHUNK(values, r_first, q_first) \
  EACH(half_number, 2) APPLY_HALF(EPILOGUE, values, ahead[half_number], half_number, r_first, q_first)
#endif
#ifdef APPENDED_WHOLES
#define APPEND_CHUNK(values, r_first, q_first) CHANGE_CHUNK(APPENDED, values, r_first, q_first)
#else
#define APPEND_CHUNK(values, r_first, q_first)
#endif

#endif
