// Batch normalisation of src (images, channels, plane) over images and plane, and its gradient, by work-groups. The
// values of a channel are cut into `parts` (THREADS at most) of `part` values, planes one behind the other; a group of
// THREADS items owns one part of one channel. Two launches each way: sums of every part, then every group joins the sums
// of its channel's parts and writes its own part.
//   forward   reads src twice, writes dst: 12 bytes an element
//   backward  reads src and diff_dst twice, writes diff_src: 20 bytes an element
// An item owns every THREADS-th value_t and has UNROLL reads of each operand in flight. value_t is WIDTH neighbouring
// values of a plane (4 where that divides the plane's size, else 1); sizes, places and operands' offsets count value_t,
// but for the values by channel.
// The sums run through memory from its end, so that they begin with what was written last and leave in the cache what
// the second launch begins with.
// The squares stay exact for large means: an item sums around its first value, items are joined around the mean of item
// 0, parts around the mean of part 0, so that a join loses no more digits than there are items or parts. The order of
// all sums depends on the sizes alone.
// With EPILOGUE_PARAMETERS the text in front (opencl/normalise.cpp) gives an expression that dst passes through.
#if WIDTH == 4
#define UNROLL 4
typedef float4 value_t;
#define TOTAL(value) (((value).x + (value).y) + ((value).z + (value).w))
#else
#define UNROLL 8
typedef float value_t;
#define TOTAL(value) (value)
#endif
#define ZERO ((value_t)(0.0f))

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#define EPILOGUE_OPERANDS
#define EPILOGUE_READ(k, image, i)
#define EPILOGUE(value, k) (value)
#endif

// values = images·plane; stride = (channels − 1)·plane.
#define SIZES uint values, uint plane, uint plane_multiplier, uint plane_shift, uint stride, uint part

// What every kernel begins with: its part is [begin, end) of the channel's values.
#define PLACE(channel_number, part_number_)                                                   \
  const uint item = (uint)get_local_id(0), parts = (uint)get_num_groups(1);                   \
  const uint channel = (channel_number), part_number = (part_number_);                        \
  const uint begin = part_number * part, end = min(values, begin + part);                     \
  const ulong line = (ulong)channel * plane
#define FORWARDS PLACE((uint)get_group_id(0), (uint)get_group_id(1))
#define BACKWARDS                                                                             \
  PLACE((uint)(get_num_groups(0) - 1 - get_group_id(0)), (uint)(get_num_groups(1) - 1 - get_group_id(1)))

// Walks through the item's values by UNROLL. INSIDE(k) tells whether value k of the turn is in the part: reads are
// made in any case, of the part's last value where it is not, since a read under a condition waits for the one before.
#define TURNS for (uint e = begin + item; e < end; e += UNROLL * THREADS)
#define INSIDE(k) (e + (k) * THREADS < end)
#define LOCATE(k)                                                              \
  const uint at = min(e + (k) * THREADS, end - 1);                             \
  const uint image = (mul_hi(at, plane_multiplier) + at) >> plane_shift;       \
  const ulong i = line + at + (ulong)image * stride

// How many values (floats) `other` of the group's items has.
static inline float batch_norm_count(uint other, uint begin, uint end) {
  return begin + other < end ? (float)(((end - begin - other + THREADS - 1) / THREADS) * WIDTH) : 0.0f;
}

// The sum over the items of the group, for all of them. In two steps of few barriers; scratch has room for
// THREADS + ROOT.
#define ROOT 16
static inline __attribute__((always_inline)) float2 batch_norm_sum(float2 value, __local float2 *scratch) {
  const uint item = (uint)get_local_id(0);
  scratch[item] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < ROOT) {
    float2 sum = scratch[item];
#pragma unroll
    for (uint k = 1; k < THREADS / ROOT; ++k) sum += scratch[item + k * ROOT];
    scratch[THREADS + item] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float2 total = scratch[THREADS];
#pragma unroll
  for (uint k = 1; k < ROOT; ++k) total += scratch[THREADS + k];
  return total;
}

