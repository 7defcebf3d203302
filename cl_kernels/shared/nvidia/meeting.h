// Meetings of work-groups that are all on the device at once, on NVIDIA's GPUs. A number in global memory counts those that
// have come; it only grows, and meetings_begin sets it to 0 before the first launch.
#ifndef CONCORD_NVIDIA_MEETING_H
#define CONCORD_NVIDIA_MEETING_H

__kernel void meetings_begin(__global uint *meetings, ulong meetings_offset) {
  meetings[meetings_offset + get_global_id(0)] = 0;
}

// A wait of more tries, some seconds, is given up: the results are NaN, and nobody hangs.
#define MOST_MEETING_TRIES (1u << 24)

// One item of each of `count` groups comes to the meeting, one of them as the first, and waits for the other groups, whose
// earlier writes it then sees. Each meeting counts up by a power of two. Returns 0 if some did not come.
static inline int have_all_come(__global uint *meeting, const uint count, const int is_first) {
  uint whole = 1, before;
  while (whole < count) whole *= 2;
  const uint own = is_first ? whole - count + 1 : 1;
  asm volatile("fence.acq_rel.gpu;\n\tatom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before) : "l"(meeting), "r"(own) : "memory");
  const uint target = (before & ~(whole - 1)) + whole;
  for (uint tries = 0; tries < MOST_MEETING_TRIES; ++tries) {
    uint now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(meeting) : "memory");
    if ((int)(now - target) >= 0) return 1;
  }
  return 0;
}

// Reads what another group has written in this launch.
static inline float4 shown(__global const float4 *from) {
  float4 sums;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(sums.x), "=f"(sums.y), "=f"(sums.z), "=f"(sums.w) : "l"(from));
  return sums;
}
static inline float shown_one(__global const float *from) {
  float sum;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(sum) : "l"(from));
  return sum;
}

#endif
