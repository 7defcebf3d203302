// conv_pad: src planes (height, width) to planes with padding_h rows and padding_w columns of zeros on either side. A
// work-item owns one row of the result. 8 bytes an element.

__kernel void conv_pad(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                       ulong dst_offset, int height, int width, int padding_h, int padding_w) {
  const int row = (int)get_global_id(0) - padding_h, dst_width = width + 2 * padding_w;
  const ulong plane = get_global_id(1);
  src += src_offset + (plane * height + (ulong)max(row, 0)) * width;
  dst += dst_offset + (plane * (height + 2 * padding_h) + get_global_id(0)) * dst_width;
  const int from = row >= 0 && row < height ? padding_w : dst_width, to = from == padding_w ? padding_w + width : dst_width;
  for (int i = 0; i < min(from, dst_width); ++i) dst[i] = 0.0f;
  for (int i = from; i < to; ++i) dst[i] = src[i - padding_w];
  for (int i = to; i < dst_width; ++i) dst[i] = 0.0f;
}
