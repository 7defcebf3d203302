// gemm_combine_parts: second pass of a product whose k was split. A work-item owns one element of C and adds its parts in
// order (so the result does not depend on timing), applies the epilogue and writes. (parts + 1)·4 bytes an element.
// The parts lie as (part, batch, m, n).
#include "gemm/operands.h"

#define COMBINE_NUMBERS(NUMBER)                                                       \
  NUMBER(uint, m_size) NUMBER(uint, n_size) NUMBER(uint, batches) NUMBER(uint, parts) \
  NUMBER(ulong, partial_offset) GEMM_C_NUMBERS(NUMBER)
typedef struct { COMBINE_NUMBERS(NUMBER_MEMBER) } combine_numbers;

#ifdef C_CHANNELS_LAST
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"

// A work-item owns a block of 8 values of m. The parts lie as (part, n, m).
#define COMBINE_MEMORIES(MEMORY) MEMORY(const float4 *restrict, partial) MEMORY(uint4 *, c)
__kernel void gemm_combine_blocks(MEMORY_PARAMETERS(COMBINE_MEMORIES)
                                  const combine_numbers numbers EPILOGUE_PARAMETERS) {
  COMBINE_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(COMBINE_MEMORIES)
  const uint blocks = m_size / BLOCK_CHANNELS, i = (uint)get_global_id(0), n = i / blocks;
  if (n >= n_size) return;
  const ulong part_size = (ulong)m_size * n_size / 4;
  partial += partial_offset + 2ul * i;
  float4 low = (float4)(0.0f), high = low;
#pragma unroll 4
  for (uint part = 0; part < parts; ++part) {
    low += partial[part * part_size];
    high += partial[part * part_size + 1];
  }
  float values[BLOCK_CHANNELS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  const uint m = (i - n * blocks) * BLOCK_CHANNELS, outer = C_OUTER(n), inner = C_INNER(n, outer);
  const ulong at = ((ulong)outer * c_outer + (ulong)inner * m_size + m) / BLOCK_CHANNELS;
  EPILOGUE_BLOCK(values, at, outer, m);
  c[c_offset + at] = block_of(values);
}
#else
#define COMBINE_MEMORIES(MEMORY) MEMORY(const float *restrict, partial) MEMORY(float *, c)
__kernel void gemm_combine_parts(MEMORY_PARAMETERS(COMBINE_MEMORIES)
                                 const combine_numbers numbers EPILOGUE_PARAMETERS) {
  COMBINE_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(COMBINE_MEMORIES)
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
#endif
