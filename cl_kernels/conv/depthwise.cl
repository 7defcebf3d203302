// Convolution where each channel of src has its own kernels (C/groups = 1, `multiplier` = O/C outputs each), and its
// gradients, without a product over channels; on GPUs for what conv/depthwise_strips.cl does not serve. KERNEL_…, STRIDE_…,
// DILATION_… are numbers of depth, height and width.
// ITEM_WIDTH: elements of a row of the result that a work-item of conv_depthwise_forward and _backward_data owns, 1 on
// GPUs. 2·taps FLOPs an element; bytes: src and dst once, with a cache that holds a window's rows.
// The gradient of the weights: a work-group of THREADS items owns one weight; its items add up rows of dst, in order, and
// their sums are added in order. See gemm/operands.h for EPILOGUE.

#ifndef EPILOGUE
#define EPILOGUE_PARAMETERS
#define EPILOGUE(value, z, m, n_outer, n_inner) (value)
#endif
#define TAPS (KERNEL_D * KERNEL_H * KERNEL_W)

#define SIZES                                                                                                  \
  uint multiplier, int depth, int height, int width, int dst_depth, int dst_height, int dst_width, int padding_d, \
      int padding_h, int padding_w

// Item (·, ·, ·): part of a row, row of all slices, channel of all images. src (images, channels), dst (images,
// channels, multiplier).
__kernel void conv_depthwise_forward(__global const float *restrict src, ulong src_offset,
                                     __global const float *restrict weights, ulong weights_offset,
                                     __global float *restrict dst, ulong dst_offset, uint channels, SIZES EPILOGUE_PARAMETERS) {
  const int x0 = (int)get_global_id(0) * ITEM_WIDTH, row = (int)get_global_id(1);
  const ulong plane = get_global_id(2);
  const uint output = (uint)(plane % (channels * multiplier)), image = (uint)(plane / (channels * multiplier));
  const uint channel = output / multiplier;
  const int front = row / dst_height * STRIDE_D - padding_d, top = row % dst_height * STRIDE_H - padding_h;
  if (x0 >= dst_width) return;
  src += src_offset + ((ulong)image * channels + channel) * depth * height * width;
  weights += weights_offset + (ulong)output * TAPS;
  float sums[ITEM_WIDTH];
  for (int i = 0; i < ITEM_WIDTH; ++i) sums[i] = 0.0f;
  const int left = x0 * STRIDE_W - padding_w;
  // Whether no window of these reaches beyond its row.
  const bool inside = left >= 0 && left + (ITEM_WIDTH - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W < width;
  for (int kz = 0; kz < KERNEL_D; ++kz) {
    const int z = front + kz * DILATION_D;
    if ((uint)z >= (uint)depth) continue;
    for (int ky = 0; ky < KERNEL_H; ++ky) {
      const int y = top + ky * DILATION_H;
      if ((uint)y >= (uint)height) continue;
      __global const float *const line = src + ((ulong)z * height + y) * width;
      __global const float *const taps = weights + (kz * KERNEL_H + ky) * KERNEL_W;
      for (int kx = 0; kx < KERNEL_W; ++kx) {
        const float weight = taps[kx];
        const int q = left + kx * DILATION_W;
        if (inside) {
          for (int i = 0; i < ITEM_WIDTH; ++i) sums[i] += weight * line[q + i * STRIDE_W];
        } else {
          for (int i = 0; i < ITEM_WIDTH; ++i) {
            const int column = q + i * STRIDE_W;
            const bool is_pixel = (uint)column < (uint)width;
            const float pixel = line[is_pixel ? column : 0];
            sums[i] += is_pixel ? weight * pixel : 0.0f;
          }
        }
      }
    }
  }
  const uint place = (uint)(row * dst_width + x0);
  dst += dst_offset + plane * ((ulong)dst_depth * dst_height * dst_width) + place;
  const int count = min(ITEM_WIDTH, dst_width - x0);
  for (int i = 0; i < count; ++i) dst[i] = EPILOGUE(sums[i], channel, output % multiplier, image, place + i);
}

// diff_src(y, x) gathers diff_dst((y + padding − tap·dilation) / stride) where that is whole and inside. Item (·, ·, ·):
// part of a row, row of all slices, channel of all images.
__kernel void conv_depthwise_backward_data(__global const float *restrict diff_dst, ulong diff_dst_offset,
                                           __global const float *restrict weights, ulong weights_offset,
                                           __global float *restrict diff_src, ulong diff_src_offset, uint channels,
                                           SIZES EPILOGUE_PARAMETERS) {
  const int x0 = (int)get_global_id(0) * ITEM_WIDTH, row = (int)get_global_id(1);
  const ulong plane = get_global_id(2);
  const uint channel = (uint)(plane % channels), image = (uint)(plane / channels);
  const int back = row / height + padding_d, bottom = row % height + padding_h, right = x0 + padding_w;
  if (x0 >= width) return;
  diff_dst += diff_dst_offset + plane * multiplier * ((ulong)dst_depth * dst_height * dst_width);
  weights += weights_offset + (ulong)channel * multiplier * TAPS;
  float sums[ITEM_WIDTH];
  for (int i = 0; i < ITEM_WIDTH; ++i) sums[i] = 0.0f;
  for (uint m = 0; m < multiplier; ++m) {
    for (int kz = 0; kz < KERNEL_D; ++kz) {
      const int p = back - kz * DILATION_D, z = p / STRIDE_D;
      if (p < 0 || p % STRIDE_D != 0 || z >= dst_depth) continue;
      for (int ky = 0; ky < KERNEL_H; ++ky) {
        const int r = bottom - ky * DILATION_H, y = r / STRIDE_H;
        if (r < 0 || r % STRIDE_H != 0 || y >= dst_height) continue;
        __global const float *const line = diff_dst + (((ulong)m * dst_depth + z) * dst_height + y) * dst_width;
        __global const float *const taps = weights + ((m * KERNEL_D + kz) * KERNEL_H + ky) * KERNEL_W;
        for (int kx = 0; kx < KERNEL_W; ++kx) {
          const float weight = taps[kx];
          const int first = right - kx * DILATION_W;
#if STRIDE_W == 1
          if (first >= 0 && first + ITEM_WIDTH <= dst_width) {
            for (int i = 0; i < ITEM_WIDTH; ++i) sums[i] += weight * line[first + i];
            continue;
          }
#endif
          for (int i = 0; i < ITEM_WIDTH; ++i) {
            const int q = first + i, column = q / STRIDE_W;
            const bool is_pixel = q >= 0 && q % STRIDE_W == 0 && column < dst_width;
            const float pixel = line[is_pixel ? column : 0];
            sums[i] += is_pixel ? weight * pixel : 0.0f;
          }
        }
      }
    }
  }
  const uint place = (uint)(row * width + x0);
  diff_src += diff_src_offset + plane * ((ulong)depth * height * width) + place;
  const int count = min(ITEM_WIDTH, width - x0);
  for (int i = 0; i < count; ++i) diff_src[i] = EPILOGUE(sums[i], channel, 0u, image, place + i);
}

#if STRIDE_W == 1
#define LOAD_LANES(p) vload8(0, p)
#else
#define LOAD_LANES(p) \
  ((float8)((p)[0], (p)[STRIDE_W], (p)[2 * STRIDE_W], (p)[3 * STRIDE_W], (p)[4 * STRIDE_W], (p)[5 * STRIDE_W], \
            (p)[6 * STRIDE_W], (p)[7 * STRIDE_W]))
#endif

// Group (·, ·): tap, output. With one item a group, as on CPUs, it adds up vectors of eight columns.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void conv_depthwise_backward_weights(
    __global const float *restrict src, ulong src_offset, __global const float *restrict diff_dst, ulong diff_dst_offset,
    __global float *restrict diff_weights, ulong diff_weights_offset, uint channels, uint images, SIZES) {
  const int tap = (int)get_group_id(0);
  const uint item = (uint)get_local_id(0);
  const uint output = (uint)get_group_id(1), channel = output / multiplier;
  const int kz = tap / (KERNEL_H * KERNEL_W), ky = tap / KERNEL_W % KERNEL_H, kx = tap % KERNEL_W;
  const int left = kx * DILATION_W - padding_w;
  // The windows whose tap lies in the row.
  const int x_begin = left >= 0 ? 0 : (STRIDE_W - 1 - left) / STRIDE_W;
  const int x_end = left >= width ? 0 : min(dst_width, (width - 1 - left) / STRIDE_W + 1);
  src += src_offset;
  diff_dst += diff_dst_offset;
  float sum = 0.0f;
  float8 sums = (float8)(0.0f);
#if THREADS == 1
  for (uint image = 0; image < images; ++image) {
    for (int row = 0; row < dst_depth * dst_height; ++row) {
      const int x_first = x_begin, x_step = 1;
#else
  // Items take neighbouring columns of a row, and rows in turn where those are shorter than the group. Not by
  // item % columns: PoCL 5.0 makes wrong sums of it.
  const uint columns = min((uint)dst_width, (uint)THREADS), rows_at_once = THREADS / columns;
  const uint row_of_item = item / columns, column_of_item = item - row_of_item * columns;
  for (uint image = 0; image < images && row_of_item < rows_at_once; ++image) {
    for (int row = row_of_item; row < dst_depth * dst_height; row += rows_at_once) {
      const int x_first = x_begin + column_of_item, x_step = columns;
#endif
      const int z = row / dst_height * STRIDE_D - padding_d + kz * DILATION_D;
      const int y = row % dst_height * STRIDE_H - padding_h + ky * DILATION_H;
      if ((uint)z >= (uint)depth || (uint)y >= (uint)height) continue;
      __global const float *const line = src + ((((ulong)image * channels + channel) * depth + z) * height + y) * width;
      __global const float *const diff =
          diff_dst + (((ulong)image * channels * multiplier + output) * dst_depth * dst_height + row) * dst_width;
      int x = x_first;
#if THREADS == 1
      for (; x + 8 <= x_end; x += 8) sums += LOAD_LANES(line + left + x * STRIDE_W) * vload8(0, diff + x);
#endif
      for (; x < x_end; x += x_step) sum += line[left + x * STRIDE_W] * diff[x];
    }
  }
  const float4 halves = sums.lo + sums.hi;
  sum += (halves.x + halves.y) + (halves.z + halves.w);
#if THREADS > 1
  __local float shared[THREADS];
  shared[item] = sum;
  for (uint half_size = THREADS / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) shared[item] += shared[item + half_size];
  }
  if (item == 0) sum = shared[0];
#endif
  if (item == 0) diff_weights[diff_weights_offset + (ulong)output * TAPS + tap] = sum;
}
