// Work-groups on an image that lies channels-last: rows = images·places rows of `blocks` blocks of 8 channels. A group of
// THREADS items has LANES neighbouring blocks and a part of `part` rows; its items (lane, row number) are ROWS above each
// other.
#ifndef CONCORD_CHANNELS_LAST_ROWS_H
#define CONCORD_CHANNELS_LAST_ROWS_H

#include "shared/channels_last.h"

#define ROWS (THREADS / LANES)
#ifndef UNROLL
#define UNROLL 4
#endif

#define SIZES uint rows, uint blocks, uint part, uint places
#define PLACE PLACE_OF_PART((uint)get_group_id(1))
// The parts from the last one to the first: a second pass over an image finds the end of it in the cache.
#define PLACE_BACKWARDS PLACE_OF_PART((uint)(get_num_groups(1) - 1 - get_group_id(1)))
#define PLACE_OF_PART(part_number) PLACE_AT((uint)get_group_id(0), part_number)
#define PLACE_AT(column, part_number)                                                                      \
  const uint item = (uint)get_local_id(0), lane = item % LANES, row_number = item / LANES;                  \
  const uint first_block = (column) * LANES, block = min(first_block + lane, blocks - 1);                   \
  const uint channel = block * BLOCK_CHANNELS, channels = blocks * BLOCK_CHANNELS;                          \
  const uint begin = (part_number) * part, end = min(rows, begin + part);                                   \
  const bool is_block = first_block + lane < blocks
// Rows of the item by UNROLL; past the end a turn reads the last row again, so that no read waits for a condition.
#define TURNS for (uint row = begin + row_number; row < end; row += UNROLL * ROWS)
#define EACH_TURN(k) _Pragma("unroll") for (uint k = 0; k < UNROLL; ++k)
#define ROW(k) (row + (k)*ROWS)
#define AT(k) ((ulong)min(ROW(k), end - 1) * blocks + block)
#define IS_INSIDE(k) (ROW(k) < end)
// The blocks of an operand that a turn has. Those of the next turn are read while one is computed: READ_FIRST stands
// before TURNS, READ_NEXT within; READ_AGAIN begins anew.
#define READ_FIRST(next, src) \
  uint4 next[UNROLL];         \
  READ_AGAIN(next, src)
#define READ_AGAIN(next, src) \
  EACH_TURN(k) next[k] = src[(ulong)min(begin + row_number + k * ROWS, end - 1) * blocks + block]
#define READ_NEXT(x, next, src)                                                        \
  uint4 x[UNROLL];                                                                     \
  EACH_TURN(k) {                                                                       \
    x[k] = next[k];                                                                    \
    next[k] = src[AT(k + UNROLL)];                                                     \
  }

// Rows of a group that are left to add up after the warps of an NVIDIA GPU have added up theirs.
#if defined(PTX) && LANES <= 32 && 32 % LANES == 0 && THREADS % 32 == 0
#define ROWS_OF_WARP (32 / LANES)
#else
#define ROWS_OF_WARP 1
#endif
#define SUMMED_ROWS (ROWS / ROWS_OF_WARP)
#define SEGMENT_ROWS (SUMMED_ROWS < 8 ? SUMMED_ROWS : 8)
#define SEGMENTS ((SUMMED_ROWS + SEGMENT_ROWS - 1) / SEGMENT_ROWS)
// The pitch lets neighbouring items meet different banks of local memory.
#define SCRATCH_PITCH (THREADS / ROWS_OF_WARP + LANES)
#define SCRATCH(count) ((count) * BLOCK_CHANNELS * SCRATCH_PITCH)

// What the items above each other have of `count` values of every channel, added up in order: within warps, then up to
// SEGMENT_ROWS of these, then the rest. Value v of a lane is then at SUM_OF_ROWS(v, lane) of `scratch`, which has
// SCRATCH(count) places.
#define SUM_OF_ROWS(v, lane) ((v) * SCRATCH_PITCH + (lane))
static inline __attribute__((always_inline)) void sum_rows_apart(float *values, const uint count,
                                                                 __local float *scratch) {
  const uint item = (uint)get_local_id(0), columns = count * BLOCK_CHANNELS * LANES;
#if ROWS_OF_WARP > 1
  _Pragma("unroll") for (uint step = LANES; step < 32; step *= 2) {
    _Pragma("unroll") for (uint v = 0; v < count * BLOCK_CHANNELS; ++v) {
      float other;
      asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(other) : "f"(values[v]), "r"(step));
      values[v] += other;
    }
  }
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item / LANES % ROWS_OF_WARP == 0) {
    __local float *const own = scratch + item / LANES / ROWS_OF_WARP * LANES + item % LANES;
    _Pragma("unroll") for (uint v = 0; v < count * BLOCK_CHANNELS; ++v) own[v * SCRATCH_PITCH] = values[v];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // A column is a value of a lane. Nobody else reads or writes the item's part of it.
  for (uint i = item; i < columns * SEGMENTS; i += THREADS) {
    const uint column = i % columns, first = i / columns * SEGMENT_ROWS;
    const uint rows = min((uint)SEGMENT_ROWS, SUMMED_ROWS - first);
    __local float *const own = scratch + column / LANES * SCRATCH_PITCH + first * LANES + column % LANES;
    float total = own[0];
    for (uint r = 1; r < rows; ++r) total += own[r * LANES];
    own[0] = total;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (SEGMENTS > 1) {
    for (uint i = item; i < columns; i += THREADS) {
      __local float *const own = scratch + i / LANES * SCRATCH_PITCH + i % LANES;
      float total = own[0];
      for (uint s = 1; s < SEGMENTS; ++s) total += own[s * (SEGMENT_ROWS * LANES)];
      own[0] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// The same, in items 0 to LANES.
static inline __attribute__((always_inline)) void sum_rows(float *values, const uint count, __local float *scratch) {
  const uint item = (uint)get_local_id(0);
  sum_rows_apart(values, count, scratch);
  if (item < LANES) {
    _Pragma("unroll") for (uint v = 0; v < count * BLOCK_CHANNELS; ++v) values[v] = scratch[SUM_OF_ROWS(v, item)];
  }
}

#ifdef JOINERS
// The sum of the values of the JOINERS items of a group.
static inline __attribute__((always_inline)) float2 joined(float2 value, __local float2 *scratch) {
  const uint item = (uint)get_local_id(0);
  scratch[item] = value;
  for (uint step = JOINERS / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < step) scratch[item] += scratch[item + step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return scratch[0];
}
#endif

#endif
