// The matrix units of GPUs other than NVIDIA's as gemm/wave.cl sees them: the lanes of a wave (a sub-group) multiply a
// fragment of A by one of B. Definitions: UNITS, one of those below, and PRECISION; NUMBERS_F16 with FP16.
//   MFMA           AMD CDNA, gfx908 to gfx950; waves of 64; FP32 as it is, FP16, and BF16 from gfx90a on
//   WMMA, WMMA_12  AMD RDNA 3 and 4, gfx11 and gfx12; waves of 32; FP16 and BF16
//   DPAS_8, DPAS_16  Intel, cl_intel_subgroup_matrix_multiply_accumulate in sub-groups of 8 (Xe-HPG) or 16; FP16 and BF16
//   EMULATED       beside one of these: its instruction is taken apart by gemm/wave/emulated.h; for tests
//
// In local memory a tile of an operand lies in chunks of 16 bytes: CHUNK neighbours along k of one line (a row of A, a
// column of B), at CHUNK_PLACE. A step multiplies STEP_CHUNKS chunks of each line. Which k goes to which place in a register
// is free where A and B agree, as sums do not know the order of k.
//
// A units' file gives
//   LANES, FRAGMENT_M, FRAGMENT_N, STEP_CHUNKS, SUMS (numbers of C that a lane holds), sums_t, left_t, right_t
//   LEFT_FRAGMENT(tile, lines, chunk, line), RIGHT_FRAGMENT   what a lane reads of the fragment from this chunk and line on
//                                  of a tile of `lines` lines
//   SUM_ROW(e), SUM_COLUMN         which number of the fragment of C the lane's e-th is
//   MULTIPLY(sums, left, right)    adds a step's products to sums
// in terms of `lane`, and a_registers, b_registers and INSTRUCTION(sums, a, b), which is one instruction.
#ifndef CONCORD_WAVE_UNITS_H
#define CONCORD_WAVE_UNITS_H

#define MFMA 1
#define WMMA 2
#define WMMA_12 3
#define DPAS_8 4
#define DPAS_16 5

#define FP32 0
#define BF16 2
#define FP16 3

#if PRECISION == FP32
#define CHUNK 4
#else
#define CHUNK 8
#endif

// Of chunk number `chunk` of line begin + i, begin a multiple of 8. Neighbours along k and neighbouring lines lie in different
// banks, without room between them.
#define CHUNK_PLACE(lines, chunk, begin, i) ((chunk) * (lines) + (begin) + ((i) ^ (chunk) % 4 * 2))

#ifdef EMULATED
#define EACH(i, count) _Pragma("nounroll") for (uint i = 0; i < (count); ++i)
#else
#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)
#endif

// Oclgrind 21.10 does not survive (uint8)(low, high).
static inline uint8 joined(uint4 low, uint4 high) {
  return (uint8)(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
}

#include "gemm/wave/mfma.h"
#include "gemm/wave/wmma.h"
#include "gemm/wave/dpas.h"
#include "gemm/wave/emulated.h"

#if (UNITS == DPAS_8 || UNITS == DPAS_16) && !defined(EMULATED)
#define WAVE_ATTRIBUTE __attribute__((intel_reqd_sub_group_size(LANES)))
#define WAVE_OF(t) ((uint)get_sub_group_id())
#define LANE_OF(t) ((uint)get_sub_group_local_id())
#else
#define WAVE_ATTRIBUTE
#define WAVE_OF(t) ((t) / LANES)
#define LANE_OF(t) ((t) % LANES)
#endif

#endif
