// The sum of each channel of images that lie channels-last: of every part of the rows, then of the parts.
#include "shared/channels_last_rows.h"

// sums (part, channel); the second number is 0.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void channel_sums(
    __global const uint4 *restrict src, ulong src_offset, __global float2 *restrict sums, ulong sums_offset, SIZES) {
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
  if (item < LANES && is_block) EACH_CHANNEL(e) sums[e] = (float2)(sum[e], 0.0f);
}

__kernel __attribute__((reqd_work_group_size(JOINERS, 1, 1))) void channel_sums_join(
    __global const float2 *restrict sums, ulong sums_offset, __global float *restrict dst, ulong dst_offset, uint rows,
    uint channels, uint part, uint parts) {
  __local float2 scratch[JOINERS];
  const uint channel = (uint)get_group_id(0), item = (uint)get_local_id(0);
  float2 own = (float2)(0.0f);
  for (uint p = item; p < parts; p += JOINERS) own += sums[sums_offset + (ulong)p * channels + channel];
  const float2 total = joined(own, scratch);
  if (item == 0) dst[dst_offset + channel] = total.x;
}
