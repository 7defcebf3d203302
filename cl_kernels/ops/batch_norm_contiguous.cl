// Batch normalisation on CPUs: a work-item owns one part of one channel of src (images, channels, plane), `part` of
// `parts` parts of whole images, and runs along their planes. Two launches each way: sums of every part, then every item
// adds the parts of its channel up in order and writes its own.
//   forward   reads src three times (once from cache), writes dst: 12 bytes an element
//   backward  reads src and diff_dst twice, writes diff_src: 20 bytes an element
// A part's mean is taken first and corrected by the mean of what is left, the squares are centred on it, and parts are
// joined around the mean of the first: a large mean costs no digits. Sums run in chains of WIDTH values, which are joined
// after few terms. Squares that leave fp32 are summed again with another unit (ops/batch_norm.h).
// With EPILOGUE_PARAMETERS the text in front (opencl/ops/batch_norm.cpp) gives an expression that dst, or diff_src, passes through.
#include "ops/batch_norm.h"
#include "shared/chains.h"

#define WIDTH 16
#define TERMS 16
#define ADD(a, b) ((a) + (b))

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#endif

// Runs STATEMENT for every element of the part, where `i` is its place: first in vectors of WIDTH, then singly; and JOINS
// after TERMS of them.
#define EACH_JOINED(VECTOR_STATEMENT, STATEMENT, JOINS)          \
  for (ulong n = begin, terms = 0; n < end; ++n) {               \
    const ulong line = (n * channels + channel) * plane;         \
    for (ulong s = 0; s < plane;) {                              \
      const ulong stop = min(plane, s + TERMS * WIDTH);          \
      terms += (stop - s) / WIDTH + (stop - s) % WIDTH;          \
      for (; s + WIDTH <= stop; s += WIDTH) {                    \
        const ulong i = line + s;                                \
        VECTOR_STATEMENT;                                        \
      }                                                          \
      for (; s < stop; ++s) {                                    \
        const ulong i = line + s;                                \
        STATEMENT;                                               \
      }                                                          \
      if (terms >= TERMS) {                                      \
        JOINS;                                                   \
        terms = 0;                                               \
      }                                                          \
    }                                                            \
  }
#define EACH(VECTOR_STATEMENT, STATEMENT) EACH_JOINED(VECTOR_STATEMENT, STATEMENT, )
// A statement that also needs the number of the image.
#define EACH_OF_IMAGES(STATEMENT)                                                                     \
  for (ulong image = begin; image < end; ++image) {                                                   \
    const ulong line = (image * channels + channel) * plane;                                          \
    _Pragma("clang loop vectorize(assume_safety)") for (ulong i = line; i < line + plane; ++i) {      \
      STATEMENT;                                                                                      \
    }                                                                                                 \
  }
// A sum: chains and what is added singly, then both with what they have joined so far, each as a sum and its roundings.
#define CHAINS(name)                                                                             \
  float16 name##_chains = (float16)(0.0f), name##_high = (float16)(0.0f), name##_low = (float16)(0.0f); \
  float name##_single = 0.0f, name##_single_high = 0.0f, name##_single_low = 0.0f
