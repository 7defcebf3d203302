// Batch normalisation of images that lie channels-last, and its gradient, each in one launch. A group owns a part of the
// rows of LANES blocks of channels. It sums its part (batch_norm_parts.h) and keeps the first KEPT turns of it in local
// memory, shows the sums to the groups of the other parts of these channels, waits for theirs, joins them all, and
// rewrites its part. What was not kept is read again, from the last turn to the first, so that it begins with what the
// cache has.
//   forward   reads src once (what is kept) or twice, writes dst
//   backward  reads src and diff_dst once or twice, writes diff_src
// With PARTS_MEET, on NVIDIA's GPUs, a column of groups has several parts, and all groups must be on the device at once;
// otherwise one group has all rows. `meeting` counts the groups of each column that have come; it only grows. Counts lie
// MEETING_PITCH numbers apart.
// BACKWARD asks for the kernel of the gradient, whose kept images leave no room for that of the other in a program.
// With EPILOGUE_PARAMETERS the text in front gives EPILOGUE_BLOCK, which each block of dst, or diff_src, passes through.
#include "ops/batch_norm_parts.h"
#include "shared/numbers.h"
#ifdef PARTS_MEET
#include "shared/nvidia/meeting.h"
#endif

#define JOINING (THREADS / WIDE)       // items that join a channel; those behind them wait
#ifdef BACKWARD
#define PART_SCRATCH (SCRATCH(SUMS_AT_ONCE) / 4)
#else
#define PART_SCRATCH (SCRATCH(2) / 4)
#endif
#define MEETING_SCRATCH (PART_SCRATCH < THREADS ? THREADS : PART_SCRATCH)

#define RESIDENT_SIZES(NUMBER) \
  NUMBER(uint, rows) NUMBER(uint, blocks) NUMBER(uint, part) NUMBER(uint, places) NUMBER(float, epsilon)
#define FORWARD_RESIDENT(NUMBER)                                                                                \
  NUMBER(ulong, src_offset) NUMBER(ulong, scale_offset) NUMBER(ulong, shift_offset) NUMBER(ulong, dst_offset) \
  NUMBER(ulong, means_offset) NUMBER(ulong, variances_offset) NUMBER(ulong, sums_offset)                       \
  NUMBER(ulong, meeting_offset) RESIDENT_SIZES(NUMBER)
#define BACKWARD_RESIDENT(NUMBER)                                                                                   \
  NUMBER(ulong, src_offset) NUMBER(ulong, diff_dst_offset) NUMBER(ulong, scale_offset) NUMBER(ulong, means_offset) \
  NUMBER(ulong, variances_offset) NUMBER(ulong, diff_src_offset) NUMBER(ulong, diff_scale_offset)                  \
  NUMBER(ulong, diff_shift_offset) NUMBER(ulong, sums_offset) NUMBER(ulong, meeting_offset) RESIDENT_SIZES(NUMBER)
typedef struct { FORWARD_RESIDENT(NUMBER_MEMBER) } forward_resident;
typedef struct { BACKWARD_RESIDENT(NUMBER_MEMBER) } backward_resident;

#ifdef PARTS_MEET
#define MEET(is_lost, meeting)                                                                        \
  __local uint is_lost;                                                                               \
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);                                                \
  if (item == 0)                                                                                      \
    is_lost = !have_all_come(meeting + get_group_id(0) * MEETING_PITCH, parts, get_group_id(1) == 0); \
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// The sum of what the items of a channel have, for all of them.
static inline __attribute__((always_inline)) float4 sum_of_joining(float4 own, __local float4 *scratch) {
  const uint item = (uint)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  scratch[item] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  float4 total = scratch[item % WIDE];
  for (uint j = 1; j < JOINING; ++j) total += scratch[item % WIDE + j * WIDE];
  return total;
}

// Item i joins every JOINING-th part of channel i % WIDE of the group, of which it reads some at once.
#define JOINED_PLACE                                                 \
  const uint joining = item / WIDE, parts = (uint)get_num_groups(1); \
  const uint joined_parts = joining < JOINING ? parts : 0
#define AT_ONCE 8
#define EACH_AT_ONCE(i) _Pragma("unroll") for (uint i = 0; i < AT_ONCE; ++i)
#define JOINED_PARTS for (uint first_part = joining; first_part < joined_parts; first_part += AT_ONCE * JOINING)
#define PART(i) (first_part + (i) * JOINING)
#define SHOWN_PARTS(name, from) \
  float4 name[AT_ONCE];         \
  EACH_AT_ONCE(i) name[i] = shown((from) + (ulong)min(PART(i), parts - 1) * channels + joined_channel)
