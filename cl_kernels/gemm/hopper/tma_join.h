// How gemm/hopper/tma.cl adds up the parts of a cut k in the launch that makes them: each group writes the part of its work,
// meets the groups of the other parts of its tile, and finishes a share of the tile, whose parts it adds up in order. All
// groups are on the device at once, and each has one work. JOINED asks for it. Uses that file's names.
//   joined    the parts (part, batch, n, m) where C lies channels-last, else (part, batch, m, n)
//   meetings  a number for each tile of each batch
#ifndef CONCORD_NVIDIA_GEMM_TMA_JOIN_H
#define CONCORD_NVIDIA_GEMM_TMA_JOIN_H

#ifdef JOINED
#include "shared/nvidia/meeting.h"

// Where blocks of parts go.
#define BLOCK_PARTS ((__global uint4 *)(joined + joined_offset))
#define JOIN_MEMORIES(MEMORY) MEMORY(float *, joined) MEMORY(uint *, meetings)
#define JOIN_NUMBERS(NUMBER) NUMBER(ulong, joined_offset) NUMBER(ulong, meetings_offset) NUMBER(uint, parts)
#define JOIN_MEMORY __local uint is_lost;
#define JOINED_AT_ONCE 8  // parts whose reads are on their way

#define MULTIPLIERS_BARRIER() asm volatile("bar.sync 3, %0;" ::"n"(MULTIPLIERS) : "memory")
// `count` elements or blocks of the tile; this group's are those from its share on.
#define MEET_AND_SHARE(count)                                                                                       \
  MULTIPLIERS_BARRIER();                                                                                            \
  if (t == 0)                                                                                                       \
    is_lost = !have_all_come(meetings + meetings_offset + batch * tiles_c + tile, parts, part_number == 0);         \
  MULTIPLIERS_BARRIER();                                                                                            \
  const uint share = ((count) + parts - 1) / parts, share_end = min(count, (part_number + 1) * share);              \
  for (uint i = part_number * share + t; i < share_end; i += MULTIPLIERS)

#ifdef C_CHANNELS_LAST
// An item finishes blocks of 8 channels.
#define JOIN_TILE()                                                                                              \
  {                                                                                                              \
    const uint across = TILE_Q / BLOCK_CHANNELS;                                                                 \
    MEET_AND_SHARE(across * min((uint)TILE_R, n_size - r_begin)) {                                               \
      const uint n = r_begin + i / across, m = q_begin + i % across * BLOCK_CHANNELS;                            \
      if (m >= m_size) continue;                                                                                 \
      const ulong pitch = (ulong)batches * n_size * m_size / 4;                                                  \
      __global const float4 *const from =                                                                        \
          (__global const float4 *)(joined + joined_offset) + (((ulong)batch * n_size + n) * m_size + m) / 4;    \
      float4 low = (float4)(0.0f), high = low;                                                                   \
      for (uint first = 0; first < parts; first += JOINED_AT_ONCE) {                                             \
        float4 lows[JOINED_AT_ONCE], highs[JOINED_AT_ONCE];                                                      \
        EACH(p, JOINED_AT_ONCE) {                                                                                \
          __global const float4 *const one = from + min(first + p, parts - 1) * pitch;                           \
          lows[p] = shown(one);                                                                                  \
          highs[p] = shown(one + 1);                                                                             \
        }                                                                                                        \
        EACH(p, JOINED_AT_ONCE) {                                                                                \
          low += first + p < parts ? lows[p] : (float4)(0.0f);                                                   \
          high += first + p < parts ? highs[p] : (float4)(0.0f);                                                 \
        }                                                                                                        \
      }                                                                                                          \
      float finished[BLOCK_CHANNELS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};             \
      if (is_lost) EACH_CHANNEL(e) finished[e] = NAN;                                                            \
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);                                                  \
      const ulong at = ((ulong)outer * c_outer + (ulong)inner * m_size + m) / BLOCK_CHANNELS;                    \
      EPILOGUE_BLOCK(finished, at, outer, m);                                                                    \
      result[at] = block_of(finished);                                                                           \
    }                                                                                                            \
  }
#else
// An item finishes elements of C.
#define JOIN_TILE()                                                                                           \
  {                                                                                                           \
    MEET_AND_SHARE((uint)(TILE_Q * TILE_R)) {                                                                 \
      const uint m = q_begin + i / TILE_R;                                                                    \
      uint n;                                                                                                 \
      bool is_inside;                                                                                         \
      FIND_COLUMN(r_begin + i % TILE_R, n, is_inside)                                                         \
      if (m >= m_size || !is_inside) continue;                                                                \
      const ulong pitch = (ulong)batches * m_size * n_size;                                                   \
      __global const float *const from = joined + joined_offset + ((ulong)batch * m_size + m) * n_size + n;   \
      float sum = 0.0f;                                                                                       \
      for (uint first = 0; first < parts; first += JOINED_AT_ONCE) {                                          \
        float ones[JOINED_AT_ONCE];                                                                           \
        EACH(p, JOINED_AT_ONCE) ones[p] = shown_one(from + min(first + p, parts - 1) * pitch);                \
        EACH(p, JOINED_AT_ONCE) sum += first + p < parts ? ones[p] : 0.0f;                                    \
      }                                                                                                       \
      if (is_lost) sum = NAN;                                                                                 \
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);                                               \
      result[(ulong)batch * c_batch + (index_t)m * c_m + C_COLUMN(outer, inner)] =                            \
          EPILOGUE(sum, batch, m, outer, inner);                                                              \
    }                                                                                                         \
  }
#endif

#else
#define BLOCK_PARTS result
#define JOIN_MEMORIES(MEMORY)
#define JOIN_NUMBERS(NUMBER)
#define JOIN_MEMORY
#define JOIN_TILE()
#endif

#endif
