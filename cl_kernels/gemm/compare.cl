// gemm_compare_largest, gemm_compare_count: what the tuner needs to hold a product against the right one on the device. An
// item looks at every so many numbers, which are floats, or of 16 bits with NUMBERS_F16 or NUMBERS_BF16. 4 and 8 bytes a
// float; found: one or two uint, set before.
#if defined(NUMBERS_F16) || defined(NUMBERS_BF16)
typedef ushort number_t;
#define UNTOUCHED 0x7fc1u  // a NaN that no product writes
#else
typedef uint number_t;
#define UNTOUCHED 0x7fc17fc1u
#endif

static inline float value_of(number_t bits) {
#if defined(NUMBERS_F16)
  return vload_half(0, (const half *)&bits);
#elif defined(NUMBERS_BF16)
  return as_float((uint)bits << 16);
#else
  return as_float(bits);
#endif
}

// found[0]: the bits of the largest finite magnitude, which are in the order of the numbers.
__kernel void gemm_compare_largest(__global const number_t *expected, ulong expected_offset, __global uint *found,
                                   ulong found_offset, ulong elements) {
  float largest = 0.0f;
  for (ulong i = get_global_id(0); i < elements; i += get_global_size(0)) {
    const float value = fabs(value_of(expected[expected_offset + i]));
    if (isfinite(value)) largest = fmax(largest, value);
  }
  atomic_max(found + found_offset, as_uint(largest));
}

static inline bool agree(number_t a_bits, number_t b_bits, float tolerance) {
  const float a = value_of(a_bits), b = value_of(b_bits);
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) && (a_bits == UNTOUCHED) == (b_bits == UNTOUCHED);
  if (isinf(a) || isinf(b)) return a == b;
  return fabs(a - b) <= tolerance;
}

// found[0]: how many numbers are wrong; found[1]: the least of their places, as far as uint goes. Where not all are
// known (!whole), those that are not do not count.
__kernel void gemm_compare_count(__global const number_t *result, ulong result_offset,
                                 __global const number_t *expected, ulong expected_offset, __global uint *found,
                                 ulong found_offset, ulong elements, float tolerance, uint whole) {
  uint wrong = 0, first = 0xffffffffu;
  for (ulong i = get_global_id(0); i < elements; i += get_global_size(0)) {
    const number_t right = expected[expected_offset + i];
    if (!whole && right == UNTOUCHED) continue;
    if (agree(result[result_offset + i], right, tolerance)) continue;
    if (wrong++ == 0) first = (uint)min(i, (ulong)0xffffffffu);
  }
  if (wrong == 0) return;
  atomic_add(found + found_offset, wrong);
  atomic_min(found + found_offset + 1, first);
}
