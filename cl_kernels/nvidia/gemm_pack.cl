// gemm_wgmma_pack: the left operand of a product as gemm_wgmma.cl reads it: rounded or split into planes, in blocks of 8 rows by
// 16 bytes of k, as (batch, tile of k, tile of rows, plane, k / BLOCK_K in the tile, row / 8, row % 8, BLOCK_K), zeros past the
// edges. An item packs BLOCK_K numbers of a row, neighbours in a group neighbouring rows: 4 bytes read an element, 6, 4 or 2
// written. Definitions: PRECISION and TILE_Q as in gemm_wgmma.cl.
#include "gemm_operands.h"

#define SPLIT 0
#define TF32 1
#define BF16 2
#define FP16 3

#define TILE_K 32
#if PRECISION == SPLIT
#define PLANES 3
#else
#define PLANES 1
#endif
#if PRECISION == TF32
#define BLOCK_K 4
#else
#define BLOCK_K 8
#endif
#if PRECISION == FP16
#define PACK(to, low, high) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#else
#define PACK(to, low, high) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#endif

__kernel void gemm_wgmma_pack(uint m_size, uint k_size, GEMM_A_PARAMETERS, __global uint4 *restrict packed,
                              ulong packed_offset) {
  const uint m = (uint)get_global_id(0), block = (uint)get_global_id(1), batch = (uint)get_global_id(2);
  const uint tiles_q = (m_size + TILE_Q - 1) / TILE_Q, tiles_k = (k_size + TILE_K - 1) / TILE_K;
  const uint tile_k = block / (TILE_K / BLOCK_K), in_tile = block % (TILE_K / BLOCK_K);
  const uint plane_chunks = TILE_Q * TILE_K / BLOCK_K;
  packed += packed_offset + (((ulong)batch * tiles_k + tile_k) * tiles_q + m / TILE_Q) * PLANES * plane_chunks +
            in_tile * TILE_Q + m % TILE_Q;
  a += a_offset + batch * a_batch;

  float values[BLOCK_K];
#pragma unroll
  for (uint i = 0; i < BLOCK_K; ++i) {
    const uint k = block * BLOCK_K + i;
    values[i] = m < m_size && k < k_size ? a[A_ROW(m) + A_STEP(k)] : 0.0f;
  }
#if PRECISION == TF32
  // The unit ignores the low 13 bits: the nearest, ties away from zero.
  packed[0] = (uint4)(as_uint(values[0]) + 0x1000u, as_uint(values[1]) + 0x1000u, as_uint(values[2]) + 0x1000u,
                      as_uint(values[3]) + 0x1000u);
#else
#pragma unroll
  for (uint plane = 0; plane < PLANES; ++plane) {
    uint pairs[4];
#pragma unroll
    for (uint i = 0; i < 4; ++i) {
      PACK(pairs[i], values[2 * i], values[2 * i + 1]);
      values[2 * i] -= as_float(pairs[i] << 16);
      values[2 * i + 1] -= as_float(pairs[i] & 0xffff0000u);
    }
    packed[plane * plane_chunks] = (uint4)(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
#endif
}
