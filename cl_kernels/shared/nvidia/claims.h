// Works of groups that stay on an NVIDIA GPU until none is left. A group begins with works that its number gives it, and
// claims others as it becomes free: one that begins late, because another kernel has its unit, delays only what it was given.
#ifndef CONCORD_NVIDIA_CLAIMS_H
#define CONCORD_NVIDIA_CLAIMS_H

// A number in global memory, first 0, counts the claims: one for each work, whoever does it. The last one makes it 0 again.
// The next of `works`, the first `given` of which are not claimed; a number from `works` on where none is left.
static inline uint claimed_work(__global const uchar *claims, const uint works, const uint given) {
  uint before;
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(claims), "r"(works - 1) : "memory");
  return given + before;
}

// The item that orders a group's copies claims for all. It says what comes behind a work, in known_works[turn %
// KNOWN_WORKS] for the turn behind, before it orders the last copies of the work. It is ahead of the others by as many
// works as there are stages of copies, at most.
#define KNOWN_WORKS 8
#if STAGES > KNOWN_WORKS - 2
#error "works would be overwritten before they are known"
#endif

#endif
