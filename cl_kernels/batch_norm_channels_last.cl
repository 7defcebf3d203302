// Batch normalisation of images that lie channels-last, and its gradient. Three launches each way: sums of every part by
// channel, the parts joined (batch_norm_join…), every block rewritten.
//   forward   reads src twice, writes dst: 6 bytes an element of 16 bits
//   backward  reads src and diff_dst twice, writes diff_src: 10 bytes
// A part sums around the first value of each of its channels, parts are joined around the mean of part 0 as in Chan, Golub
// and LeVeque ("Updating Formulae and a Pairwise Algorithm …", 1979). The order of all sums depends on the sizes alone.
// With EPILOGUE_PARAMETERS the text in front gives EPILOGUE_BLOCK, which each block of dst passes through.
#include "channels_last_rows.h"
#include "epilogue_block.h"

// sums (part, channel): mean and sum of centred squares.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_statistics(
    __global const uint4 *restrict src, ulong src_offset, __global float2 *restrict sums, ulong sums_offset, SIZES) {
  __local float scratch[BLOCK_CHANNELS * THREADS];
  PLACE;
  src += src_offset;
  float shift[BLOCK_CHANNELS], sum[BLOCK_CHANNELS], squares[BLOCK_CHANNELS];
  read_block(shift, src[(ulong)begin * blocks + block]);
  EACH_CHANNEL(e) sum[e] = squares[e] = 0.0f;
  TURNS {
    uint4 x[UNROLL];
    EACH_TURN(k) x[k] = src[AT(k)];
    EACH_TURN(k) {
      float values[BLOCK_CHANNELS];
      read_block(values, x[k]);
      EACH_CHANNEL(e) {
        const float centred = IS_INSIDE(k) ? values[e] - shift[e] : 0.0f;
        sum[e] += centred;
        squares[e] += centred * centred;
      }
    }
  }
  sums += sums_offset + (ulong)get_group_id(1) * channels + channel;
  sum_rows(sum, scratch);
  sum_rows(squares, scratch);
  if (item < LANES && is_block) {
    EACH_CHANNEL(e) {
      const float offset = sum[e] / (float)(end - begin);
      sums[e] = (float2)(shift[e] + offset, fmax(squares[e] - offset * sum[e], 0.0f));
    }
  }
}

