// What the kernels for NVIDIA's matrix units share: how numbers are made that the units multiply. A kernel's file or its
// definitions give PRECISION, one of
//   SPLIT        fp32 as the sum of three bf16 numbers, 24 bits: products of fp32 as six products of bf16
//   TF32, BF16, FP16   the nearest such number
//   SCALED       a power of two times the number as the sum of FP16_PLANES fp16 numbers: 22 bits in two, 11 in one, as
//                many as tf32 has; where magnitudes are too mixed for it (gemm/hopper/measure.cl) as SPLIT
#ifndef CONCORD_NVIDIA_UNITS_H
#define CONCORD_NVIDIA_UNITS_H

#define SPLIT 0
#define TF32 1
#define BF16 2
#define FP16 3
#define SCALED 4

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

// Two floats as the unit's 16-bit numbers; one float as the nearest tf32.
#define PACK_FP16(to, low, high) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#if PRECISION == FP16
#define PACK PACK_FP16
#else
#define PACK(to, low, high) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#endif
#define UNPACK_FP16(low, high, from)                                                                     \
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }" \
      : "=f"(low), "=f"(high) : "r"(from))
#define ROUND(to, x) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(to) : "f"(x))

// Planes: how many numbers stand for one, and how many of them fill 16 bytes.
#if PRECISION == SPLIT || PRECISION == SCALED
#define PLANES 3
#else
#define PLANES 1
#endif
#if PRECISION == TF32
#define BLOCK 4
#else
#define BLOCK 8
#endif

// Writes BLOCK floats as numbers of the unit, plane by plane, planes `plane_chunks` uint4 apart.
static inline void store_planes(__global uint4 *to, ulong plane_chunks, float *values) {
#if PRECISION == TF32
  uint rounded[4];
  EACH(i, 4) ROUND(rounded[i], values[i]);
  *to = (uint4)(rounded[0], rounded[1], rounded[2], rounded[3]);
#else
  EACH(plane, PLANES) {
    uint pairs[4];
    EACH(i, 4) {
      PACK(pairs[i], values[2 * i], values[2 * i + 1]);
#if PLANES > 1
      values[2 * i] -= as_float(pairs[i] << 16);
      values[2 * i + 1] -= as_float(pairs[i] & 0xffff0000u);
#endif
    }
    to[plane * plane_chunks] = (uint4)(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
#endif
}

#if PRECISION == SCALED
static inline void store_scaled(__global uint4 *to, ulong plane_chunks, float *values, float scale) {
  EACH(i, BLOCK) values[i] *= scale;
  EACH(plane, FP16_PLANES) {
    uint pairs[4];
    EACH(i, 4) {
      PACK_FP16(pairs[i], values[2 * i], values[2 * i + 1]);
#if FP16_PLANES > 1
      float low, high;
      UNPACK_FP16(low, high, pairs[i]);
      values[2 * i] -= low;
      values[2 * i + 1] -= high;
#endif
    }
    to[plane * plane_chunks] = (uint4)(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}
#endif

#endif
