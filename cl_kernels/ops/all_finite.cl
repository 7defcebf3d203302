// AllFinite. The host puts in front:
//   MEMBERS             the parameters of all members: src<m>, its offset, its elements and the work-group that ends it
//   MEMBER              sets src, n and begin, its first work-group, to those of the work-group's member
//   CHUNK               elements that a work-group reads; LOCAL its items
// A work-group writes 1 when it has met a value that is not finite: parts[first + group]. all_finite_join reads them.
#define IS_BAD(bits) (((bits) & 0x7fffffffu) >= 0x7f800000u)

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void all_finite_parts(
    MEMBERS, __global uint* restrict parts, const ulong parts_offset, const uint first) {
  const uint group = (uint)get_group_id(0);
  __global const uint* src;
  ulong n;
  uint begin;
  MEMBER
  const ulong from = (ulong)(group - begin) * CHUNK, end = min(from + CHUNK, n);
  uint bad = 0;
#if LOCAL == 1
  for (ulong i = from; i < end; ++i) bad |= IS_BAD(src[i]);
  parts[parts_offset + first + group] = bad;
#else
  __local int found;
  if (get_local_id(0) == 0) found = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (ulong i = from + get_local_id(0); i < end; i += LOCAL) bad |= IS_BAD(src[i]);
  if (bad) atomic_or(&found, 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) parts[parts_offset + first + group] = (uint)found;
#endif
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void all_finite_join(
    __global const uint* restrict parts, const ulong parts_offset, __global float* restrict dst, const ulong dst_offset,
    const uint count) {
  uint bad = 0;
  for (uint i = (uint)get_local_id(0); i < count; i += LOCAL) bad |= parts[parts_offset + i];
#if LOCAL == 1
  dst[dst_offset] = bad ? 0.0f : 1.0f;
#else
  __local int found;
  if (get_local_id(0) == 0) found = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (bad) atomic_or(&found, 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) dst[dst_offset] = found ? 0.0f : 1.0f;
#endif
}
