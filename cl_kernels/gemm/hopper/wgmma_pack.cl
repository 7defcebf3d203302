// gemm_wgmma_pack: the left operand of a product as gemm/hopper/wgmma.cl reads it: rounded or split into planes, in blocks of 8 rows by
// 16 bytes of k, as (batch, tile of k, tile of rows, plane, k / BLOCK in the tile, row / 8, row % 8, BLOCK), zeros past the
// edges. An item packs BLOCK numbers of a row, neighbours in a group neighbouring rows: 4 bytes read an element, 6, 4 or 2
// written. Definitions: PRECISION and TILE_Q as in gemm/hopper/wgmma.cl.
#include "gemm/operands.h"
#include "shared/nvidia/units.h"

#define TILE_K 32

#define PACK_NUMBERS(NUMBER) \
  NUMBER(uint, m_size) NUMBER(uint, k_size) GEMM_A_NUMBERS(NUMBER) NUMBER(ulong, packed_offset)
typedef struct { PACK_NUMBERS(NUMBER_MEMBER) } pack_numbers;

#define PACK_MEMORIES(MEMORY) MEMORY(const float *restrict, a) MEMORY(uint4 *restrict, packed)
__kernel void gemm_wgmma_pack(MEMORY_PARAMETERS(PACK_MEMORIES) const pack_numbers numbers) {
  PACK_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(PACK_MEMORIES)
  const uint m = (uint)get_global_id(0), block = (uint)get_global_id(1), batch = (uint)get_global_id(2);
  const uint tiles_q = (m_size + TILE_Q - 1) / TILE_Q, tiles_k = (k_size + TILE_K - 1) / TILE_K;
  const uint tile_k = block / (TILE_K / BLOCK), in_tile = block % (TILE_K / BLOCK);
  const uint plane_chunks = TILE_Q * TILE_K / BLOCK;
  packed += packed_offset + (((ulong)batch * tiles_k + tile_k) * tiles_q + m / TILE_Q) * PLANES * plane_chunks +
            in_tile * TILE_Q + m % TILE_Q;
  a += a_offset + batch * a_batch;

  float values[BLOCK];
  EACH(i, BLOCK) {
    const uint k = block * BLOCK + i;
    values[i] = m < m_size && k < k_size ? a[A_ROW(m) + A_STEP(k)] : 0.0f;
  }
  store_planes(packed, plane_chunks, values);
}
