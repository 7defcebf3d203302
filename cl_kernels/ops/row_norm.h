// The numbers of the kernels that normalise rows, of row_norm.cl and row_norm_tokens.cl; SIZES is their file's.
#ifndef CONCORD_ROW_NORM_H
#define CONCORD_ROW_NORM_H

#include "shared/numbers.h"

#ifdef CENTRED
#define MEANS_OPERAND __global float *restrict means,
#define MEANS_NUMBERS(NUMBER) NUMBER(ulong, means_offset)
#else
#define MEANS_OPERAND
#define MEANS_NUMBERS(NUMBER)
#endif
#define FORWARD_NUMBERS(NUMBER)                                                                         \
  NUMBER(ulong, src_offset) NUMBER(ulong, dst_offset) NUMBER(ulong, rstds_offset) MEANS_NUMBERS(NUMBER) \
  SIZES(NUMBER) NUMBER(float, share) NUMBER(float, epsilon) NUMBER(float, most_unit)
#define BACKWARD_NUMBERS(NUMBER)                                                       \
  NUMBER(ulong, diff_dst_offset) NUMBER(ulong, dst_offset) NUMBER(ulong, rstds_offset) \
  NUMBER(ulong, diff_src_offset) SIZES(NUMBER) NUMBER(float, share)

#endif