// factors (channel): mean, what (src − mean) is multiplied with, what is added.
__kernel __attribute__((reqd_work_group_size(JOINERS, 1, 1))) void batch_norm_join(
    __global const float2 *restrict sums, ulong sums_offset, __global const float *restrict scale, ulong scale_offset,
    __global const float *restrict shift, ulong shift_offset, __global float *restrict means, ulong means_offset,
    __global float *restrict variances, ulong variances_offset, __global float4 *restrict factors, ulong factors_offset,
    uint rows, uint channels, uint part, uint parts, float epsilon) {
  __local float2 scratch[JOINERS];
  const uint channel = (uint)get_group_id(0), item = (uint)get_local_id(0);
  sums += sums_offset + channel;
  const float base = sums[0].x;
  float2 own = (float2)(0.0f);
  for (uint p = item; p < parts; p += JOINERS) {
    const float2 other = sums[(ulong)p * channels];
    const float difference = other.x - base, count = (float)min(part, rows - p * part);
    own += (float2)(count * difference, other.y + count * difference * difference);
  }
  const float2 total = joined(own, scratch);
  if (item != 0) return;
  const float offset = total.x / (float)rows, mean = base + offset;
  const float variance = fmax(total.y - offset * total.x, 0.0f) / (float)rows;
  means[means_offset + channel] = mean;
  variances[variances_offset + channel] = variance;
  factors[factors_offset + channel] =
      (float4)(mean, scale[scale_offset + channel] / sqrt(variance + epsilon), shift[shift_offset + channel], 0.0f);
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_forward(
    __global const uint4 *src, ulong src_offset, __global const float4 *restrict factors, ulong factors_offset,
    __global uint4 *dst, ulong dst_offset, SIZES EPILOGUE_PARAMETERS) {
  PLACE;
  src += src_offset;
  dst += dst_offset;
  float4 factor[BLOCK_CHANNELS];
  EACH_CHANNEL(e) factor[e] = factors[factors_offset + channel + e];
  TURNS {
    uint4 x[UNROLL];
    EACH_TURN(k) x[k] = src[AT(k)];
    EACH_TURN(k) {
      float values[BLOCK_CHANNELS];
      read_block(values, x[k]);
      EACH_CHANNEL(e) values[e] = (values[e] - factor[e].x) * factor[e].y + factor[e].z;
      EPILOGUE_BLOCK(values, AT(k), min(ROW(k), end - 1) / places, channel);
      x[k] = block_of(values);
    }
    EACH_TURN(k) if (IS_INSIDE(k) && is_block) dst[AT(k)] = x[k];
  }
}

// sums (part, channel): Σ diff_dst and Σ diff_dst·(src − mean).
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward_sums(
    __global const uint4 *restrict src, ulong src_offset, __global const uint4 *restrict diff_dst, ulong diff_dst_offset,
    __global const float *restrict means, ulong means_offset, __global float2 *restrict sums, ulong sums_offset, SIZES) {
  __local float scratch[BLOCK_CHANNELS * THREADS];
  PLACE;
  src += src_offset;
  diff_dst += diff_dst_offset;
  float mean[BLOCK_CHANNELS], sum[BLOCK_CHANNELS], product[BLOCK_CHANNELS];
  EACH_CHANNEL(e) {
    mean[e] = means[means_offset + channel + e];
    sum[e] = product[e] = 0.0f;
  }
  TURNS {
    uint4 x[UNROLL], d[UNROLL];
    EACH_TURN(k) {
      x[k] = src[AT(k)];
      d[k] = diff_dst[AT(k)];
    }
    EACH_TURN(k) {
      float values[BLOCK_CHANNELS], differences[BLOCK_CHANNELS];
      read_block(values, x[k]);
      read_block(differences, d[k]);
      EACH_CHANNEL(e) {
        const float difference = IS_INSIDE(k) ? differences[e] : 0.0f;
        sum[e] += difference;
        product[e] += IS_INSIDE(k) ? difference * (values[e] - mean[e]) : 0.0f;
      }
    }
  }
  sums += sums_offset + (ulong)get_group_id(1) * channels + channel;
  sum_rows(sum, scratch);
  sum_rows(product, scratch);
  if (item < LANES && is_block) EACH_CHANNEL(e) sums[e] = (float2)(sum[e], product[e]);
}

// With x̂ = (src − mean)·r, r = 1/√(variance + ε): diff_shift = Σ diff_dst, diff_scale = Σ diff_dst·x̂,
// diff_src = scale·r·(diff_dst − diff_shift/count − x̂·diff_scale/count).
// factors (channel): mean, scale·r, diff_shift/count, r·diff_scale/count.
__kernel __attribute__((reqd_work_group_size(JOINERS, 1, 1))) void batch_norm_join_backward(
    __global const float2 *restrict sums, ulong sums_offset, __global const float *restrict scale, ulong scale_offset,
    __global const float *restrict means, ulong means_offset, __global const float *restrict variances,
    ulong variances_offset, __global float *restrict diff_scale, ulong diff_scale_offset,
    __global float *restrict diff_shift, ulong diff_shift_offset, __global float4 *restrict factors, ulong factors_offset,
    uint rows, uint channels, uint part, uint parts, float epsilon) {
  __local float2 scratch[JOINERS];
  const uint channel = (uint)get_group_id(0), item = (uint)get_local_id(0);
  sums += sums_offset + channel;
  float2 own = (float2)(0.0f);
  for (uint p = item; p < parts; p += JOINERS) own += sums[(ulong)p * channels];
  const float2 total = joined(own, scratch);
  if (item != 0) return;
  const float r = 1.0f / sqrt(variances[variances_offset + channel] + epsilon), count = (float)rows;
  diff_scale[diff_scale_offset + channel] = total.y * r;
  diff_shift[diff_shift_offset + channel] = total.x;
  factors[factors_offset + channel] = (float4)(means[means_offset + channel], scale[scale_offset + channel] * r,
                                               total.x / count, total.y * r * r / count);
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward(
    __global const uint4 *src, ulong src_offset, __global const uint4 *diff_dst, ulong diff_dst_offset,
    __global const float4 *restrict factors, ulong factors_offset, __global uint4 *diff_src, ulong diff_src_offset, SIZES) {
  PLACE;
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
  float4 factor[BLOCK_CHANNELS];
  EACH_CHANNEL(e) factor[e] = factors[factors_offset + channel + e];
  TURNS {
    uint4 x[UNROLL], d[UNROLL];
    EACH_TURN(k) {
      x[k] = src[AT(k)];
      d[k] = diff_dst[AT(k)];
    }
    EACH_TURN(k) {
      float values[BLOCK_CHANNELS], differences[BLOCK_CHANNELS];
      read_block(values, x[k]);
      read_block(differences, d[k]);
      EACH_CHANNEL(e) values[e] =
          factor[e].y * (differences[e] - factor[e].z - (values[e] - factor[e].x) * factor[e].w);
      x[k] = block_of(values);
    }
    EACH_TURN(k) if (IS_INSIDE(k) && is_block) diff_src[AT(k)] = x[k];
  }
}
