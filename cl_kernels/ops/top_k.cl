// Top-k over the middle axis of src (outer, length, inner): values and indices (outer, k, inner). A value and its index
// make one 64-bit word, the value as an integer of the same order in front (NaN above all; turned over unless LARGEST),
// so that no two words are equal. LANES items share a row (shared/lanes.h) and find the largest word below the one before, k
// times: k·length comparisons, from cache after the first time.
#include "shared/lanes.h"

static inline ulong top_k_word(float value, uint index) {
  const uint bits = as_uint(value == 0.0f ? 0.0f : value);  // −0 equals 0
  uint order = value != value ? 0xffffffffu : (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
#ifndef LARGEST
  order = ~order;
#endif
  return ((ulong)order << 32) | (uint)~index;
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void top_k(
    __global const float *restrict src, ulong src_offset, __global float *restrict values, ulong values_offset,
    __global int *restrict indices, ulong indices_offset, ulong rows, ulong length, ulong inner, ulong k) {
  LANES_SCRATCH(ulong, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, outer = min(row, rows - 1) / inner;
  const ulong in = min(row, rows - 1) - outer * inner;
  src += src_offset + outer * length * inner + in;
  values += values_offset + outer * k * inner + in;
  indices += indices_offset + outer * k * inner + in;
  ulong limit = ULONG_MAX;
  for (ulong round = 0; round < k; ++round) {
    ulong best = 0;
    for (ulong i = LANE; i < length; i += LANES) {
      const ulong word = top_k_word(src[i * inner], (uint)i);
      if (word <= limit) best = max(best, word);
    }
    LANES_REDUCE(best, scratch, max);
    limit = best - 1;
    if (LANE > 0 || row >= rows) continue;
    const uint index = ~(uint)best;
    values[round * inner] = src[index * inner];
    indices[round * inner] = (int)index;
  }
}