#define JOIN(name)                                                                    \
  do {                                                                                \
    ADD_EXACTLY(float16, name##_high, name##_low, name##_chains);                     \
    ADD_EXACTLY(float, name##_single_high, name##_single_low, name##_single);         \
    name##_chains = (float16)(0.0f);                                                  \
    name##_single = 0.0f;                                                             \
  } while (0)
#define TOTAL(name)                                                                   \
  float name, name##_rest;                                                            \
  JOIN(name);                                                                         \
  JOIN_CHAINS(name, name##_high, ADD);                                                \
  JOIN_CHAINS(name##_rest, name##_low, ADD);                                          \
  name = (name + name##_single_high) + (name##_rest + name##_single_low)

#define SIZES(NUMBER) NUMBER(ulong, images) NUMBER(ulong, channels) NUMBER(ulong, plane) NUMBER(ulong, part)
typedef struct { STATISTICS_NUMBERS(NUMBER_MEMBER) } statistics_numbers;
typedef struct { FORWARD_NUMBERS(NUMBER_MEMBER) } forward_numbers;
typedef struct { BACKWARD_SUMS_NUMBERS(NUMBER_MEMBER) } backward_sums_numbers;
typedef struct { BACKWARD_NUMBERS(NUMBER_MEMBER) } backward_numbers;
#define PLACE                                                                                   \
  const ulong channel = get_group_id(0), part_number = get_group_id(1), parts = get_num_groups(1); \
  const ulong begin = part_number * part, end = min(images, begin + part)

// sums (channels, parts): the mean as a pair, Σ (deviation·unit)², unit.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_statistics(
    __global const float *restrict src, __global float4 *restrict sums, const statistics_numbers numbers) {
  STATISTICS_NUMBERS(NUMBER_CONSTANT)
  PLACE;
  src += src_offset;
  const float count = (float)((end - begin) * plane), share = 0x1p-31f;
  float mean;
  {
    CHAINS(sum);
    EACH_JOINED(sum_chains += vload16(0, src + i), sum_single += src[i], JOIN(sum));
    TOTAL(sum);
    mean = sum / count;
  }
  if (!(fabs(mean) < INFINITY)) {  // of large numbers
    CHAINS(sum);
    EACH_JOINED(sum_chains += vload16(0, src + i) * share, sum_single += src[i] * share, JOIN(sum));
    TOTAL(sum);
    mean = sum / (count * share);
  }
  float unit = 1.0f, correction, own;
  for (;;) {
    CHAINS(rest);
    CHAINS(squares);
    EACH_JOINED(const float16 x = (vload16(0, src + i) - mean) * unit; rest_chains += x; squares_chains += x * x,
                const float x = (src[i] - mean) * unit; rest_single += x; squares_single += x * x,
                JOIN(rest); JOIN(squares));
    TOTAL(rest);
    TOTAL(squares);
    correction = rest / count;
    own = squares - correction * rest;
    own = own < 0.0f ? 0.0f : own;  // NaN stays
    if (unit != 1.0f) break;
    unit = batch_norm_unit(own / count, epsilon);
    if (unit == 1.0f) break;
  }
  const float2 pair = batch_norm_pair(mean, correction / unit);
  sums[sums_offset + channel * parts + part_number] = (float4)(pair.x, pair.y, own, unit);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_forward(
    __global const float *restrict src, __global const float4 *restrict sums, __global const float *restrict scale,
    __global const float *restrict shift, __global float *restrict dst, __global float *restrict means,
    __global float *restrict variances, const forward_numbers numbers EPILOGUE_PARAMETERS) {
  FORWARD_NUMBERS(NUMBER_CONSTANT)
  PLACE;
  sums += sums_offset + channel * parts;
  float unit = sums[0].w;
  for (ulong p = 1; p < parts; ++p) unit = fmin(unit, sums[p].w);
  float2 total = (float2)(0.0f);
  for (ulong p = 0; p < parts; ++p) {
    total += batch_norm_joined_part(sums[p], sums[0], (float)(min(part, images - p * part) * plane), unit);
  }
  const norm_factors by = batch_norm_factors(sums[0], total, (float)(images * plane), unit, scale[scale_offset + channel],
                                             shift[shift_offset + channel], epsilon);
  const float mean = by.mean, factor = by.factor, added = by.added;
  if (part_number == 0) {
    means[means_offset + channel] = mean;
    variances[variances_offset + channel] = by.variance;
  }
  src += src_offset;
  dst += dst_offset;
#ifdef EPILOGUE
  EACH_OF_IMAGES(dst[i] = EPILOGUE((src[i] - mean) * factor + added, image, i));
#else
  EACH(vstore16((vload16(0, src + i) - mean) * factor + added, 0, dst + i), dst[i] = (src[i] - mean) * factor + added);
#endif
}

// sums (channels, parts, 2): as batch_norm_rebased takes them, then the base.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_backward_sums(
    __global const float *restrict src, __global const float *restrict diff_dst, __global const float *restrict means,
    __global const float *restrict variances, __global float4 *restrict sums, const backward_sums_numbers numbers) {
  BACKWARD_SUMS_NUMBERS(NUMBER_CONSTANT)
  PLACE;
  src += src_offset;
  diff_dst += diff_dst_offset;
  const float mean = means[means_offset + channel];
  const float unit = batch_norm_unit(variances[variances_offset + channel], epsilon);
  const ulong few = min((end - begin) * plane, (ulong)WIDTH);
  float near = 0.0f, least = INFINITY, largest = -INFINITY;  // of the first few values
  for (ulong s = 0; s < few; ++s) {
    const float d = diff_dst[((begin + s / plane) * channels + channel) * plane + s % plane];
    near += d / (float)few;
    least = fmin(least, d);
    largest = fmax(largest, d);
  }
  // One value tells nothing.
  const float base = few > 1 ? batch_norm_base(near, least, largest) : 0.0f;
  CHAINS(sum);
  CHAINS(product);
  CHAINS(centred);
  EACH_JOINED(const float16 d = vload16(0, diff_dst + i) - base; const float16 x = (vload16(0, src + i) - mean) * unit;
              sum_chains += d; product_chains += d * x; centred_chains += x,
              const float d = diff_dst[i] - base; const float x = (src[i] - mean) * unit;
              sum_single += d; product_single += d * x; centred_single += x,
              JOIN(sum); JOIN(product); JOIN(centred));
  TOTAL(sum);
  TOTAL(product);
  TOTAL(centred);
  CHAINS(squares);
  if (unit != 1.0f) {
    EACH_JOINED(const float16 x = (vload16(0, src + i) - mean) * unit; squares_chains += x * x,
                const float x = (src[i] - mean) * unit; squares_single += x * x, JOIN(squares));
  }
  TOTAL(squares);
  sums += sums_offset + (channel * parts + part_number) * 2;
  sums[0] = (float4)(sum, product, centred, squares);
  sums[1] = (float4)(base, 0.0f, 0.0f, 0.0f);
}

// With x̂ = (src − mean)·r, r = 1/√(variance + ε): diff_shift = Σ diff_dst, diff_scale = Σ diff_dst·x̂,
// diff_src = scale·r·(diff_dst − diff_shift/count − x̂·diff_scale/count).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void batch_norm_backward(
    __global const float *restrict src, __global const float *restrict diff_dst, __global const float *restrict scale,
    __global const float *restrict means, __global const float *restrict variances,
    __global const float4 *restrict sums, __global float *restrict diff_src, __global float *restrict diff_scale,
    __global float *restrict diff_shift, const backward_numbers numbers EPILOGUE_PARAMETERS) {
  BACKWARD_NUMBERS(NUMBER_CONSTANT)
  PLACE;
  sums += sums_offset + channel * parts * 2;
  const float base = sums[1].x, variance = variances[variances_offset + channel];
  float4 total = (float4)(0.0f);
  for (ulong p = 0; p < parts; ++p) {
    total += batch_norm_rebased(sums[2 * p], (float)(min(part, images - p * part) * plane), sums[2 * p + 1].x - base);
  }
  const gradient_factors by =
      batch_norm_gradient_factors(total, base, (float)(images * plane), variance, batch_norm_unit(variance, epsilon),
                                  scale[scale_offset + channel], epsilon);
  if (part_number == 0) {
    diff_scale[diff_scale_offset + channel] = by.diff_scale;
    diff_shift[diff_shift_offset + channel] = by.diff_shift;
  }
  const float mean = means[means_offset + channel];
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
#ifdef EPILOGUE
  EACH_OF_IMAGES(
      diff_src[i] = EPILOGUE(by.factor * ((diff_dst[i] - by.diff_mean) - (src[i] - mean) * by.slope + by.rest), image, i));
#else
  EACH(const float16 d = vload16(0, diff_dst + i) - by.diff_mean; const float16 x = vload16(0, src + i) - mean;
       vstore16(by.factor * (d - x * by.slope + by.rest), 0, diff_src + i),
       diff_src[i] = by.factor * ((diff_dst[i] - by.diff_mean) - (src[i] - mean) * by.slope + by.rest));
#endif
}
