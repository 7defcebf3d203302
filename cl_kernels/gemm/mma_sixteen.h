// Products of sixteen values of k on the matrix units of NVIDIA GPUs by warps (mma.sync). A warp has M_TILES x N_TILES tiles
// of 16 x 8 sums; with quad = lane % 4 and row = lane / 4 a lane holds of each
//   sums[i][j][e]         row row + 8·(e / 2), column 2·quad + e % 2
//   LEFT(i, q, below)     bits of the float of row row + 8·below and the q-th of its four values of k
//   right[j][q]           bits of the float of column row and the q-th of its four values of k
// Which four of the sixteen values of k a quad has does not matter as long as both operands agree.
//
// PRECISION is SPLIT: fp32 as the sum of three tf32 products, 22 bits of each factor (Ootomo and Yokota, "Recovering single
// precision accuracy from Tensor Cores", 2022); sums of 16 are added up outside the matrix unit, which rounds toward
// zero. Or TF32, BF16, FP16: one product of rounded factors.
#ifndef CONCORD_GEMM_MMA_SIXTEEN_H
#define CONCORD_GEMM_MMA_SIXTEEN_H

#include "shared/nvidia/units.h"

#if PRECISION == BF16
#define MMA_SHAPE "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#elif PRECISION == FP16
#define MMA_SHAPE "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#else
#define MMA_SHAPE "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#endif
#define MMA(c, a, b)                                                                     \
  asm volatile(MMA_SHAPE " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"            \
               : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                   \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
#define MMA_FIRST(c, a, b)                                                               \
  asm volatile(MMA_SHAPE " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10};"         \
               : "=f"((c)[0]), "=f"((c)[1]), "=f"((c)[2]), "=f"((c)[3])                   \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]), "f"(0.0f))

// The nearest tf32, ties away from zero; what is left of x, of which the unit takes the upper bits. A NaN stays one in what is
// left (an addition to its bits could make it a small number).
#define HIGH(x) (((x) + 0x1000u) & 0xffffe000u)
#define LOW(x, high) as_uint(as_float(x) - as_float(high))

#if PRECISION == BF16 || PRECISION == FP16
#define ADD_SIXTEEN(sums, LEFT, right)                                      \
  {                                                                         \
    uint packed[N_TILES][2];                                                \
    EACH(j, N_TILES) {                                                      \
      PACK(packed[j][0], as_float((right)[j][0]), as_float((right)[j][1])); \
      PACK(packed[j][1], as_float((right)[j][2]), as_float((right)[j][3])); \
    }                                                                       \
    EACH(i, M_TILES) {                                                      \
      uint left[4];                                                         \
      PACK(left[0], as_float(LEFT(i, 0, 0)), as_float(LEFT(i, 1, 0)));      \
      PACK(left[1], as_float(LEFT(i, 0, 1)), as_float(LEFT(i, 1, 1)));      \
      PACK(left[2], as_float(LEFT(i, 2, 0)), as_float(LEFT(i, 3, 0)));      \
      PACK(left[3], as_float(LEFT(i, 2, 1)), as_float(LEFT(i, 3, 1)));      \
      EACH(j, N_TILES) MMA((sums)[i][j], left, packed[j]);                  \
    }                                                                       \
  }
#elif PRECISION == TF32
#define ADD_SIXTEEN(sums, LEFT, right)                                                    \
  {                                                                                       \
    uint rounded[N_TILES][4];                                                             \
    EACH(j, N_TILES) EACH(q, 4) ROUND(rounded[j][q], as_float((right)[j][q]));            \
    EACH(i, M_TILES) EACH(lower, 2) {                                                     \
      uint left[4];                                                                       \
      EACH(q, 4) ROUND(left[q], as_float(LEFT(i, 2 * lower + q / 2, q % 2)));             \
      EACH(j, N_TILES) MMA((sums)[i][j], left, rounded[j] + 2 * lower);                   \
    }                                                                                     \
  }
#else
#define ADD_SIXTEEN(sums, LEFT, right)                                   \
  {                                                                      \
    uint right_high[N_TILES][4], right_low[N_TILES][4];                  \
    EACH(j, N_TILES) EACH(q, 4) {                                        \
      right_high[j][q] = HIGH((right)[j][q]);                            \
      right_low[j][q] = LOW((right)[j][q], right_high[j][q]);            \
    }                                                                    \
    EACH(i, M_TILES) {                                                   \
      uint left[8], left_low[8];                                         \
      EACH(q, 8) {                                                       \
        const uint x = LEFT(i, q / 2, q % 2);                            \
        left[q] = HIGH(x);                                               \
        left_low[q] = LOW(x, left[q]);                                   \
      }                                                                  \
      float part[N_TILES][4];                                            \
      EACH(j, N_TILES) MMA_FIRST(part[j], left_low, right_high[j]);      \
      EACH(j, N_TILES) MMA(part[j], left_low + 4, right_high[j] + 2);    \
      EACH(j, N_TILES) MMA(part[j], left, right_low[j]);                 \
      EACH(j, N_TILES) MMA(part[j], left + 4, right_low[j] + 2);         \
      EACH(j, N_TILES) MMA(part[j], left, right_high[j]);                \
      EACH(j, N_TILES) MMA(part[j], left + 4, right_high[j] + 2);        \
      EACH(j, N_TILES) EACH(e, 4) (sums)[i][j][e] += part[j][e];         \
    }                                                                    \
  }
#endif

#endif
