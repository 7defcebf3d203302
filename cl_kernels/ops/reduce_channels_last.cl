// The sum of each channel of images that lie channels-last: of every part of the rows, then of the parts.
#include "shared/channels_last_rows.h"

// sums (part, channel)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void channel_sums(
    __global const uint4 *restrict src, ulong src_offset, __global float *restrict sums, ulong sums_offset, SIZES) {
  __local float scratch[BLOCK_CHANNELS * THREADS];
  PLACE;
  src += src_offset;
  float sum[BLOCK_CHANNELS];
  EACH_CHANNEL(e) sum[e] = 0.0f;
  TURNS {
    uint4 x[UNROLL];
    EACH_TURN(k) x[k] = src[AT(k)];
    EACH_TURN(k) {
      float values[BLOCK_CHANNELS];
      read_block(values, x[k]);
      EACH_CHANNEL(e) sum[e] += IS_INSIDE(k) ? values[e] : 0.0f;
    }
  }
  sum_rows(sum, scratch);
  sums += sums_offset + (ulong)get_group_id(1) * channels + channel;
  if (item < LANES && is_block) EACH_CHANNEL(e) sums[e] = sum[e];
}

// A group has WIDE neighbouring channels and HIGH items for each, which share the parts.
#define WIDE 32
#define HIGH (THREADS / WIDE)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void channel_sums_join(
    __global const float *restrict sums, ulong sums_offset, __global float *restrict dst, ulong dst_offset,
    uint channels, uint parts) {
  __local float scratch[THREADS];
  const uint item = (uint)get_local_id(0), first = item / WIDE;
  const uint channel = (uint)get_group_id(0) * WIDE + item % WIDE;
  sums += sums_offset + min(channel, channels - 1);
  float own = 0.0f;
  for (uint p = first; p < parts; p += HIGH) own += sums[(ulong)p * channels];
  scratch[item] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (first > 0 || channel >= channels) return;
  for (uint h = 1; h < HIGH; ++h) own += scratch[h * WIDE + item];
  dst[dst_offset + channel] = own;
}
