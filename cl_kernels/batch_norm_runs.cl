// Batch normalisation on CPUs: a work-item owns one part of one channel of src (images, channels, plane), `part` of
// `parts` parts of whole images, and runs along their planes. Two launches each way: sums of every part, then every item
// adds the parts of its channel up in order and writes its own.
//   forward   reads src three times (once from cache), writes dst: 12 bytes an element
//   backward  reads src and diff_dst twice, writes diff_src: 20 bytes an element
// A part's mean is taken first and corrected by the mean of what is left, the squares are centred on it, and parts are
// joined as in Chan, Golub and LeVeque ("Updating Formulae and a Pairwise Algorithm …", 1979): a large mean costs no
// digits. Sums run in chains of WIDTH values.
// With EPILOGUE_PARAMETERS the text in front (opencl/normalise.cpp) gives an expression that dst passes through.
#include "chains.h"

#define WIDTH 16
#define ADD(a, b) ((a) + (b))

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#endif

// Runs STATEMENT for every element of the part, where `i` is its place: first in vectors of WIDTH, then singly.
#define EACH(VECTOR_STATEMENT, STATEMENT)                        \
  for (ulong n = begin; n < end; ++n) {                          \
    const ulong line = (n * channels + channel) * plane;         \
    ulong s = 0;                                                 \
    for (; s + WIDTH <= plane; s += WIDTH) {                     \
      const ulong i = line + s;                                  \
      VECTOR_STATEMENT;                                          \
    }                                                            \
    for (; s < plane; ++s) {                                     \
      const ulong i = line + s;                                  \
      STATEMENT;                                                 \
    }                                                            \
  }
#define CHAINS(name) float16 name##_chains = (float16)(0.0f); float name = 0.0f
#define JOIN(name)                            \
  do {                                        \
    float joined_;                            \
    JOIN_CHAINS(joined_, name##_chains, ADD); \
    name += joined_;                          \
  } while (0)

#define SIZES ulong images, ulong channels, ulong plane, ulong part
#define PLACE                                                                                   \
  const ulong channel = get_group_id(0), part_number = get_group_id(1), parts = get_num_groups(1); \
  const ulong begin = part_number * part, end = min(images, begin + part)

// sums (channels, parts, 2): mean and sum of centred squares.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_statistics(
    __global const float *restrict src, ulong src_offset, __global float *restrict sums, ulong sums_offset, SIZES) {
  PLACE;
  src += src_offset;
  const float count = (float)((end - begin) * plane);
  CHAINS(sum);
  EACH(sum_chains += vload16(0, src + i), sum += src[i]);
  JOIN(sum);
  const float mean = sum / count;
  CHAINS(rest);
  CHAINS(squares);
  EACH(const float16 x = vload16(0, src + i) - mean; rest_chains += x; squares_chains += x * x,
       const float x = src[i] - mean; rest += x; squares += x * x);
  JOIN(rest);
  JOIN(squares);
  const float correction = rest / count;
  sums += sums_offset + (channel * parts + part_number) * 2;
  sums[0] = mean + correction;
  sums[1] = fmax(squares - correction * rest, 0.0f);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_forward(
    __global const float *restrict src, ulong src_offset, __global const float *restrict sums, ulong sums_offset,
    __global const float *restrict scale, ulong scale_offset, __global const float *restrict shift, ulong shift_offset,
    __global float *restrict dst, ulong dst_offset, __global float *restrict means, ulong means_offset,
    __global float *restrict variances, ulong variances_offset, SIZES, float epsilon EPILOGUE_PARAMETERS) {
  PLACE;
  sums += sums_offset + channel * parts * 2;
  const float count = (float)(images * plane);
  float mean = sums[0], squares = sums[1];
  for (ulong p = 1; p < parts; ++p) {
    const float before = (float)(p * part * plane), more = (float)(min(part, images - p * part) * plane);
    const float difference = sums[2 * p] - mean;
    mean += difference * (more / (before + more));
    squares += sums[2 * p + 1] + difference * difference * (before * (more / (before + more)));
  }
  const float variance = squares / count;
  if (part_number == 0) {
    means[means_offset + channel] = mean;
    variances[variances_offset + channel] = variance;
  }
  const float factor = scale[scale_offset + channel] / sqrt(variance + epsilon), added = shift[shift_offset + channel];
  src += src_offset;
  dst += dst_offset;
#ifdef EPILOGUE
  for (ulong image = begin; image < end; ++image) {
    const ulong line = (image * channels + channel) * plane;
#pragma clang loop vectorize(assume_safety)
    for (ulong s = 0; s < plane; ++s) {
      const ulong i = line + s;
      dst[i] = EPILOGUE((src[i] - mean) * factor + added, image, i);
    }
  }
#else
  EACH(vstore16((vload16(0, src + i) - mean) * factor + added, 0, dst + i), dst[i] = (src[i] - mean) * factor + added);
#endif
}

// sums (channels, parts, 2): Σ diff_dst and Σ diff_dst·(src − mean).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_backward_sums(
    __global const float *restrict src, ulong src_offset, __global const float *restrict diff_dst, ulong diff_dst_offset,
    __global const float *restrict means, ulong means_offset, __global float *restrict sums, ulong sums_offset, SIZES) {
  PLACE;
  src += src_offset;
  diff_dst += diff_dst_offset;
  const float mean = means[means_offset + channel];
  CHAINS(sum);
  CHAINS(product);
  EACH(const float16 d = vload16(0, diff_dst + i); sum_chains += d; product_chains += d * (vload16(0, src + i) - mean),
       const float d = diff_dst[i]; sum += d; product += d * (src[i] - mean));
  JOIN(sum);
  JOIN(product);
  sums += sums_offset + (channel * parts + part_number) * 2;
  sums[0] = sum;
  sums[1] = product;
}

// With x̂ = (src − mean)·r, r = 1/√(variance + ε): diff_shift = Σ diff_dst, diff_scale = Σ diff_dst·x̂,
// diff_src = scale·r·(diff_dst − diff_shift/count − x̂·diff_scale/count).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_backward(
    __global const float *restrict src, ulong src_offset, __global const float *restrict diff_dst, ulong diff_dst_offset,
    __global const float *restrict scale, ulong scale_offset, __global const float *restrict means, ulong means_offset,
    __global const float *restrict variances, ulong variances_offset, __global const float *restrict sums,
    ulong sums_offset, __global float *restrict diff_src, ulong diff_src_offset, __global float *restrict diff_scale,
    ulong diff_scale_offset, __global float *restrict diff_shift, ulong diff_shift_offset, SIZES, float epsilon) {
  PLACE;
  sums += sums_offset + channel * parts * 2;
  float sum = 0.0f, product = 0.0f;
  for (ulong p = 0; p < parts; ++p) {
    sum += sums[2 * p];
    product += sums[2 * p + 1];
  }
  const float mean = means[means_offset + channel], count = (float)(images * plane);
  const float r = 1.0f / sqrt(variances[variances_offset + channel] + epsilon);
  if (part_number == 0) {
    diff_scale[diff_scale_offset + channel] = product * r;
    diff_shift[diff_shift_offset + channel] = sum;
  }
  const float factor = scale[scale_offset + channel] * r, mean_sum = sum / count, slope = product * r * r / count;
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
  EACH(vstore16(factor * (vload16(0, diff_dst + i) - mean_sum - (vload16(0, src + i) - mean) * slope), 0, diff_src + i),
       diff_src[i] = factor * (diff_dst[i] - mean_sum - (src[i] - mean) * slope));
}