#define ROWS_OF_PART(p) ((float)min(part, rows - (p) * part))
#endif

// Item i finishes channel i % WIDE of the group.
#define JOINED_CHANNEL                                                                      \
  const uint joined_channel = min(first_block * BLOCK_CHANNELS + item % WIDE, channels - 1); \
  const bool is_result = item < WIDE && first_block * BLOCK_CHANNELS + item < channels

// The second pass over the part. Turns behind KEPT are read again, one ahead.
#define TURN_ROW(turn) (begin + row_number + (turn) * (UNROLL * ROWS))
#define TURN_COUNT ((end - begin + UNROLL * ROWS - 1) / (UNROLL * ROWS))
#define READ_LAST(next, src)                                              \
  uint4 next[UNROLL];                                                     \
  {                                                                       \
    const uint row = TURN_ROW(TURN_COUNT - 1);                            \
    if (TURN_COUNT > KEPT) EACH_TURN(k) next[k] = src[AT(k)];              \
  }
#define TURNS_BACKWARDS for (uint turn = TURN_COUNT; turn-- > 0;)
#define READ_BEFORE(x, next, src, kept)                                                      \
  uint4 x[UNROLL];                                                                           \
  if (turn < KEPT) {                                                                         \
    EACH_TURN(k) x[k] = kept[KEPT_PLACE(turn, k)];                                           \
  } else {                                                                                   \
    EACH_TURN(k) x[k] = next[k];                                                             \
    if (turn > KEPT) EACH_TURN(k) next[k] = src[AT((int)k - UNROLL)];                        \
  }

