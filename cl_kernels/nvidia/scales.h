// The scales that SCALED operands of gemm_tma.cl are packed with. planes_measure.cl makes a table of SCALE_FLAGS words
// and the inverse scales of the left, then of the right operand, powers of two. A word that is not 0 says that the
// product's factors are too mixed in magnitude for fp16: its operands are then packed as SPLIT, without scales.
#ifndef CONCORD_NVIDIA_SCALES_H
#define CONCORD_NVIDIA_SCALES_H

#define SCALE_FLAGS 32

static inline bool is_mixed_product(__global const uint4 *flags) {
  uint any = 0;
#pragma unroll
  for (uint i = 0; i < SCALE_FLAGS / 4; ++i) {
    const uint4 four = flags[i];
    any |= four.x | four.y | four.z | four.w;
  }
  return any != 0;
}

// Of a power of two.
static inline float reciprocal(float power) { return as_float(0x7f000000u - as_uint(power)); }

// An operand's inverse scales and which of them a line has: its batch's, and of these one, or one for each line or
// image.
#define SCALE_OPERAND(name)                                                                                   \
  __global const float *restrict name##_inverse, ulong name##_inverse_offset, uint name##_batch_scales, \
      uint name##_scale_step
#define SCALE_INDEX(name, batch, line) ((batch)*name##_batch_scales + (line)*name##_scale_step)

#endif
