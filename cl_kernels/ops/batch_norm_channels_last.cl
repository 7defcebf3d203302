// Batch normalisation of images that lie channels-last, and its gradient. Three launches each way: sums of every part by
// channel, the parts joined (batch_norm_join…), every block rewritten.
//   forward   reads src twice, writes dst: 6 bytes an element of 16 bits
//   backward  reads src and diff_dst twice, writes diff_src: 10 bytes
// A part sums around a mean of the first values of each of its channels, parts are joined around the mean of part 0
// (ops/batch_norm.h), where squares that leave fp32 are summed again with another unit. The order of all sums depends on the
// sizes alone.
// With EPILOGUE_PARAMETERS the text in front gives EPILOGUE_BLOCK, which each block of dst, or diff_src, passes through.
#include "ops/batch_norm_parts.h"

// sums (part, channel): the mean as a pair, Σ (deviation·unit)², unit.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_statistics(
    __global const uint4 *restrict src, ulong src_offset, __global float4 *restrict sums, ulong sums_offset, SIZES,
    float epsilon) {
  __local float scratch[SCRATCH(2)];
  __local float4 found[WIDE];
  __local uint again;
  PLACE;
  batch_norm_part(found, src + src_offset, rows, blocks, part, epsilon, scratch, &again, 0);
  sums += sums_offset + (ulong)get_group_id(1) * channels;
  EACH_WIDE(c) {
    const uint own = first_block * BLOCK_CHANNELS + c;
    if (own < channels) sums[own] = found[c];
  }
}

// factors (channel): mean, what (src − mean) is multiplied with, what is added.
__kernel __attribute__((reqd_work_group_size(JOINERS, 1, 1))) void batch_norm_join(
    __global const float4 *restrict sums, ulong sums_offset, __global const float *restrict scale, ulong scale_offset,
    __global const float *restrict shift, ulong shift_offset, __global float *restrict means, ulong means_offset,
    __global float *restrict variances, ulong variances_offset, __global float4 *restrict factors, ulong factors_offset,
    uint rows, uint channels, uint part, uint parts, float epsilon) {
  __local float2 scratch[JOINERS];
  const uint channel = (uint)get_group_id(0), item = (uint)get_local_id(0);
  sums += sums_offset + channel;
  const float4 first = sums[0];
  float unit = 1.0f;
  float2 total;
  for (uint time = 0;; ++time) {
    float2 own = (float2)(0.0f);
    for (uint p = item; p < parts; p += JOINERS) {
      const float4 other = sums[(ulong)p * channels];
      own += batch_norm_joined_part(other, first, (float)min(part, rows - p * part), unit);
      if (time == 0 && other.w != 1.0f) own.y = NAN;  // not summed in this unit
    }
    total = joined(own, scratch);
    if (total.y == total.y || time == 1) break;
    unit = first.w;
    for (uint p = 1; p < parts; ++p) unit = fmin(unit, sums[(ulong)p * channels].w);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item != 0) return;
  const norm_factors by = batch_norm_factors(first, total, (float)rows, unit, scale[scale_offset + channel],
                                             shift[shift_offset + channel], epsilon);
  means[means_offset + channel] = by.mean;
  variances[variances_offset + channel] = by.variance;
  factors[factors_offset + channel] = (float4)(by.mean, by.factor, by.added, 0.0f);
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_forward(
    __global const uint4 *src, ulong src_offset, __global const float4 *restrict factors, ulong factors_offset,
    __global uint4 *dst, ulong dst_offset, SIZES EPILOGUE_PARAMETERS) {
  PLACE_BACKWARDS;
  src += src_offset;
  dst += dst_offset;
  float4 factor[BLOCK_CHANNELS];
  EACH_CHANNEL(e) factor[e] = factors[factors_offset + channel + e];
  READ_FIRST(next, src);
  TURNS {
    READ_NEXT(x, next, src)
    NORMALISE_TURN(x, factor, dst);
  }
}

// sums (part, channel, 2): as batch_norm_rebased takes them, then the base.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward_sums(
    __global const uint4 *restrict src, ulong src_offset, __global const uint4 *restrict diff_dst, ulong diff_dst_offset,
    __global const float *restrict means, ulong means_offset, __global const float *restrict variances,
    ulong variances_offset, __global float4 *restrict sums, ulong sums_offset, SIZES, float epsilon) {
  __local float scratch[SCRATCH(SUMS_AT_ONCE)];
  __local float4 found[WIDE];
  __local float bases[WIDE];
  PLACE;
  batch_norm_part_backward(found, bases, src + src_offset, diff_dst + diff_dst_offset, means + means_offset,
                           variances + variances_offset, rows, blocks, part, epsilon, scratch, 0, 0);
  sums += sums_offset + (ulong)get_group_id(1) * channels * 2;
  EACH_WIDE(c) {
    const uint own = first_block * BLOCK_CHANNELS + c;
    if (own >= channels) continue;
    sums[2 * own] = found[c];
    sums[2 * own + 1] = (float4)(bases[c], 0.0f, 0.0f, 0.0f);
  }
}

