// What the attention kernels on the warpgroup instructions of NVIDIA's Hopper GPUs share. A work-group owns OWN =
// 64·WARPGROUPS rows (queries, or keys in the gradient of keys and values), 64 of them a warpgroup's, and walks over the
// other side in tiles of OTHER rows. One more warpgroup orders the copies (TMA) of tiles, STAGES of each kind ahead, and
// gives most of its registers to the others. Scores stay in the registers that the matrix unit leaves them in, which
// are those it takes as left factor of the second product.
//
// Vectors are of 16 bits. A tile has CHUNKS blocks of 64 values, in each its rows of 128 bytes, swizzled; what is beyond
// a vector's or the tensor's end is zero. So a tile serves as rows and, turned, as columns of a product.
//
// As in ops/attention_mma.h a group whose results are not all finite computes them once more, `guarded`.
//
// Definitions beside those of ops/attention_form.h (with TOKENS): WIDTH, WARPGROUPS, OTHER (64 or 128), STAGES,
// MULTIPLIER_REGISTERS and COPIER_REGISTERS, a thread's.
#ifndef CONCORD_ATTENTION_WGMMA_H
#define CONCORD_ATTENTION_WGMMA_H
#include "ops/attention_form.h"
#include "ops/attention_strange.h"
#include "shared/nvidia/ptx.h"
#include "shared/nvidia/tma.h"
#include "shared/nvidia/wgmma.h"

#define OWN (64 * WARPGROUPS)
#define MULTIPLIERS (128 * WARPGROUPS)
#define THREADS (MULTIPLIERS + 128)
#define CHUNKS ((WIDTH + 63) / 64)
#define PADDED (64 * CHUNKS)
#define WIDTH_STEPS ((WIDTH + 15) / 16)  // of 16 values
#define ROW_STEPS (OTHER / 16)
#define OWN_BYTES (OWN * PADDED * 2)
#define TILE_BYTES (OTHER * PADDED * 2)
#define SCORES (OTHER / 2)    // of an item
#define RESULTS (PADDED / 2)  // of an item
#define MAP_BYTES 128

#define ITEM ((uint)get_local_id(0))
#define WARPGROUP (ITEM / 128)
#define WARP (ITEM / 32)
#define QUAD (ITEM % 4)
#define ROW (ITEM % 32 / 4)
// Value i of an item belongs to row ROW + 8·BELOW(i) of its warp's 16 and to column COLUMN(i).
#define BELOW(i) ((i) / 2 % 2)
#define COLUMN(i) ((i) / 4 * 8 + 2 * QUAD + (i) % 2)

#define LOG2_E 1.4426950408889634f

#define SET_REGISTERS(change, count) \
  asm volatile("//@setmaxnreg." change ".sync.aligned.u32 %0;" ::"n"(count) : "memory")
#define WARPGROUP_BARRIER() asm volatile("bar.sync %0, 128;" ::"r"(1 + WARPGROUP) : "memory")
#define MULTIPLIERS_BARRIER() asm volatile("bar.sync %0, %1;" ::"n"(1 + WARPGROUPS), "n"(MULTIPLIERS) : "memory")
// Writes of items to local memory are seen by the matrix units.
#define SHOW_TO_UNITS() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

// Whether `value` is not 0 for any item of the group.
static inline uint any_of_group(const uint value) {
  uint any;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; barrier.cta.red.or.pred q, 0, p; selp.u32 %0, 1, 0, q; }"
               : "=r"(any) : "r"(value) : "memory");
  return any;
}

// The copy of `rows` rows from row `first` of a tensor (batch, head, row, value), a chunk at a time.
#define COPY_CHUNK(to, map, full, x, row, head, batch)                                                          \
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"                    \
               " [%0], [%1, {%3, %4, %5, %6}], [%2];"                                                           \
               ::"r"(to), "l"(map), "r"(full), "r"(x), "r"(row), "r"(head), "r"(batch) : "memory")
#define COPY_TILE(to, map, full, rows, first, head, batch) \
  EACH(chunk, CHUNKS) COPY_CHUNK((to) + chunk * (rows) * 128, map, full, 64 * chunk, first, head, batch)