// sums (channels, parts): mean and sum of centred squares.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_statistics(
    __global const value_t *restrict src, ulong src_offset, __global float2 *restrict sums, ulong sums_offset, SIZES) {
  __local float2 scratch[THREADS + ROOT];
  __local float reference;
  BACKWARDS;
  src += src_offset;
  float shift = 0.0f;
  value_t sum = ZERO, squares = ZERO;
  TURNS {
    value_t x[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      x[k] = src[i];
    }
    if (e == begin + item) shift = TOTAL(x[0]) / WIDTH;
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      const value_t centred = INSIDE(k) ? x[k] - shift : ZERO;
      sum += centred;
      squares += centred * centred;
    }
  }
  const float count = batch_norm_count(item, begin, end), rest = count > 0.0f ? TOTAL(sum) / count : 0.0f;
  const float mean = shift + rest, own = fmax(TOTAL(squares) - rest * TOTAL(sum), 0.0f);
  if (item == 0) reference = mean;
  barrier(CLK_LOCAL_MEM_FENCE);
  const float base = reference, difference = mean - base;
  const float2 total = batch_norm_sum((float2)(count * difference, own + count * difference * difference), scratch);
  if (item == 0) {
    const float offset = total.x / (float)((end - begin) * WIDTH);
    sums[sums_offset + channel * parts + part_number] = (float2)(base + offset, fmax(total.y - offset * total.x, 0.0f));
  }
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_forward(
    __global const value_t *restrict src, ulong src_offset, __global const float2 *restrict sums, ulong sums_offset,
    __global const float *restrict scale, ulong scale_offset, __global const float *restrict shift, ulong shift_offset,
    __global value_t *restrict dst, ulong dst_offset, __global float *restrict means, ulong means_offset,
    __global float *restrict variances, ulong variances_offset, SIZES, float epsilon EPILOGUE_PARAMETERS) {
  __local float2 scratch[THREADS + ROOT];
  FORWARDS;
  sums += sums_offset + channel * parts;
  const float count = (float)values * WIDTH, base = sums[0].x;
  float2 total = (float2)(0.0f, sums[0].y);
  if (parts > 1) {
    const uint p = min(item, parts - 1);
    const float2 other = sums[p];
    const float difference = other.x - base, weight = (float)min(part, values - p * part) * WIDTH;
    total = (float2)(weight * difference, other.y + weight * difference * difference);
    if (item >= parts) total = (float2)(0.0f);
    total = batch_norm_sum(total, scratch);
  }
  const float offset = total.x / count, mean = base + offset;
  const float variance = fmax(total.y - offset * total.x, 0.0f) / count;
  if (part_number == 0 && item == 0) {
    means[means_offset + channel] = mean;
    variances[variances_offset + channel] = variance;
  }
  const float factor = scale[scale_offset + channel] / sqrt(variance + epsilon), added = shift[shift_offset + channel];
  src += src_offset;
  dst += dst_offset;
  TURNS {
    value_t x[UNROLL];
    ulong places[UNROLL];
    EPILOGUE_OPERANDS
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      places[k] = i;
      x[k] = src[i];
      EPILOGUE_READ(k, image, i)
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      if (INSIDE(k)) dst[places[k]] = EPILOGUE((x[k] - mean) * factor + added, k);
    }
  }
}

// sums (channels, parts): Σ diff_dst and Σ diff_dst·(src − mean).
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward_sums(
    __global const value_t *restrict src, ulong src_offset, __global const value_t *restrict diff_dst,
    ulong diff_dst_offset, __global const float *restrict means, ulong means_offset, __global float2 *restrict sums,
    ulong sums_offset, SIZES) {
  __local float2 scratch[THREADS + ROOT];
  BACKWARDS;
  src += src_offset;
  diff_dst += diff_dst_offset;
  const float mean = means[means_offset + channel];
  value_t sum = ZERO, product = ZERO;
  TURNS {
    value_t x[UNROLL], d[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      d[k] = diff_dst[i];
      x[k] = src[i];
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      sum += INSIDE(k) ? d[k] : ZERO;
      product += INSIDE(k) ? d[k] * (x[k] - mean) : ZERO;
    }
  }
  const float2 total = batch_norm_sum((float2)(TOTAL(sum), TOTAL(product)), scratch);
  if (item == 0) sums[sums_offset + channel * parts + part_number] = total;
}

// With x̂ = (src − mean)·r, r = 1/√(variance + ε): diff_shift = Σ diff_dst, diff_scale = Σ diff_dst·x̂,
// diff_src = scale·r·(diff_dst − diff_shift/count − x̂·diff_scale/count).
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void batch_norm_backward(
    __global const value_t *restrict src, ulong src_offset, __global const value_t *restrict diff_dst,
    ulong diff_dst_offset, __global const float *restrict scale, ulong scale_offset,
    __global const float *restrict means, ulong means_offset, __global const float *restrict variances,
    ulong variances_offset, __global const float2 *restrict sums, ulong sums_offset,
    __global value_t *restrict diff_src, ulong diff_src_offset, __global float *restrict diff_scale,
    ulong diff_scale_offset, __global float *restrict diff_shift, ulong diff_shift_offset, SIZES, float epsilon) {
  __local float2 scratch[THREADS + ROOT];
  FORWARDS;
  sums += sums_offset + channel * parts;
  float2 total = sums[0];
  if (parts > 1) {
    total = sums[min(item, parts - 1)];
    if (item >= parts) total = (float2)(0.0f);
    total = batch_norm_sum(total, scratch);
  }
  const float mean = means[means_offset + channel], count = (float)values * WIDTH;
  const float r = 1.0f / sqrt(variances[variances_offset + channel] + epsilon);
  if (part_number == 0 && item == 0) {
    diff_scale[diff_scale_offset + channel] = total.y * r;
    diff_shift[diff_shift_offset + channel] = total.x;
  }
  const float factor = scale[scale_offset + channel] * r;
  const float mean_sum = total.x / count, slope = total.y * r * r / count;
  src += src_offset;
  diff_dst += diff_dst_offset;
  diff_src += diff_src_offset;
  TURNS {
    value_t x[UNROLL], d[UNROLL];
    ulong places[UNROLL];
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      LOCATE(k);
      places[k] = i;
      d[k] = diff_dst[i];
      x[k] = src[i];
    }
#pragma unroll
    for (uint k = 0; k < UNROLL; ++k) {
      if (INSIDE(k)) diff_src[places[k]] = factor * (d[k] - mean_sum - (x[k] - mean) * slope);
    }
  }
}
