// What the gradients of attention on the warpgroup instructions of NVIDIA's Hopper GPUs share: the kernels of
// cl_kernels/ops/attention_backward.cl, whose formulas hold here. Groups are (head, batch, block), the longest blocks first
// where queries see no later keys. Each tile of scores is computed by both kernels, so that a sum has one owner and a fixed
// order. Local memory: 2·OWN_BYTES + 2·STAGES·TILE_BYTES, 12·STAGES·OTHER more for keys and values.
// q, diff_dst, diff_q (batch, heads, queries, WIDTH); k, v, diff_k, diff_v (batch, key_heads, keys, WIDTH);
// statistics (2, batch, heads, queries), delta (batch, heads, queries). With TOKENS_FIRST tokens come before heads in all
// but statistics. maps: of q, k, v and diff_dst.
#ifndef CONCORD_ATTENTION_WGMMA_BACKWARD_H
#define CONCORD_ATTENTION_WGMMA_BACKWARD_H
#include "ops/attention_wgmma.h"

// A score, a sum of products, with its mask, to exp(score − largest).
#ifdef MASK
#define POWER(score, added, shift) ((added) == -INFINITY ? 0.0f : power_of(fma(scale, score, added), 1.0f, shift))
#else
#define POWER(score, added, shift) power_of(score, scale, shift)
#endif

#define BACKWARD_PARAMETERS                                                                                            \
  __global const vector_t *q, ulong q_offset, __global const vector_t *k, ulong k_offset, __global const vector_t *v,   \
      ulong v_offset, __global const vector_t *diff_dst, ulong diff_dst_offset, __global const float *statistics,       \
      ulong statistics_offset, __global const float *delta, ulong delta_offset

// Two tiles that the group owns and a ring of two tiles of the other side.
#define BEGIN_TILES(more_bytes, full_arrivals)                                                                    \
  __local uint4 tiles[(2 * OWN_BYTES + STAGES * (2 * TILE_BYTES + (more_bytes))) / 16]                            \
      __attribute__((aligned(1024)));                                                                             \
  __local ulong barriers[1 + 4 * STAGES];                                                                         \
  const uint own_tile = (uint)(size_t)tiles, own_second = own_tile + OWN_BYTES, ring = own_second + OWN_BYTES;    \
  const uint ring_second = ring + STAGES * TILE_BYTES;                                                            \
  const uint own_full = (uint)(size_t)barriers, full = own_full + 8, empty = full + 8 * STAGES;                   \
  const uint second_full = empty + 8 * STAGES, second_empty = second_full + 8 * STAGES;                           \
  if (ITEM == 0) {                                                                                                \
    BARRIER_BEGIN(own_full, 1);                                                                                   \
    for (uint i = 0; i < STAGES; ++i) {                                                                           \
      BARRIER_BEGIN(full + 8 * i, full_arrivals);                                                                 \
      BARRIER_BEGIN(second_full + 8 * i, 1);                                                                      \
      BARRIER_BEGIN(empty + 8 * i, MULTIPLIERS / 32);                                                             \
      BARRIER_BEGIN(second_empty + 8 * i, MULTIPLIERS / 32);                                                      \
    }                                                                                                             \
    BARRIERS_BEGUN();                                                                                             \
  }                                                                                                               \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                                   \
  uint stage = 0, phase = 0, tries = MOST_TRIES;
#define LOCAL_TILE(address) ((__local ushort *)tiles + ((address) - own_tile) / 2)

#endif
