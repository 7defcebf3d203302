// gemm_reference_multiply: a work-item owns one element of C and walks along k. What every other GEMM is compared with,
// and what serves where nothing else fits: no local memory, any work-group size. 2·K FLOPs and 8·K bytes an item.
// With ROW_STEP it computes the last row and every so many before it.
#include "gemm/operands.h"

typedef struct { GEMM_NUMBERS(NUMBER_MEMBER) } reference_numbers;

__kernel void gemm_reference_multiply(MEMORY_PARAMETERS(GEMM_MEMORIES) const reference_numbers numbers EPILOGUE_PARAMETERS) {
  GEMM_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(GEMM_MEMORIES)
  const uint n = (uint)get_global_id(0), z = (uint)get_global_id(2);
#ifdef ROW_STEP
  const uint m = m_size - 1 - (uint)get_global_id(1) * ROW_STEP;
#else
  const uint m = (uint)get_global_id(1);
#endif
  const uint part_number = z / batches, batch = z - part_number * batches;
  const uint k_begin = part_number * k_part, k_end = min(k_size, k_begin + k_part);
  a += a_offset + batch * a_batch;
  b += b_offset + batch * b_batch;
  c += c_offset + z * c_batch;
#ifdef B_PATCH
  const patch_part part = PATCH_N(n);
#endif
  float sum = 0.0f;
  for (uint k = k_begin; k < k_end; ++k) {
#ifdef B_PATCH
    const float right = PATCH_LOAD(PATCH_K(k), part);
#else
    const float right = b[B_STEP_OF(k) + B_COLUMN_OF(n)];
#endif
    sum += a[A_ROW(m) + A_STEP(k)] * right;
  }
  const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
  c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
}