// Rows of a tile of `rows` rows, as left or right factor with the values inside: 16 values further are 2 units, 64
// are a chunk. Turned, the values are the columns: 16 rows further are 128 units.
#define SWIZZLED (64ul << 32 | 1ul << 62)
#define BY_ROWS(address) ((ulong)((address) & 0x3ffff) >> 4 | 1ul << 16 | SWIZZLED)
#define BY_VALUES(address, rows) ((ulong)((address) & 0x3ffff) >> 4 | (ulong)((rows) * 8) << 16 | SWIZZLED)
#define VALUES_FURTHER(step, rows) ((step) / 4 * ((rows) * 8) + (step) % 4 * 2)
#define ROWS_FURTHER(step) ((step) * 128)

#ifdef NUMBERS_F16
#define WGMMA_TYPES "k16.f32.f16.f16"
#else
#define WGMMA_TYPES "k16.f32.bf16.bf16"
#endif
// sums = rows·columns of two descriptors, plus sums where `keep` is not 0.
#if OTHER == 64
#define WGMMA_SCORES(sums, rows, columns, keep)                                                                  \
  asm volatile("//@{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64" WGMMA_TYPES       \
               " {" REGISTERS_32 "}, %32, %33, p, 1, 1, 0, 0; }"                                                 \
               : OPERANDS_32(sums) : "l"(rows), "l"(columns), "r"(keep))
#elif OTHER == 128
#define WGMMA_SCORES(sums, rows, columns, keep)                                                                  \
  asm volatile("//@{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128" WGMMA_TYPES      \
               " {" REGISTERS_64 "}, %64, %65, p, 1, 1, 0, 0; }"                                                 \
               : OPERANDS_64(sums) : "l"(rows), "l"(columns), "r"(keep))
#endif
// sums += weights·columns, the weights in registers, the columns turned.
#define WEIGHT_OPERANDS(weights) "r"((weights)[0]), "r"((weights)[1]), "r"((weights)[2]), "r"((weights)[3])
#if PADDED == 64
#define WGMMA_WEIGHTED(sums, weights, columns) \
  asm volatile("//@{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64" WGMMA_TYPES \
               " {" REGISTERS_32 "}, {%32,%33,%34,%35}, %36, p, 1, 1, 1; }"               \
               : OPERANDS_32(sums) : WEIGHT_OPERANDS(weights), "l"(columns))
#elif PADDED == 128
#define WGMMA_WEIGHTED(sums, weights, columns) \
  asm volatile("//@{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128" WGMMA_TYPES \
               " {" REGISTERS_64 "}, {%64,%65,%66,%67}, %68, p, 1, 1, 1; }"               \
               : OPERANDS_64(sums) : WEIGHT_OPERANDS(weights), "l"(columns))
#elif PADDED == 256
#define WGMMA_WEIGHTED(sums, weights, columns) \
  asm volatile("//@{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n256" WGMMA_TYPES \
               " {" REGISTERS_128 "}, {%128,%129,%130,%131}, %132, p, 1, 1, 1; }"         \
               : OPERANDS_128(sums) : WEIGHT_OPERANDS(weights), "l"(columns))
#endif

// scores = own·otherᵀ; `own` is the warpgroup's first row in a tile of OWN rows.
#define MULTIPLY_ROWS(scores, own, other)                                                                      \
  {                                                                                                            \
    const ulong left_factor = BY_ROWS(own), right_factor = BY_ROWS(other);                                     \
    EACH(step, WIDTH_STEPS)                                                                                    \
      WGMMA_SCORES(scores, left_factor + VALUES_FURTHER(step, OWN), right_factor + VALUES_FURTHER(step, OTHER), \
                   step != 0);                                                                                 \
  }
// results += weights·other, the weights as `pack_weights` leaves them.
#define ADD_WEIGHTED(results, weights, other)                                                                  \
  {                                                                                                            \
    const ulong right_factor = BY_VALUES(other, OTHER);                                                        \
    EACH(step, ROW_STEPS) WGMMA_WEIGHTED(results, (weights) + 4 * step, right_factor + ROWS_FURTHER(step));     \
  }
// After a wait the registers hold what the units wrote: keeps the compiler from reading them before.
#define SETTLE(values, count) EACH(i, count) asm volatile("" : "+f"((values)[i])::"memory")

static inline void pack_weights(uint packed[SCORES / 2], const float weights[SCORES]) {
  EACH(i, SCORES / 2) packed[i] = pair_of(weights[2 * i], weights[2 * i + 1]);
}

