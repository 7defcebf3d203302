// AllFinite: dst is 1 where every element of all members is finite, else 0. The host puts in front:
//   MEMBER_MEMORIES     the memories of all members, src<m>
//   MEMBER_NUMBERS      of each member the offset, the elements and the work-group that ends it
//   MEMBER              sets src, n and begin, its first work-group, to those of the work-group's member
//   CHUNK               elements that a work-group reads; LOCAL its items
// Each of the `total` work-groups of all launches adds to the word `progress` once: 1 to the low half, which counts the
// groups, and 1 to the high half where the group has met a bad value. The group that completes the count writes dst and
// sets the word to 0, which it is between runs. 4 bytes an element. The text in front may give WITH_NUMBERS, statements
// of that group which read `finite`, and the memories that they use and the offsets of these, MORE_MEMORIES and OFFSETS.
#include "shared/numbers.h"

#ifndef WITH_NUMBERS
#define WITH_NUMBERS
#define MORE_MEMORIES(MEMORY)
#define OFFSETS(NUMBER)
#endif

#define IS_BAD(bits) (((bits) & 0x7fffffffu) >= 0x7f800000u)

#define ALL_FINITE_NUMBERS(NUMBER) \
  MEMBER_NUMBERS(NUMBER) NUMBER(ulong, progress_offset) NUMBER(ulong, dst_offset) OFFSETS(NUMBER) NUMBER(uint, total)
typedef struct { ALL_FINITE_NUMBERS(NUMBER_MEMBER) } all_finite_numbers;
#define ALL_FINITE_MEMORIES(MEMORY) \
  MEMBER_MEMORIES(MEMORY) MEMORY(volatile uint *, progress) MEMORY(float *restrict, dst) MORE_MEMORIES(MEMORY)

__kernel void all_finite_begin(__global uint *progress, ulong progress_offset) { progress[progress_offset] = 0; }

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void all_finite_groups(
    MEMORY_PARAMETERS(ALL_FINITE_MEMORIES) const all_finite_numbers numbers) {
  ALL_FINITE_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(ALL_FINITE_MEMORIES)
  const uint group = (uint)get_group_id(0);
  __global const uint* src;
  ulong n;
  uint begin;
  MEMBER
  const ulong from = (ulong)(group - begin) * CHUNK, end = min(from + CHUNK, n);
  uint bad = 0;
#if LOCAL == 1
  for (ulong i = from; i < end; ++i) bad |= IS_BAD(src[i]);
#else
  __local int found;
  if (get_local_id(0) == 0) found = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (ulong i = from + get_local_id(0); i < end; i += LOCAL) bad |= IS_BAD(src[i]);
  if (bad) atomic_or(&found, 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) != 0) return;
  bad = (uint)found;
#endif
  const uint own = bad << 16 | 1u, now = atomic_add(progress + progress_offset, own) + own;
  if ((now & 0xffffu) != total) return;
  const float finite = now >> 16 ? 0.0f : 1.0f;
  dst[dst_offset] = finite;
  WITH_NUMBERS
  atomic_xchg(progress + progress_offset, 0u);
}
