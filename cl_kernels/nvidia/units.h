// What the kernels for NVIDIA's matrix units share: how numbers are made that the units multiply. A kernel's file or its
// definitions give PRECISION, one of
//   SPLIT        fp32 as the sum of three bf16 numbers, 24 bits: products of fp32 as six products of bf16
//   TF32, BF16, FP16   the nearest such number
#ifndef CONCORD_NVIDIA_UNITS_H
#define CONCORD_NVIDIA_UNITS_H

#define SPLIT 0
#define TF32 1
#define BF16 2
#define FP16 3

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

// Two floats as the unit's 16-bit numbers; one float as the nearest tf32.
#if PRECISION == FP16
#define PACK(to, low, high) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#else
#define PACK(to, low, high) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#endif
#define ROUND(to, x) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(to) : "f"(x))

// Planes: how many numbers stand for one, and how many of them fill 16 bytes.
#if PRECISION == SPLIT
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

#endif