#ifndef BACKWARD
#define FORWARD_MEMORIES(MEMORY)                                                                               \
  MEMORY(const uint4 *, src) MEMORY(const float *restrict, scale) MEMORY(const float *restrict, shift)         \
  MEMORY(uint4 *, dst) MEMORY(float *restrict, means) MEMORY(float *restrict, variances) MEMORY(float4 *, sums) \
  MEMORY(uint *, meeting)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_resident(
    MEMORY_PARAMETERS(FORWARD_MEMORIES) const forward_resident numbers EPILOGUE_PARAMETERS) {
  FORWARD_RESIDENT(NUMBER_CONSTANT)
  DECLARE_MEMORIES(FORWARD_MEMORIES)
  __local uint4 kept[KEPT * UNROLL * THREADS];
  __local float4 scratch[MEETING_SCRATCH];
  __local float4 factors[WIDE];
  __local uint again;
  PLACE;
  JOINED_CHANNEL;
  src += src_offset;
  dst += dst_offset;
  const float own_scale = scale[scale_offset + joined_channel], own_shift = shift[shift_offset + joined_channel];
  batch_norm_part(factors, src, rows, blocks, part, epsilon, (__local float *)scratch, &again, kept);
#ifdef PARTS_MEET
  JOINED_PLACE;
  sums += sums_offset;
  if (is_result) sums[(ulong)get_group_id(1) * channels + joined_channel] = factors[item];
  MEET(is_lost, meeting + meeting_offset);

  const float4 first = shown(sums + joined_channel);
  if (item == 0) again = 0;
  float4 own = (float4)(0.0f);
  JOINED_PARTS {
    SHOWN_PARTS(other, sums);
    EACH_AT_ONCE(i) {
      if (PART(i) >= parts) continue;
      own.xy += batch_norm_joined_in(other[i], first, ROWS_OF_PART(PART(i)), 1.0f, 1.0f);
      if (other[i].w != 1.0f) own.y = NAN;  // not summed in this unit
    }
  }
  float unit = 1.0f;
  float4 total = sum_of_joining(own, scratch);
  if (total.y != total.y) again = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (again != 0) {
    for (uint p = 0; p < parts; ++p) unit = fmin(unit, shown(sums + (ulong)p * channels + joined_channel).w);
    own = (float4)(0.0f);
    for (uint p = joining; p < joined_parts; p += JOINING) {
      const float4 other = shown(sums + (ulong)p * channels + joined_channel);
      own.xy += batch_norm_joined_part(other, first, ROWS_OF_PART(p), unit);
    }
    total = sum_of_joining(own, scratch);
  }
#else
  const uint is_lost = 0;
#endif
  if (item < WIDE) {
#ifndef PARTS_MEET
    const float4 first = factors[item], total = (float4)(0.0f, first.z, 0.0f, 0.0f);
    const float unit = first.w;
#endif
    const norm_factors by = batch_norm_factors(first, total.xy, (float)rows, unit, own_scale, own_shift, epsilon);
    factors[item] = (float4)(by.mean, is_lost ? NAN : by.factor, by.added, 0.0f);
    if (is_result && get_group_id(1) == 0) {
      means[means_offset + joined_channel] = by.mean;
      variances[variances_offset + joined_channel] = is_lost ? NAN : by.variance;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float4 factor[BLOCK_CHANNELS];
  EACH_CHANNEL(e) factor[e] = factors[lane * BLOCK_CHANNELS + e];
  READ_LAST(next, src);
  TURNS_BACKWARDS {
    const uint row = TURN_ROW(turn);
    READ_BEFORE(x, next, src, kept)
    NORMALISE_TURN(x, factor, dst);
  }
}

#else
#define BACKWARD_MEMORIES(MEMORY)                                                                              \
  MEMORY(const uint4 *, src) MEMORY(const uint4 *, diff_dst) MEMORY(const float *restrict, scale)              \
  MEMORY(const float *restrict, means) MEMORY(const float *restrict, variances) MEMORY(uint4 *, diff_src)      \
  MEMORY(float *restrict, diff_scale) MEMORY(float *restrict, diff_shift) MEMORY(float4 *, sums) MEMORY(uint *, meeting)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_resident_backward(
    MEMORY_PARAMETERS(BACKWARD_MEMORIES) const backward_resident numbers EPILOGUE_PARAMETERS) {
  BACKWARD_RESIDENT(NUMBER_CONSTANT)
  DECLARE_MEMORIES(BACKWARD_MEMORIES)
  __local uint4 kept[KEPT * UNROLL * THREADS], kept_differences[KEPT * UNROLL * THREADS];
  __local float4 scratch[MEETING_SCRATCH];
  __local float4 factors[WIDE];
  __local float bases[WIDE];
  PLACE;
  JOINED_CHANNEL;
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
  means += means_offset;
  variances += variances_offset;
  const float own_scale = scale[scale_offset + joined_channel], mean = means[joined_channel];
  const float variance = variances[joined_channel];
  batch_norm_part_backward(factors, bases, src, diff_dst, means, variances, rows, blocks, part, epsilon,
                           (__local float *)scratch, kept, kept_differences);
#ifdef PARTS_MEET
  JOINED_PLACE;
  // The sums of all parts, and behind them their bases.
  sums += sums_offset;
  __global float4 *const all_bases = sums + (ulong)parts * channels;
  if (is_result) {
    const ulong at = (ulong)get_group_id(1) * channels + joined_channel;
    sums[at] = factors[item];
    all_bases[at] = (float4)(bases[item], 0.0f, 0.0f, 0.0f);
  }
  MEET(is_lost, meeting + meeting_offset);

  const float first = shown(all_bases + joined_channel).x;
  float4 own = (float4)(0.0f);
  JOINED_PARTS {
    SHOWN_PARTS(other, sums);
    SHOWN_PARTS(other_base, all_bases);
    EACH_AT_ONCE(i) {
      if (PART(i) >= parts) continue;
      own += batch_norm_rebased(other[i], ROWS_OF_PART(PART(i)), other_base[i].x - first);
    }
  }
  const float4 total = sum_of_joining(own, scratch);
#else
  const uint is_lost = 0;
#endif
  if (item < WIDE) {
#ifndef PARTS_MEET
    const float first = bases[item];
    const float4 total = factors[item];
#endif
    const gradient_factors by = batch_norm_gradient_factors(
        total, first, (float)rows, variance, batch_norm_unit(variance, epsilon), own_scale, epsilon);
    factors[item] = (float4)(mean, is_lost ? NAN : by.factor, by.diff_mean - by.rest, by.slope);
    if (is_result && get_group_id(1) == 0) {
      diff_scale[diff_scale_offset + joined_channel] = is_lost ? NAN : by.diff_scale;
      diff_shift[diff_shift_offset + joined_channel] = is_lost ? NAN : by.diff_shift;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float4 factor[BLOCK_CHANNELS];
  EACH_CHANNEL(e) factor[e] = factors[lane * BLOCK_CHANNELS + e];
  READ_LAST(next_x, src);
  READ_LAST(next_d, diff_dst);
  TURNS_BACKWARDS {
    const uint row = TURN_ROW(turn);
    READ_BEFORE(x, next_x, src, kept)
    READ_BEFORE(d, next_d, diff_dst, kept_differences)
    DIFFERENTIATE_TURN(x, d, factor, diff_src);
  }
}
#endif
