// im2col_unfold and im2col_fold: the plain way to a convolution, kept as the reference of the implicit GEMM. For one image
// and one group; `columns` is (C/groups · kD · kH · kW, oD · oH · oW). A work-item owns one element of the result.
// unfold: 8 bytes an element. fold: the gradient of unfold, a sum over the windows that hold a pixel, in order.

#define SIZES                                                                                                     \
  ulong image, int depth, int height, int width, int kernel_depth, int kernel_height, int kernel_width, int dst_depth, \
      int dst_height, int dst_width, int stride_d, int stride_h, int stride_w, int padding_d, int padding_h,       \
      int padding_w, int dilation_d, int dilation_h, int dilation_w

__kernel void im2col_unfold(__global const float *restrict src, ulong src_offset, __global float *columns,
                            ulong columns_offset, SIZES) {
  const int place = (int)get_global_id(0), k = (int)get_global_id(1);
  const int taps = kernel_depth * kernel_height * kernel_width, channel = k / taps, tap = k % taps;
  const int slice = place / (dst_height * dst_width) * stride_d - padding_d + tap / (kernel_height * kernel_width) * dilation_d;
  const int row = place / dst_width % dst_height * stride_h - padding_h + tap / kernel_width % kernel_height * dilation_h;
  const int column = place % dst_width * stride_w - padding_w + tap % kernel_width * dilation_w;
  const bool inside = (uint)slice < (uint)depth && (uint)row < (uint)height && (uint)column < (uint)width;
  const ulong from = src_offset + image + (((ulong)channel * depth + slice) * height + row) * width + column;
  columns[columns_offset + (ulong)k * (dst_depth * dst_height * dst_width) + place] = inside ? src[from] : 0.0f;
}

__kernel void im2col_fold(__global const float *restrict columns, ulong columns_offset, __global float *src,
                          ulong src_offset, SIZES) {
  const int pixel = (int)get_global_id(0), channel = (int)get_global_id(1);
  const int slice = pixel / (height * width) + padding_d, row = pixel / width % height + padding_h;
  const int column = pixel % width + padding_w;
  float sum = 0.0f;
  for (int z = 0; z < kernel_depth; ++z) {
    const int p = slice - z * dilation_d;
    if (p < 0 || p % stride_d != 0 || p / stride_d >= dst_depth) continue;
    for (int y = 0; y < kernel_height; ++y) {
      const int r = row - y * dilation_h;
      if (r < 0 || r % stride_h != 0 || r / stride_h >= dst_height) continue;
      for (int x = 0; x < kernel_width; ++x) {
        const int q = column - x * dilation_w;
        if (q < 0 || q % stride_w != 0 || q / stride_w >= dst_width) continue;
        const ulong k = (((ulong)channel * kernel_depth + z) * kernel_height + y) * kernel_width + x;
        const int place = (p / stride_d * dst_height + r / stride_h) * dst_width + q / stride_w;
        sum += columns[columns_offset + k * (dst_depth * dst_height * dst_width) + place];
      }
    }
  }
  src[src_offset + image + (ulong)channel * (depth * height * width) + pixel] = sum;
}
