// conv_pad: src planes (depth, height, width) to planes (dst_depth, dst_height, dst_width) with zeros around them,
// padding_d, padding_h and padding_w of them before. A work-item owns one row of the result. 8 bytes an element.

__kernel void conv_pad(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                       ulong dst_offset, int depth, int height, int width, int dst_depth, int dst_height, int dst_width,
                       int padding_d, int padding_h, int padding_w) {
  const int line = (int)get_global_id(0);
  const int slice = line / dst_height - padding_d, row = line % dst_height - padding_h;
  const ulong plane = get_global_id(1);
  src += src_offset + ((plane * depth + (ulong)max(slice, 0)) * height + (ulong)max(row, 0)) * width;
  dst += dst_offset + (plane * dst_depth * dst_height + (ulong)line) * dst_width;
  const bool inside = (uint)slice < (uint)depth && (uint)row < (uint)height;
  const int from = inside ? padding_w : dst_width, to = inside ? padding_w + width : dst_width;
  for (int i = 0; i < from; ++i) dst[i] = 0.0f;
  for (int i = from; i < to; ++i) dst[i] = src[i - padding_w];
  for (int i = to; i < dst_width; ++i) dst[i] = 0.0f;
}
