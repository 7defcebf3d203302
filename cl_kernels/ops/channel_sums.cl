// Sums by channel of images that lie channels-last, or of rows of floats (NUMBERS_F32), of several in one launch: of every
// part of an image's rows, then of the parts. With JOINED, on NVIDIA GPUs, one launch does both: the group that is the last
// one to write sums of its channels adds them up, in order. The host puts in front:
//   SUM_MEMORIES    src and dst of every member
//   SUM_NUMBERS     their offsets and sizes, and the number of the first group behind each member
//   SUM_MEMBER      declares those of the group's member: src and dst; `member`, its number; SIZES and `parts`; `results`,
//                   the channels that have a result (those behind them are padding); where its sums begin in `sums`, its
//                   columns in `written` and its groups: first_sum, first_column and first_group
//   SUM_PARAMETERS  operands of prologues
//   SUM_ROWS        ADD_ROWS with the member's prologue (block_prologue) or NO_PROLOGUE
// `written` counts the groups of every column of groups; it is 0 between launches.
#include "shared/channels_last_rows.h"
#include "shared/numbers.h"

#ifdef JOINED
#define AT_ONCE 8
#define EACH_PART(i) _Pragma("unroll") for (uint i = 0; i < AT_ONCE; ++i)
#define EACH_OF_FOUR(e) _Pragma("unroll") for (uint e = 0; e < 4; ++e)
#define FENCE_DEVICE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
__kernel void channel_sums_begin(__global uint *written, ulong written_offset) {
  written[written_offset + get_global_id(0)] = 0;
}
#define CHANNEL_SUMS_MEMORIES(MEMORY) SUM_MEMORIES(MEMORY) MEMORY(float *, sums) MEMORY(uint *, written)
#define CHANNEL_SUMS_NUMBERS(NUMBER) SUM_NUMBERS(NUMBER) NUMBER(ulong, sums_offset) NUMBER(ulong, written_offset)
#else
#define CHANNEL_SUMS_MEMORIES(MEMORY) SUM_MEMORIES(MEMORY) MEMORY(float *, sums)
#define CHANNEL_SUMS_NUMBERS(NUMBER) SUM_NUMBERS(NUMBER) NUMBER(ulong, sums_offset)
#endif
typedef struct { CHANNEL_SUMS_NUMBERS(NUMBER_MEMBER) } channel_sums_numbers;

// Words of 16 bytes of a block.
#ifdef NUMBERS_F32
#define WORDS 2
#define READ_WORDS(values, words)                             \
  EACH_WORD(w) {                                              \
    (values)[4 * w] = as_float((words)[w].x);                 \
    (values)[4 * w + 1] = as_float((words)[w].y);             \
    (values)[4 * w + 2] = as_float((words)[w].z);             \
    (values)[4 * w + 3] = as_float((words)[w].w);             \
  }
#else
#define WORDS 1
#define READ_WORDS(values, words) read_block(values, (words)[0]);
#endif
#define EACH_WORD(w) _Pragma("unroll") for (uint w = 0; w < WORDS; ++w)
#define NO_PROLOGUE(values, at, image, channel)
#define ADD_ROWS(PROLOGUE)                                                                               \
  TURNS {                                                                                                \
    uint4 x[UNROLL][WORDS];                                                                              \
    EACH_TURN(k) EACH_WORD(w) x[k][w] = src[AT(k) * WORDS + w];                                          \
    EACH_TURN(k) {                                                                                       \
      float values[BLOCK_CHANNELS];                                                                      \
      READ_WORDS(values, x[k])                                                                           \
      PROLOGUE(values, AT(k), min(ROW(k), end - 1) / places, channel);                                   \
      const uint bits = IS_INSIDE(k) ? 0xffffffffu : 0; /* compilers move reads behind a condition */    \
      EACH_CHANNEL(e) sum[e] += as_float(as_uint(values[e]) & bits);                                     \
    }                                                                                                    \
  }

// sums (part, channel) of every member
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void channel_sums(
    MEMORY_PARAMETERS(CHANNEL_SUMS_MEMORIES) const channel_sums_numbers numbers SUM_PARAMETERS) {
  CHANNEL_SUMS_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(CHANNEL_SUMS_MEMORIES)
  __local float scratch[SCRATCH(1) < 4 * THREADS ? 4 * THREADS : SCRATCH(1)];
  const uint group = (uint)get_group_id(0);
  SUM_MEMBER
  const uint columns = (blocks + LANES - 1) / LANES, column = (group - first_group) % columns;
  const uint number = (group - first_group) / columns;
  PLACE_AT(column, number);
  float sum[BLOCK_CHANNELS];
  EACH_CHANNEL(e) sum[e] = 0.0f;
  SUM_ROWS
  sum_rows(sum, 1, scratch);
  sums += sums_offset + first_sum;
  __global float *const own = sums + (ulong)number * channels + channel;
  if (item < LANES && is_block) EACH_CHANNEL(e) own[e] = sum[e];
#ifdef JOINED
  __local uint before;
  if (item < LANES) FENCE_DEVICE();
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    uint count;  // begins at 0 again after the last group
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(count) : "l"(written + written_offset + first_column + column), "r"(parts - 1) : "memory");
    before = count;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (before + 1 < parts) return;
  FENCE_DEVICE();
  // An item has four channels and every so many parts.
  const uint wide = LANES * BLOCK_CHANNELS / 4, high = THREADS / wide, first_part = item / wide;
  const uint c = first_block * BLOCK_CHANNELS + item % wide * 4, last = channels - 4;
  float total[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (uint first = first_part; first < parts; first += AT_ONCE * high) {
    float one[AT_ONCE][4];
    EACH_PART(i) {
      const uint p = min(first + i * high, parts - 1);
      asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(one[i][0]), "=f"(one[i][1]), "=f"(one[i][2]), "=f"(one[i][3])
                   : "l"(sums + (ulong)p * channels + min(c, last)));
    }
    EACH_PART(i) {
      if (first + i * high >= parts) continue;
      EACH_OF_FOUR(e) total[e] += one[i][e];
    }
  }
  EACH_OF_FOUR(e) scratch[(first_part * wide + item % wide) * 4 + e] = total[e];
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint channel_of_item = first_block * BLOCK_CHANNELS + item;
  if (item >= 4 * wide || channel_of_item >= results) return;
  float all = 0.0f;
  for (uint h = 0; h < high; ++h) all += scratch[h * wide * 4 + item];
  dst[channel_of_item] = all;
#endif
}

#ifndef JOINED
// A group has WIDE neighbouring channels of a member and HIGH items for each, which share the parts.
#define WIDE 32
#define HIGH (THREADS / WIDE)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void channel_sums_join(
    MEMORY_PARAMETERS(CHANNEL_SUMS_MEMORIES) const channel_sums_numbers numbers) {
  CHANNEL_SUMS_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(CHANNEL_SUMS_MEMORIES)
  __local float scratch[THREADS];
  const uint group = (uint)get_group_id(0), item = (uint)get_local_id(0), first = item / WIDE;
  SUM_MEMBER
  const uint channels = blocks * BLOCK_CHANNELS, channel = (group - first_group) * WIDE + item % WIDE;
  sums += sums_offset + first_sum + min(channel, channels - 1);
  float own = 0.0f;
  for (uint p = first; p < parts; p += HIGH) own += sums[(ulong)p * channels];
  scratch[item] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (first > 0 || channel >= results) return;
  for (uint h = 1; h < HIGH; ++h) own += scratch[h * WIDE + item];
  dst[channel] = own;
}
#endif
