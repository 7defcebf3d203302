// Normalisation of tokens in 16 bits over their channels, and its gradient, as ops/row_norm.cl computes them. LANES items
// share a token (shared/lanes.h); each keeps BLOCKS blocks of 8 channels in registers, so that a token is read once.
//   forward  4 bytes a channel; backward 6.
// The text in front may give the first result an epilogue (block_epilogue), and diff_dst a prologue (block_prologue).
#include "ops/norm_rstd.h"
#include "ops/row_norm.h"
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"
#include "shared/lanes.h"
#include "shared/prologue_block.h"

#define COMBINE_SUM_AND_LARGEST(a, b) ((float2)((a).x + (b).x, fmax((a).y, (b).y)))
#define EACH_BLOCK(j) _Pragma("unroll") for (uint j = 0; j < BLOCKS; ++j)
#define IS_BLOCK(j) (LANE + (j)*LANES < blocks)
// No read waits for a condition: past the end it repeats the first block.
#define BLOCK(j) (IS_BLOCK(j) ? LANE + (j)*LANES : 0)
#define READ_TOKEN(values, from) EACH_BLOCK(j) read_block(values[j], from[begin + BLOCK(j)]);
// All reads of the epilogue come before the first write.
#define WRITE_TOKEN(values, to)                                                                       \
  EACH_BLOCK(j) EPILOGUE_BLOCK(values[j], begin + BLOCK(j), row, BLOCK(j) * BLOCK_CHANNELS);          \
  EACH_BLOCK(j) if (IS_BLOCK(j)) to[begin + LANE + j * LANES] = block_of(values[j]);

#define SIZES(NUMBER) NUMBER(uint, rows) NUMBER(uint, blocks)
typedef struct { FORWARD_NUMBERS(NUMBER_MEMBER) } forward_numbers;
typedef struct { BACKWARD_NUMBERS(NUMBER_MEMBER) } backward_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_tokens(
    __global const uint4 *restrict src, __global uint4 *restrict dst, __global float *restrict rstds,
    MEANS_OPERAND const forward_numbers numbers EPILOGUE_PARAMETERS) {
  FORWARD_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(float2, scratch);
  const uint row = (uint)get_group_id(0) * ROWS + ROW;
  const ulong begin = (ulong)min(row, rows - 1) * blocks;
  const float count = (float)(blocks * BLOCK_CHANNELS);
  src += src_offset;
  float x[BLOCKS][BLOCK_CHANNELS];
  READ_TOKEN(x, src)
  float2 sums = (float2)(0.0f);
  EACH_BLOCK(j) if (IS_BLOCK(j)) EACH_CHANNEL(e) {
    sums.x += x[j][e] * share;
    sums.y = fmax(sums.y, fabs(x[j][e]));
  }
  LANES_REDUCE(sums, scratch, COMBINE_SUM_AND_LARGEST);
  const float unit = norm_unit(sums.y, most_unit);
  float middle = 0.0f, rest = 0.0f;
#ifdef CENTRED
  middle = sums.x / (count * share) * unit;
#endif
  float2 deviations = (float2)(0.0f);
  EACH_BLOCK(j) if (IS_BLOCK(j)) EACH_CHANNEL(e) {
    x[j][e] = x[j][e] * unit - middle;
    deviations += (float2)(x[j][e], x[j][e] * x[j][e]);
  }
  LANES_REDUCE(deviations, scratch, COMBINE_SUM);
#ifdef CENTRED
  rest = deviations.x / count;
#endif
  const float variance = deviations.y / count - rest * rest;
  const float rstd = norm_rstd(variance < 0.0f ? 0.0f : variance, unit, epsilon);  // NaN stays
  if (row >= rows) return;
  dst += dst_offset;
  EACH_BLOCK(j) EACH_CHANNEL(e) x[j][e] = (x[j][e] - rest) * rstd;
  WRITE_TOKEN(x, dst)
  if (LANE > 0) return;
  rstds[rstds_offset + row] = rstd * unit;
#ifdef CENTRED
  means[means_offset + row] = (fabs(middle) == INFINITY ? middle : middle + rest) / unit;
#endif
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void row_norm_tokens_backward(
    __global const uint4 *restrict diff_dst, __global const uint4 *restrict dst,
    __global const float *restrict rstds, __global uint4 *restrict diff_src,
    const backward_numbers numbers PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  BACKWARD_NUMBERS(NUMBER_CONSTANT)
  LANES_SCRATCH(float2, scratch);
  const uint row = (uint)get_group_id(0) * ROWS + ROW;
  const ulong begin = (ulong)min(row, rows - 1) * blocks;
  const float count = (float)(blocks * BLOCK_CHANNELS) * share;
  diff_dst += diff_dst_offset;
  dst += dst_offset;
  float d[BLOCKS][BLOCK_CHANNELS], y[BLOCKS][BLOCK_CHANNELS];
  READ_TOKEN(d, diff_dst)
  READ_TOKEN(y, dst)
  EACH_BLOCK(j) PROLOGUE_BLOCK(d[j], begin + BLOCK(j), min(row, rows - 1), BLOCK(j) * BLOCK_CHANNELS);
  float middle = 0.0f, rest = 0.0f;
#ifdef CENTRED
  float2 sums = (float2)(0.0f);
  EACH_BLOCK(j) if (IS_BLOCK(j)) EACH_CHANNEL(e) sums.x += d[j][e] * share;
  LANES_REDUCE(sums, scratch, COMBINE_SUM);
  middle = sums.x / count;
#endif
  float2 products = (float2)(0.0f);
  EACH_BLOCK(j) if (IS_BLOCK(j)) EACH_CHANNEL(e) {
    d[j][e] -= middle;
    products += (float2)(d[j][e] * share, d[j][e] * (y[j][e] * share));
  }
  LANES_REDUCE(products, scratch, COMBINE_SUM);
#ifdef CENTRED
  rest = products.x / count;
#endif
  const float product = products.y / count;
  if (row >= rows) return;
  const float rstd = rstds[rstds_offset + row];
  diff_src += diff_src_offset;
  EACH_BLOCK(j) EACH_CHANNEL(e) d[j][e] = rstd * ((d[j][e] - rest) - y[j][e] * product);
  WRITE_TOKEN(d, diff_src)
}
