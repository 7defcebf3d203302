// gemm_combine_parts: second pass of a product whose k was split. A work-item owns one element of C and adds its parts in
// order (so the result does not depend on timing), applies the epilogue and writes. (parts + 1)·4 bytes an element.
// The parts lie as (part, batch, m, n).
#include "gemm_operands.h"

__kernel void gemm_combine_parts(uint m_size, uint n_size, uint batches, uint parts,
                                 __global const float *restrict partial, ulong partial_offset,
                                 GEMM_C_PARAMETERS EPILOGUE_PARAMETERS) {
  const uint n = (uint)get_global_id(0), m = (uint)get_global_id(1), batch = (uint)get_global_id(2);
  if (n >= n_size) return;
  const ulong part_size = (ulong)batches * m_size * n_size;
  partial += partial_offset + ((ulong)batch * m_size + m) * n_size + n;
  c += c_offset + batch * c_batch;
  float sum = 0.0f;
#pragma unroll 8
  for (uint part = 0; part < parts; ++part) sum += partial[part * part_size];
  const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
  c[(index_t)m * c_m + C_COLUMN(outer, inner)] = EPILOGUE(sum, batch, m, outer, inner);
}
