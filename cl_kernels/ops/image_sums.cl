// Sums over the places of every image and channel, divided by `divisor`, of images that lie channels-last; the results are
// fp32. A group of THREADS items has LANES neighbouring blocks of channels and one of `parts` parts of an image's places,
// of `part` places; image_sums_join adds the sums of several parts up, in order. Bytes: 2 an element of src; one addition.
#include "shared/channels_last_rows.h"

// dst (image, part, channel)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void image_sums(
    __global const uint4 *restrict src, ulong src_offset, __global float *restrict dst, ulong dst_offset, uint places,
    uint blocks, uint part, uint parts, float divisor) {
  __local float scratch[SCRATCH(1)];
  const uint item = (uint)get_local_id(0), lane = item % LANES, row_number = item / LANES;
  const uint own_block = (uint)get_group_id(0) * LANES + lane, block = min(own_block, blocks - 1);
  const uint number = (uint)get_group_id(1), image = number / parts;
  const uint begin = image * places + (number - image * parts) * part, end = min(begin + part, (image + 1) * places);
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
  sum_rows(sum, 1, scratch);
  if (item >= LANES || own_block >= blocks) return;
  dst += dst_offset + ((ulong)number * blocks + block) * BLOCK_CHANNELS;
  EACH_CHANNEL(e) dst[e] = sum[e] / divisor;
}

// An item owns a result. sums (image, part, channel)
__kernel void image_sums_join(__global const float *restrict sums, ulong sums_offset, __global float *restrict dst,
                              ulong dst_offset, uint count, uint channels, uint parts, float divisor) {
  const uint item = (uint)get_global_id(0), image = item / channels;
  if (item >= count) return;
  sums += sums_offset + (ulong)image * parts * channels + (item - image * channels);
  float sum = sums[0];
  for (uint p = 1; p < parts; ++p) sum += sums[(ulong)p * channels];
  dst[dst_offset + item] = sum / divisor;
}