// With x̂ = (src − mean)·r, r = 1/√(variance + ε): diff_shift = Σ diff_dst, diff_scale = Σ diff_dst·x̂,
// diff_src = scale·r·(diff_dst − diff_shift/count − x̂·diff_scale/count).
// factors (channel): mean, scale·r, diff_shift/count, r·diff_scale/count.
__kernel __attribute__((reqd_work_group_size(JOINERS, 1, 1))) void batch_norm_join_backward(
    __global const float4 *restrict sums, ulong sums_offset, __global const float *restrict scale, ulong scale_offset,
    __global const float *restrict means, ulong means_offset, __global const float *restrict variances,
    ulong variances_offset, __global float *restrict diff_scale, ulong diff_scale_offset,
    __global float *restrict diff_shift, ulong diff_shift_offset, __global float4 *restrict factors, ulong factors_offset,
    uint rows, uint channels, uint part, uint parts, float epsilon) {
  __local float2 scratch[JOINERS];
  const uint channel = (uint)get_group_id(0), item = (uint)get_local_id(0);
  sums += sums_offset + 2 * channel;
  const float base = sums[1].x, variance = variances[variances_offset + channel];
  float4 own = (float4)(0.0f);
  for (uint p = item; p < parts; p += JOINERS) {
    __global const float4 *const other = sums + (ulong)p * channels * 2;
    own += batch_norm_rebased(other[0], (float)min(part, rows - p * part), other[1].x - base);
  }
  const float2 of_diff = joined(own.xy, scratch);
  barrier(CLK_LOCAL_MEM_FENCE);
  const float2 of_src = joined(own.zw, scratch);
  if (item != 0) return;
  const gradient_factors by = batch_norm_gradient_factors(
      (float4)(of_diff.x, of_diff.y, of_src.x, of_src.y), base, (float)rows, variance, batch_norm_unit(variance, epsilon),
      scale[scale_offset + channel], epsilon);
  diff_scale[diff_scale_offset + channel] = by.diff_scale;
  diff_shift[diff_shift_offset + channel] = by.diff_shift;
  factors[factors_offset + channel] =
      (float4)(means[means_offset + channel], by.factor, by.diff_mean - by.rest, by.slope);
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward(
    __global const uint4 *src, ulong src_offset, __global const uint4 *diff_dst, ulong diff_dst_offset,
    __global const float4 *restrict factors, ulong factors_offset, __global uint4 *diff_src, ulong diff_src_offset,
    SIZES EPILOGUE_PARAMETERS) {
  PLACE_BACKWARDS;
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
  float4 factor[BLOCK_CHANNELS];
  EACH_CHANNEL(e) factor[e] = factors[factors_offset + channel + e];
  READ_FIRST(next_x, src);
  READ_FIRST(next_d, diff_dst);
  TURNS {
    READ_NEXT(x, next_x, src)
    READ_NEXT(d, next_d, diff_dst)
    DIFFERENTIATE_TURN(x, d, factor, diff_src);
  }
}
