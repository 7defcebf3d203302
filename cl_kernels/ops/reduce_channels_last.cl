// The sum of each channel of images that lie channels-last: of every part of the rows, then of the parts. With JOINED, on
// NVIDIA GPUs, one launch does both: the group that is the last one to write sums of its channels adds them up, in
// order. The text in front may give src a prologue (block_prologue). `written` counts the groups of every column of
// groups; it is 0 between launches. The first `results` channels have a result; those behind them are padding.
#include "shared/channels_last_rows.h"
#include "shared/prologue_block.h"

#ifdef JOINED
#define JOINED_PARAMETERS , __global uint *written, ulong written_offset, __global float *dst, ulong dst_offset, uint results
#define AT_ONCE 8
#define EACH_PART(i) _Pragma("unroll") for (uint i = 0; i < AT_ONCE; ++i)
#define EACH_OF_FOUR(e) _Pragma("unroll") for (uint e = 0; e < 4; ++e)
#define FENCE_DEVICE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
__kernel void channel_sums_begin(__global uint *written, ulong written_offset) {
  written[written_offset + get_global_id(0)] = 0;
}
#else
#define JOINED_PARAMETERS
#endif

// sums (part, channel)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void channel_sums(
    __global const uint4 *restrict src, ulong src_offset, __global float *sums, ulong sums_offset,
    SIZES JOINED_PARAMETERS PROLOGUE_PARAMETERS) {
  __local float scratch[SCRATCH(1) < 4 * THREADS ? 4 * THREADS : SCRATCH(1)];
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
      PROLOGUE_BLOCK(values, AT(k), min(ROW(k), end - 1) / places, channel);
      const uint bits = IS_INSIDE(k) ? 0xffffffffu : 0;  // compilers move reads behind the branch of a condition
      EACH_CHANNEL(e) sum[e] += as_float(as_uint(values[e]) & bits);
    }
  }
  sum_rows(sum, 1, scratch);
  __global float *const own = sums + sums_offset + (ulong)get_group_id(1) * channels + channel;
  if (item < LANES && is_block) EACH_CHANNEL(e) own[e] = sum[e];
#ifdef JOINED
  __local uint before;
  const uint parts = (uint)get_num_groups(1);
  if (item < LANES) FENCE_DEVICE();
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    uint count;  // begins at 0 again after the last group
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(count) : "l"(written + written_offset + get_group_id(0)), "r"(parts - 1) : "memory");
    before = count;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (before + 1 < parts) return;
  FENCE_DEVICE();
  // An item has four channels and every so many parts.
  const uint wide = LANES * BLOCK_CHANNELS / 4, high = THREADS / wide, number = item / wide;
  const uint c = first_block * BLOCK_CHANNELS + item % wide * 4, last = channels - 4;
  float total[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (uint first = number; first < parts; first += AT_ONCE * high) {
    float one[AT_ONCE][4];
    EACH_PART(i) {
      const uint p = min(first + i * high, parts - 1);
      asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(one[i][0]), "=f"(one[i][1]), "=f"(one[i][2]), "=f"(one[i][3])
                   : "l"(sums + sums_offset + (ulong)p * channels + min(c, last)));
    }
    EACH_PART(i) {
      if (first + i * high >= parts) continue;
      EACH_OF_FOUR(e) total[e] += one[i][e];
    }
  }
  EACH_OF_FOUR(e) scratch[(number * wide + item % wide) * 4 + e] = total[e];
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint channel_of_item = first_block * BLOCK_CHANNELS + item;
  if (item >= 4 * wide || channel_of_item >= results) return;
  float all = 0.0f;
  for (uint h = 0; h < high; ++h) all += scratch[h * wide * 4 + item];
  dst[dst_offset + channel_of_item] = all;
#endif
}

// A group has WIDE neighbouring channels and HIGH items for each, which share the parts.
#define WIDE 32
#define HIGH (THREADS / WIDE)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void channel_sums_join(
    __global const float *restrict sums, ulong sums_offset, __global float *restrict dst, ulong dst_offset,
    uint channels, uint results, uint parts) {
  __local float scratch[THREADS];
  const uint item = (uint)get_local_id(0), first = item / WIDE;
  const uint channel = (uint)get_group_id(0) * WIDE + item % WIDE;
  sums += sums_offset + min(channel, channels - 1);
  float own = 0.0f;
  for (uint p = first; p < parts; p += HIGH) own += sums[(ulong)p * channels];
  scratch[item] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (first > 0 || channel >= results) return;
  for (uint h = 1; h < HIGH; ++h) own += scratch[h * WIDE + item];
  dst[dst_offset + channel] = own;
}
