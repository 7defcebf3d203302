// Weights of convolutions as the copy engine takes them (src/opencl/conv/filters.hpp): blocks of 8 numbers of 16 bits in the
// order (phase, line, tap, number), zeros behind the numbers of a tap. A launch packs the weights of several convolutions.
// A work-group works for one of them, on LINES lines of BLOCKS blocks. The host puts in front:
//   FILTER_MEMORIES  weights and packed weights of every member
//   FILTER_NUMBERS   their offsets, sizes and strides, and the number of the first group behind each member
//   FILTER_MEMBER    declares those of the group's member: from and to; the number of its first group, `begin`; lines,
//                    line_stride; numbers of a tap, of which `run` are neighbours and runs are run_stride apart; blocks of a
//                    tap; its slots, from first_slot up to end_slot; taps: how many lie side by side in the weights, and 0
//                    where they are not all slots, or too many
// A slot is a tap of a phase: where it begins in the weights, and in blocks where it begins and how far its lines are apart.
#include "shared/channels_last.h"
#include "shared/numbers.h"

#define THREADS 128
#define LINES 8
#define BLOCKS 8
#define WIDE (BLOCKS * BLOCK_CHANNELS)
#define MOST_TAPS 9
#define PITCH (WIDE / 2 + 1)  // pairs of numbers of a tap of a line: neighbours meet different banks
#define STAGED (LINES * WIDE / THREADS)  // numbers of a tap that an item stages

#define ALL_FILTER_NUMBERS(NUMBER) FILTER_NUMBERS(NUMBER) TABLE_NUMBER(NUMBER, slots)
typedef struct { ALL_FILTER_NUMBERS(NUMBER_MEMBER) } filter_numbers;

// The taps of the group's numbers into local memory, as halves. Neighbouring items read neighbours: taps of a number, then
// those of the next number or line, whichever is nearer. An item reads STAGED·taps_at_once at once. Constant numbers of
// taps spare divisions.
static inline __attribute__((always_inline)) void stage(__local ushort *halves, __global const float *from, const uint taps,
                                                        const uint taps_at_once, uint line_stride, uint run_stride,
                                                        uint last_line, uint last_number) {
  const bool are_lines_near = line_stride < run_stride;
  for (uint first = (uint)get_local_id(0); first < LINES * WIDE * taps; first += STAGED * taps_at_once * THREADS) {
    float values[STAGED * MOST_TAPS];
    uint to_half[STAGED * MOST_TAPS];
    _Pragma("unroll") for (uint k = 0; k < STAGED * taps_at_once; ++k) {
      const uint i = first + k * THREADS, near = i / taps, tap = i - near * taps;
      const uint line = are_lines_near ? near % LINES : near / WIDE;
      const uint number = are_lines_near ? near / LINES : near % WIDE;
      const float value = from[min(line, last_line) * line_stride + min(number, last_number) * run_stride + tap];
      values[k] = number <= last_number ? value : 0.0f;
      to_half[k] = (line * taps + tap) * (2 * PITCH) + number;
    }
    _Pragma("unroll") for (uint k = 0; k < STAGED * taps_at_once; ++k) halves[to_half[k]] = (ushort)pair_of(values[k], 0.0f);
  }
}
#define STAGE(taps, taps_at_once) \
  stage((__local ushort *)tile, part, taps, taps_at_once, line_stride, run_stride, lines - 1 - first_line, \
        numbers_of_tap - 1 - first_number)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void filters_pack(
    MEMORY_PARAMETERS(FILTER_MEMORIES) TABLE_PARAMETER(const uint4 *restrict, slots) const filter_numbers numbers) {
  ALL_FILTER_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(FILTER_MEMORIES)
  DECLARE_TABLE(const uint4 *restrict, slots)
  __local uint tile[LINES * MOST_TAPS * PITCH];
  const uint group = (uint)get_group_id(0), t = (uint)get_local_id(0);
  FILTER_MEMBER
  const uint across = (blocks + BLOCKS - 1) / BLOCKS, place = group - begin;
  const uint first_line = place / across * LINES, first_block = place % across * BLOCKS;
  const uint first_number = first_block * BLOCK_CHANNELS, works = LINES * BLOCKS * (end_slot - first_slot);
  if (taps != 0) {
    __global const float *const part = from + (ulong)first_line * line_stride + (ulong)first_number * run_stride;
    if (taps == 9) {
      STAGE(9, 3);
    } else if (taps == 1) {
      STAGE(1, 1);
    } else {
      STAGE(taps, 1);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint i = t; i < works; i += THREADS) {
    const uint b = i % BLOCKS, line = i / BLOCKS % LINES;
    const uint4 slot = slots[first_slot + i / (BLOCKS * LINES)];
    if (first_line + line >= lines || first_block + b >= blocks) continue;
    uint4 block;
    if (taps != 0) {
      __local const uint *const pairs = tile + (line * taps + slot.x) * PITCH + b * (BLOCK_CHANNELS / 2);
      block = (uint4)(pairs[0], pairs[1], pairs[2], pairs[3]);
    } else {
      float values[BLOCK_CHANNELS];
      EACH_CHANNEL(e) {
        const uint number = first_number + b * BLOCK_CHANNELS + e, held = min(number, numbers_of_tap - 1);
        const float value =
            from[(ulong)(first_line + line) * line_stride + held / run * run_stride + held % run + slot.x];
        values[e] = number < numbers_of_tap ? value : 0.0f;
      }
      block = block_of(values);
    }
    to[slot.y + (ulong)(first_line + line) * slot.z + first_block + b] = block;
  }
}
