// Scatter-add of src (outer, length, inner, width) by indices (outer, length, inner) into dst (outer, rows, inner,
// width): an element is the sum, in the order of `length`, of those whose index is its row; `padding` and indices outside
// [0, rows) are left out. No element is written twice, so nothing depends on timing.
//   scatter_elements   an item owns one element of dst and looks through `length` indices: for few indices.
// For many, the indices are sorted (ops/sort.cl) with their positions as the lower half of 64-bit words; the upper half, the
// key, numbers the lines of dst, (outer, rows, inner), or is ~0 for what is left out:
//   scatter_words      makes the words, followed by words of ones up to `padded`.
//   scatter_begins     finds the first word of each line by bisection; begins[lines] ends the last line.
//   scatter_lines      an item owns COLUMNS elements of a line and sums its words: lines·width + count·width work.
// HAS_BASE: `base`, which has the shape of dst, is added to the sums. Where it is dst, scatter_lines writes no line without
// words.
#ifdef HAS_BASE
#define BASE_PARAMETERS , __global const float *base, const ulong base_offset
#define BASE(place) base[base_offset + (place)]
#else
#define BASE_PARAMETERS
#define BASE(place) 0.0f
#endif

__kernel void scatter_elements(__global const float *restrict src, const ulong src_offset,
                               __global const int *restrict indices, const ulong indices_offset,
                               __global float *dst, const ulong dst_offset, const uint length, const uint inner,
                               const uint rows, const uint width, const int padding,
                               const uint lines BASE_PARAMETERS) {
  const uint column = (uint)get_global_id(0), line = (uint)get_global_id(1);
  if (column >= width || line >= lines) return;
  const uint outer_row = line / inner, in = line - outer_row * inner, outer = outer_row / rows;
  const int row = (int)(outer_row - outer * rows);
  float sum = 0.0f;
  for (uint k = 0; k < length && row != padding; ++k) {
    const ulong from = ((ulong)outer * length + k) * inner + in;
    if (indices[indices_offset + from] == row) sum += src[src_offset + from * width + column];
  }
  const ulong place = (ulong)line * width + column;
  dst[dst_offset + place] = BASE(place) + sum;
}

__kernel void scatter_words(__global const int *restrict indices, const ulong indices_offset,
                            __global ulong *restrict words, const ulong words_offset, const uint length,
                            const uint inner, const uint rows, const int padding, const uint count,
                            const uint padded) {
  const uint i = (uint)get_global_id(0);
  if (i >= padded) return;
  ulong word = ULONG_MAX;
  if (i < count) {
    const uint line = i / inner, in = i - line * inner, outer = line / length;
    const int index = indices[indices_offset + i];
    const bool counts = (uint)index < rows && index != padding;
    const uint key = counts ? (outer * rows + (uint)index) * inner + in : 0xffffffffu;
    word = ((ulong)key << 32) | i;
  }
  words[words_offset + i] = word;
}

__kernel void scatter_begins(__global const ulong *restrict words, const ulong words_offset,
                             __global uint *restrict begins, const ulong begins_offset, const uint padded,
                             const uint lines) {
  const uint line = (uint)get_global_id(0);
  if (line > lines) return;
  uint low = 0, high = padded;  // the first word that is not below the line lies in [low, high]
  while (low < high) {
    const uint middle = low + (high - low) / 2;
    if ((uint)(words[words_offset + middle] >> 32) < line) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  begins[begins_offset + line] = low;
}

__kernel void scatter_lines(__global const float *restrict src, const ulong src_offset,
                            __global const ulong *restrict words, const ulong words_offset,
                            __global const uint *restrict begins, const ulong begins_offset,
                            __global float *dst, const ulong dst_offset, const uint width,
                            const uint lines BASE_PARAMETERS) {
  const uint column = (uint)get_global_id(0), step = (uint)get_global_size(0), line = (uint)get_global_id(1);
  if (line >= lines) return;
  const uint begin = begins[begins_offset + line], end = begins[begins_offset + line + 1];
#ifdef HAS_BASE
  if (begin == end && base + base_offset == dst + dst_offset) return;
#endif
  src += src_offset;
  float sum[COLUMNS];
#pragma unroll
  for (uint c = 0; c < COLUMNS; ++c) sum[c] = 0.0f;
  for (uint k = begin; k < end; ++k) {
    __global const float *row = src + (ulong)(uint)words[words_offset + k] * width;
#pragma unroll
    for (uint c = 0; c < COLUMNS; ++c) {
      if (column + c * step < width) sum[c] += row[column + c * step];
    }
  }
  const ulong first = (ulong)line * width;
#pragma unroll
  for (uint c = 0; c < COLUMNS; ++c) {
    if (column + c * step < width) dst[dst_offset + first + column + c * step] = BASE(first + column + c * step) + sum[c];
  }
}