// The bookkeeping of a ring of STAGES tiles: the stage that is next, and the phase of its barriers.
#define NEXT_STAGE(stage, phase) \
  if (++stage == STAGES) {       \
    stage = 0;                   \
    phase ^= 1;                  \
  }
// The warp has read a tile.
#define RELEASE(empty) \
  if (ITEM % 32 == 0) BARRIER_ARRIVE(empty)

// exp(score − largest) from scores in parts of `unit`; `largest` is −∞ for a row that sees nothing. A mask is added to
// scaled scores, in parts of 1, which may all be near −1e9: their differences are exact. Without one a product of q and k
// is a score in parts of `scale`, and the rounding of the shift, the same for all scores of a row, cancels in its sum.
#ifdef MASK
#define SCORE_UNIT 1.0f
static inline float shift_of(const float largest) {
  return largest == -INFINITY ? 0.0f : -largest;  // not −∞ − −∞; a NaN stays one
}
static inline float power_of(const float score, const float unit, const float shift) {
  return power_of_two((score + shift) * LOG2_E);
}
#else
#define SCORE_UNIT scale
static inline float shift_of(const float largest) { return largest == -INFINITY ? 0.0f : -largest * LOG2_E; }
static inline float power_of(const float score, const float unit, const float shift) {
  return power_of_two(fma(score, unit * LOG2_E, shift));
}
#endif
// What was summed up with the largest score `before` changes by when it is `now`; not rounded where it stays.
static inline float change_of(const float before, const float now) {
  return before == now ? 1.0f : power_of_two((before - now) * LOG2_E);
}

// Whether a result of this item is not finite.
static inline bool has_strange(const float results[RESULTS]) {
  float sum = 0.0f;
  EACH(i, RESULTS) sum += results[i] - results[i];
  return !(sum == 0.0f);
}

// Zeros for what is not finite in a tile of OTHER rows that has arrived. Every warpgroup does so for itself; they write
// the same.
static inline void clean_tile(__local ushort *tile) {
#pragma unroll 1
  for (uint e = ITEM % 128; e < OTHER * PADDED; e += 128) {
    if (is_strange(value_of(tile[e]))) tile[e] = 0;
  }
  SHOW_TO_UNITS();
  WARPGROUP_BARRIER();
}

// The same by all warpgroups together, and −∞ in `marks` for the rows that had it. A tile is chunks of rows of 64 values.
static inline void clean_rows(__local ushort *tile, __local float *marks) {
  MULTIPLIERS_BARRIER();
#pragma unroll 1
  for (uint e = ITEM; e < OTHER * PADDED; e += MULTIPLIERS) {
    if (!is_strange(value_of(tile[e]))) continue;
    tile[e] = 0;
    marks[e / 64 % OTHER] = -INFINITY;
  }
  SHOW_TO_UNITS();
  MULTIPLIERS_BARRIER();
}

// What a warp holds, times its rows' factors, to rows first … of dst (rows, WIDTH), `pitch` values apart. The four lanes
// of a row exchange what they hold of 32 values, after which each has 8 neighbours.
static inline void store_rows(__global vector_t *dst, const uint pitch, const uint first, const uint rows,
                              const float results[RESULTS], const float factors[2]) {
  EACH(below, 2) {
    const uint r = first + 8 * below + ROW;
    EACH(four, PADDED / 32) {
      uint turned[4];
      EACH(j, 4) {
        const uint i = 16 * four + 4 * j + 2 * below;
        turned[j] = pair_of(results[i] * factors[below], results[i + 1] * factors[below]);
      }
      const bool is_odd = QUAD % 2 == 1, is_high = QUAD / 2 == 1;
      EXCHANGE_WORDS(turned[0], turned[1], is_odd, 1)
      EXCHANGE_WORDS(turned[2], turned[3], is_odd, 1)
      EXCHANGE_WORDS(turned[0], turned[2], is_high, 2)
      EXCHANGE_WORDS(turned[1], turned[3], is_high, 2)
      const uint d = 32 * four + 8 * QUAD;
      if (r < rows && d < WIDTH)
        *(__global uint4 *)(dst + (ulong)r * pitch + d) = (uint4)(turned[0], turned[1], turned[2], turned[3]);
    }
  }
}

#include "ops/attention_draws.h"

#endif
