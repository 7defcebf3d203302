// The scales that SCALED operands of gemm/hopper/tma.cl are packed with. gemm/hopper/measure.cl makes a table of their `Mixture` and
// the inverse scales of the left, then of the right operand, powers of two. Where the mixture says that the product's
// factors are too mixed in magnitude for fp16, its operands are packed as SPLIT, without scales.
#ifndef CONCORD_NVIDIA_SCALES_H
#define CONCORD_NVIDIA_SCALES_H

// How many solid numbers each line of an operand has at least, and how many its lines want of the other operand's at
// most: bits of floats, which order as these do.
typedef struct {
  uint left_solid, left_wanted, right_solid, right_wanted;
} Mixture;

static inline bool is_mixed_product(__global const Mixture *mixture) {
  const uint4 m = *(__global const uint4 *)mixture;
  return m.y > m.z || m.w > m.x;
}

// Of a power of two.
static inline float reciprocal(float power) { return as_float(0x7f000000u - as_uint(power)); }

// An operand's inverse scales and which of them a line has: its batch's, and of these one, or one for each line or
// image.
#define SCALE_OPERAND(name) __global const float *restrict name##_inverse
#define SCALE_MEMORY(MEMORY, name) MEMORY(const float *restrict, name##_inverse)
#define SCALE_NUMBERS(NUMBER, name) \
  NUMBER(ulong, name##_inverse_offset) NUMBER(uint, name##_batch_scales) NUMBER(uint, name##_scale_step)
#define SCALE_INDEX(name, batch, line) ((batch)*name##_batch_scales + (line)*name##_scale_step)

#endif
