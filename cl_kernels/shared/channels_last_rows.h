// Work-groups on an image that lies channels-last: rows = images·places rows of `blocks` blocks of 8 channels. A group of
// THREADS items has LANES neighbouring blocks and a part of `part` rows; its items (lane, row number) are ROWS above each
// other.
#ifndef CONCORD_CHANNELS_LAST_ROWS_H
#define CONCORD_CHANNELS_LAST_ROWS_H

#include "shared/channels_last.h"

#define ROWS (THREADS / LANES)
#define UNROLL 4

#define SIZES uint rows, uint blocks, uint part, uint places
#define PLACE PLACE_OF_PART((uint)get_group_id(1))
// The parts from the last one to the first: a second pass over an image finds the end of it in the cache.
#define PLACE_BACKWARDS PLACE_OF_PART((uint)(get_num_groups(1) - 1 - get_group_id(1)))
#define PLACE_OF_PART(part_number)                                                                         \
  const uint item = (uint)get_local_id(0), lane = item % LANES, row_number = item / LANES;                  \
  const uint first_block = (uint)get_group_id(0) * LANES, block = min(first_block + lane, blocks - 1);      \
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
// before TURNS, READ_NEXT within.
#define READ_FIRST(next, src)                                                          \
  uint4 next[UNROLL];                                                                  \
  EACH_TURN(k) next[k] = src[(ulong)min(begin + row_number + k * ROWS, end - 1) * blocks + block]
#define READ_NEXT(x, next, src)                                                        \
  uint4 x[UNROLL];                                                                     \
  EACH_TURN(k) {                                                                       \
    x[k] = next[k];                                                                    \
    next[k] = src[AT(k + UNROLL)];                                                     \
  }

// What the items above each other have of every channel, added up in order, in items 0 to LANES. `scratch` has
// BLOCK_CHANNELS·THREADS places.
static inline __attribute__((always_inline)) void sum_rows(float *values, __local float *scratch) {
  const uint item = (uint)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_CHANNEL(e) scratch[e * THREADS + item] = values[e];
  barrier(CLK_LOCAL_MEM_FENCE);
  // Item i adds up what belongs to channel i / LANES of lane i % LANES; nobody else reads or writes that.
  for (uint i = item; i < LANES * BLOCK_CHANNELS; i += THREADS) {
    __local float *const own = scratch + i / LANES * THREADS + i % LANES;
    float total = own[0];
    for (uint r = 1; r < ROWS; ++r) total += own[r * LANES];
    own[0] = total;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < LANES) EACH_CHANNEL(e) values[e] = scratch[e * THREADS + item];
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
