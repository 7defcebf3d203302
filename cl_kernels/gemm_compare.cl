// gemm_compare_largest, gemm_compare_count: what the tuner needs to hold a product against the right one on the device. An
// item looks at every so many numbers. 4 and 8 bytes a number; found: one or two uint, set before.
#define UNTOUCHED 0x7fc0c0deu  // what no product writes

// found[0]: the bits of the largest finite magnitude, which are in the order of the numbers.
__kernel void gemm_compare_largest(__global const float *expected, ulong expected_offset, __global uint *found,
                                   ulong found_offset, ulong elements) {
  float largest = 0.0f;
  for (ulong i = get_global_id(0); i < elements; i += get_global_size(0)) {
    const float value = fabs(expected[expected_offset + i]);
    if (isfinite(value)) largest = fmax(largest, value);
  }
  atomic_max(found + found_offset, as_uint(largest));
}

static inline bool agrees(float a, float b, float tolerance) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) && (as_uint(a) == UNTOUCHED) == (as_uint(b) == UNTOUCHED);
  if (isinf(a) || isinf(b)) return a == b;
  return fabs(a - b) <= tolerance;
}

// found[0]: how many numbers are wrong; found[1]: the least of their places, as far as uint goes. Where not all are
// known (!whole), those that are not do not count.
__kernel void gemm_compare_count(__global const float *result, ulong result_offset, __global const float *expected,
                                 ulong expected_offset, __global uint *found, ulong found_offset, ulong elements,
                                 float tolerance, uint whole) {
  uint wrong = 0, first = 0xffffffffu;
  for (ulong i = get_global_id(0); i < elements; i += get_global_size(0)) {
    const float right = expected[expected_offset + i];
    if (!whole && as_uint(right) == UNTOUCHED) continue;
    if (agrees(result[result_offset + i], right, tolerance)) continue;
    if (wrong++ == 0) first = (uint)min(i, (ulong)0xffffffffu);
  }
  if (wrong == 0) return;
  atomic_add(found + found_offset, wrong);
  atomic_min(found + found_offset + 1, first);
}
