// Sums over the memory of several GPUs of NVIDIA, which read and write each other's memory. The host puts in front:
//   RANKS, RANK       how many GPUs, and the number of this one
//   PEER_PARAMETERS   the memory of all ranks: __global float4 *p0, __global float4 *p1, …
//   ADD_PEERS(i)      sum += p0[i]; sum += p1[i]; …  in the order of the ranks
//   STORE_PEERS(i)    p0[i] = sum; p1[i] = sum; …
//   GROUP             items of a work-group of sum_part
//   AT_ONCE           sums of an item whose reads are on their way together
//   FLAG_PARAMETERS   the flags of all ranks, __global uint *f0, …; FLAGS are their names
// Flag r of a rank is the number of the last meeting that rank r has come to.

// Flags of different ranks lie in different lines of the cache.
#define FLAG_STRIDE 32

static inline ulong nanoseconds_now(void) {
  ulong now;
  __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Stores after all that this GPU has written, for other GPUs to see.
static inline void store_for_peers(__global uint *flag, const uint value) {
  __asm__ volatile("fence.acq_rel.sys;\n\tst.release.sys.global.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

static inline uint load_of_peers(__global const uint *flag) {
  uint value;
  __asm__ volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// Work-item r tells rank r that this rank has come to meeting `turn`, and waits until rank r has. After `patience`
// nanoseconds, `lost` becomes the number of the rank that did not come, plus 1, and later meetings wait for nobody.
static inline void meet_others(FLAG_PARAMETERS, const uint turn, const ulong patience, volatile __global uint *lost) {
  __global uint *const flags[RANKS] = {FLAGS};
  const uint other = (uint)get_global_id(0);
  store_for_peers(flags[other] + RANK * FLAG_STRIDE, turn);
  const ulong begin = nanoseconds_now();
  while ((int)(load_of_peers(flags[RANK] + other * FLAG_STRIDE) - turn) < 0) {
    if (*lost != 0) return;
    if (nanoseconds_now() - begin > patience) {
      atomic_cmpxchg(lost, 0u, other + 1u);
      return;
    }
  }
}

__kernel void meet(FLAG_PARAMETERS, const uint turn, const ulong patience, volatile __global uint *lost) {
  meet_others(FLAGS, turn, patience, lost);
}

static inline void set_nan(__global float4 *vectors, const ulong count) {
  for (ulong i = get_global_id(0); i < count; i += get_global_size(0)) vectors[i] = (float4)(NAN);
}

// After sum_part. A rank that did not come may not have stored its part of the sums: the vectors [first, first + count)
// of this rank are NaN then.
__kernel void meet_after(FLAG_PARAMETERS, const uint turn, const ulong patience, volatile __global uint *lost,
                         __global float4 *own, const ulong first, const ulong count) {
  meet_others(FLAGS, turn, patience, lost);
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (*lost != 0) set_nan(own + first, count);
}

// This rank's part of the vectors [first, first + count): their sums, stored at all ranks. The first `started` sums start
// from `start`. With a lost rank, the result of this rank is NaN.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sum_part(
    PEER_PARAMETERS, __global const float4 *restrict start, const ulong started, const ulong first, const ulong count,
    __global const uint *restrict lost) {
  if (*lost != 0) {
    set_nan(OWN + first, count);
    return;
  }
  const ulong each = (count + RANKS - 1) / RANKS, step = get_global_size(0);
  const ulong begin = min(count, RANK * each), end = min(count, begin + each);
  for (ulong i = begin + get_global_id(0); i < end; i += AT_ONCE * step) {
    float4 sums[AT_ONCE];
#pragma unroll
    for (uint k = 0; k < AT_ONCE; ++k) {
      const ulong at = min(i + k * step, end - 1);  // past the end once more the last: no read waits for a branch
      float4 sum = at < started ? start[at] : (float4)(0.0f);
      ADD_PEERS(first + at)
      sums[k] = sum;
    }
#pragma unroll
    for (uint k = 0; k < AT_ONCE; ++k) {
      const ulong at = i + k * step;
      const float4 sum = sums[k];
      if (at < end) {
        STORE_PEERS(first + at)
      }
    }
  }
}
