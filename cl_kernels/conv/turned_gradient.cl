// conv_turn_gradient: a gradient of weights (O, taps, C) to (O, C, taps). A group turns CHANNELS channels of an output
// through local memory, so that it reads and writes neighbours. 8 bytes a number.
#include "shared/numbers.h"

#define THREADS 128
#define CHANNELS 64
#define PITCH (CHANNELS + 1)
#define EACH_NUMBER(i) for (uint i = (uint)get_local_id(0); i < CHANNELS * TAPS; i += THREADS)

#define TURN_NUMBERS(NUMBER) NUMBER(ulong, from_offset) NUMBER(ulong, to_offset) NUMBER(uint, channels)
typedef struct { TURN_NUMBERS(NUMBER_MEMBER) } turn_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void conv_turn_gradient(
    __global const float *restrict from, __global float *restrict to, const turn_numbers numbers) {
  TURN_NUMBERS(NUMBER_CONSTANT)
  __local float tile[TAPS * PITCH];
  const uint first = (uint)get_group_id(0) * CHANNELS, count = min(channels - first, (uint)CHANNELS);
  const ulong output = (ulong)get_group_id(1) * channels * TAPS;
  from += from_offset + output + first;
  to += to_offset + output + first * TAPS;
  EACH_NUMBER(i) {
    const uint tap = i / CHANNELS, channel = i % CHANNELS;
    tile[tap * PITCH + channel] = from[tap * channels + min(channel, count - 1)];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_NUMBER(i) if (i < count * TAPS) to[i] = tile[i % TAPS * PITCH + i / TAPS];
}
