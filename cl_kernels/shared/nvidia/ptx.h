// The PTX instructions that kernels for NVIDIA GPUs use from compute capability 8.0 on: copies to local memory past the
// registers, products of the matrix units in tf32, the exchange between lanes of a warp, and powers of two.
#ifndef CONCORD_PTX_H
#define CONCORD_PTX_H

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

// Four or sixteen bytes from global to local memory, zeros where not wanted; done when its group has been waited for.
#define COPY_1(dst, src, wanted)                                                                         \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((uint)(size_t)(dst)), "l"(src),       \
               "r"((wanted) ? 4 : 0) : "memory")
#define COPY_4(dst, src, wanted)                                                                         \
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(size_t)(dst)), "l"(src),      \
               "r"((wanted) ? 16 : 0) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_group 0;" ::: "memory")

// c += a·b of 16 x 8 x 8 values; MMA_FIRST c = a·b. With quad = lane % 4 and row = lane / 4 a lane holds
//   c[e]: row + 8·(e / 2), column 2·quad + e % 2
//   a[e]: row + 8·(e % 2), k = quad + 4·(e / 2)
//   b[e]: k = quad + 4·e, column row
#define MMA_SHAPE "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#define MMA(c, a, b)                                                                     \
  asm volatile(MMA_SHAPE " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"            \
               : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                   \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
#define MMA_FIRST(c, a, b)                                                               \
  asm volatile(MMA_SHAPE " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10};"         \
               : "=f"((c)[0]), "=f"((c)[1]), "=f"((c)[2]), "=f"((c)[3])                   \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]), "f"(0.0f))

// c = a·b of 16 x 8 x 16 bf16 numbers, two a register, the one of smaller k in the low bits: a[e] has row + 8·(e % 2) and
// k = 2·quad + 8·(e / 2) and the next, b[e] the same k and column row. The nearest bf16 numbers of two floats' bits.
#define MMA_BF16_FIRST(c, a, b)                                                          \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"                     \
               " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10};"                 \
               : "=f"((c)[0]), "=f"((c)[1]), "=f"((c)[2]), "=f"((c)[3])                  \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]), "f"(0.0f))
#define PACK_BF16(pair, low, high) \
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(as_float(high)), "f"(as_float(low)))

// What the lane whose number differs in the bits `mask` holds.
static inline uint lane_xor(const uint value, const uint mask) {
  uint other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(other) : "r"(value), "r"(mask));
  return other;
}

// Lanes whose numbers differ in the bit `mask` exchange a word: the one with the bit keeps `high` and gets the other's, as
// `low`; the other keeps `low`.
#define EXCHANGE_WORDS(low, high, is_high, mask)               \
  {                                                            \
    const uint other = lane_xor((is_high) ? low : high, mask); \
    low = (is_high) ? other : low;                             \
    high = (is_high) ? high : other;                           \
  }

// Within 2^-22 of 2^x, nearer than OpenCL asks of exp2; 0 below the normal numbers.
static inline float power_of_two(const float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

#endif
