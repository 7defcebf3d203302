// Scatter-add: dst row r is the sum, in index order, of the src rows whose index is r. A work-item owns one element of
// dst and looks through all indices, so the order of summation is fixed and nothing is written twice.
// Work: rows · width · indices comparisons.

__kernel void scatter_add(__global const float* src, const ulong src_offset, __global const int* indices,
                          const ulong indices_offset, __global float* dst, const ulong dst_offset, const ulong width,
                          const uint count) {
  const ulong column = get_global_id(0);
  const ulong row = get_global_id(1);
  if (column >= width) return;
  float sum = 0.0f;
  for (uint i = 0; i < count; ++i) {
    if (indices[indices_offset + i] == (int)row) sum += src[src_offset + i * width + column];
  }
  dst[dst_offset + row * width + column] = sum;
}
