// conv_pad: channels (depth, height, width) to (dst_depth, dst_height, dst_width) with zeros around them, padding_d, padding_h
// and padding_w of them before. A work-item owns one row of the result. 8 bytes an element.

__kernel void conv_pad(__global const float *restrict src, ulong src_offset, __global float *restrict dst,
                       ulong dst_offset, int depth, int height, int width, int dst_depth, int dst_height, int dst_width,
                       int padding_d, int padding_h, int padding_w) {
  const int dst_row = (int)get_global_id(0);
  const int slice = dst_row / dst_height - padding_d, row = dst_row % dst_height - padding_h;
  const ulong channel = get_global_id(1);
  src += src_offset + ((channel * depth + (ulong)max(slice, 0)) * height + (ulong)max(row, 0)) * width;
  dst += dst_offset + (channel * dst_depth * dst_height + (ulong)dst_row) * dst_width;
  const bool inside = (uint)slice < (uint)depth && (uint)row < (uint)height;
  const int from = inside ? padding_w : dst_width, to = inside ? padding_w + width : dst_width;
  for (int i = 0; i < from; ++i) dst[i] = 0.0f;
  for (int i = from; i < to; ++i) dst[i] = src[i - padding_w];
  for (int i = to; i < dst_width; ++i) dst[i] = 0.0f;
}
