// im2col_unfold and im2col_fold: the plain way to a convolution, kept as the reference of the implicit GEMM. For one image
// and one group; `columns` is (C/groups · kH · kW, oH · oW). A work-item owns one element of the result.
// unfold: 8 bytes an element. fold: the gradient of unfold, a sum over the kH·kW windows that hold a pixel, in order.

__kernel void im2col_unfold(__global const float *restrict src, ulong src_offset, __global float *columns,
                            ulong columns_offset, ulong image, int height, int width, int kernel_height, int kernel_width,
                            int dst_height, int dst_width, int stride_h, int stride_w, int padding_h, int padding_w,
                            int dilation_h, int dilation_w) {
  const int place = (int)get_global_id(0), k = (int)get_global_id(1);
  const int channel = k / (kernel_height * kernel_width), tap = k % (kernel_height * kernel_width);
  const int row = place / dst_width * stride_h - padding_h + tap / kernel_width * dilation_h;
  const int column = place % dst_width * stride_w - padding_w + tap % kernel_width * dilation_w;
  const bool inside = row >= 0 && row < height && column >= 0 && column < width;
  const ulong from = src_offset + image + ((ulong)channel * height + row) * width + column;
  columns[columns_offset + (ulong)k * (dst_height * dst_width) + place] = inside ? src[from] : 0.0f;
}

__kernel void im2col_fold(__global const float *restrict columns, ulong columns_offset, __global float *src,
                          ulong src_offset, ulong image, int height, int width, int kernel_height, int kernel_width,
                          int dst_height, int dst_width, int stride_h, int stride_w, int padding_h, int padding_w,
                          int dilation_h, int dilation_w) {
  const int pixel = (int)get_global_id(0), channel = (int)get_global_id(1);
  const int row = pixel / width + padding_h, column = pixel % width + padding_w;
  float sum = 0.0f;
  for (int y = 0; y < kernel_height; ++y) {
    const int r = row - y * dilation_h;
    if (r < 0 || r % stride_h != 0 || r / stride_h >= dst_height) continue;
    for (int x = 0; x < kernel_width; ++x) {
      const int q = column - x * dilation_w;
      if (q < 0 || q % stride_w != 0 || q / stride_w >= dst_width) continue;
      const ulong k = ((ulong)channel * kernel_height + y) * kernel_width + x;
      sum += columns[columns_offset + k * (dst_height * dst_width) + (r / stride_h) * dst_width + q / stride_w];
    }
  }
  src[src_offset + image + (ulong)channel * height * width + pixel] = sum;
}
