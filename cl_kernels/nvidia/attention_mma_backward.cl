// attention_mma_backward_query and attention_mma_backward_key_value: the kernels of cl_kernels/attention_backward.cl,
// whose formulas hold here, on NVIDIA's matrix units. Groups are (head, batch, block), the longest blocks first where
// queries see no later keys. Local memory: 4·(2·OWN + 4·OTHER)·PADDED bytes, 16·OTHER more for keys and values.
// q, diff_dst, diff_q (batch, heads, queries, WIDTH); k, v, diff_k, diff_v (batch, key_heads, keys, WIDTH);
// logsumexp, delta (batch, heads, queries). With TOKENS_FIRST tokens come before heads in all but logsumexp.
#include "nvidia/attention_mma.h"

// What is added to a score to base two before the power; −∞ for a row that sees nothing, whose logsumexp is −∞.
static inline float shift_of(const float logsumexp) { return logsumexp == -INFINITY ? -INFINITY : -LOG2_E * logsumexp; }

// score, a sum of products, to a weight; `added` is the mask.
#ifdef MASK
#define WEIGHT(score, added, shift) power_of_two(fma(fma(scale, score, added), LOG2_E, shift))
#else
#define WEIGHT(score, added, shift) power_of_two(fma(score, scale2, shift))
#endif

// A work-group owns OWN queries of one head; tiles of keys and values.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_mma_backward_query(
    __global const float *q, ulong q_offset, __global const float *k, ulong k_offset, __global const float *v,
    ulong v_offset, __global const float *diff_dst, ulong diff_dst_offset, __global const float *logsumexp,
    ulong logsumexp_offset, __global const float *delta, ulong delta_offset, __global float *diff_q, ulong diff_q_offset,
    SIZE_PARAMETERS FORM_PARAMETERS) {
  __local uint4 own_tiles[2 * OWN * FOURS] __attribute__((aligned(128)));  // of q and diff_dst
  __local uint4 tiles[2 * 2 * OTHER * FOURS] __attribute__((aligned(128)));
  const uint first = ((uint)get_num_groups(2) - 1 - (uint)get_group_id(2)) * OWN;
  const uint head = (uint)get_group_id(0), batch = (uint)get_group_id(1);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong of_vectors = OF_HEAD(batch, head, heads, queries);
  const ulong of_keys = OF_HEAD(batch, head / (heads / key_heads), key_heads, keys);
  k += k_offset + of_keys;
  v += v_offset + of_keys;
  logsumexp += logsumexp_offset + of_queries;
  delta += delta_offset + OF_DELTAS(batch, head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#else
  const float scale2 = scale * LOG2_E;
#endif
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  const uint own = first + WARP * WARP_ROWS;
  const uint end = valid ? keys_seen(min(first + OWN, queries) - 1, length, queries) : 0;
  const uint warp_end = own < queries ? keys_seen(min(own + WARP_ROWS, queries) - 1, length, queries) : 0;
  const uint all_end = keys_seen(min(own, queries - 1), length, queries);

  float results[M_TILES][D_TILES][4], shifts[M_TILES][2], row_delta[M_TILES][2], factors[M_TILES][2];
  EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) results[i][j][e] = 0.0f;
  EACH(i, M_TILES) EACH(below, 2) {
    const uint t = min(own + 16 * i + 8 * below + ROW, queries - 1);
    shifts[i][below] = shift_of(logsumexp[t]);
    row_delta[i][below] = delta[(ulong)t * DELTA_PITCH];
    factors[i][below] = 1.0f;
  }
#define COPY_TILE(tile, to)                                           \
  copy_rows(tiles + (to), k, KEY_PITCH, (tile), OTHER, (uint)length); \
  copy_rows(tiles + (to) + OTHER * FOURS, v, KEY_PITCH, (tile), OTHER, (uint)length);
  if (end > 0) {
    copy_rows(own_tiles, q + q_offset + of_vectors, QUERY_PITCH, first, OWN, queries);
    copy_rows(own_tiles + OWN * FOURS, diff_dst + diff_dst_offset + of_vectors, QUERY_PITCH, first, OWN, queries);
    COPY_TILE(0, 0)
  }
  COMMIT();
  uint from = 0;
  for (uint tile = 0; tile < end; tile += OTHER) {
    WAIT_ALL();
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint to = 2 * OTHER * FOURS - from;
    if (tile + OTHER < end) {
      COPY_TILE(tile + OTHER, to)
    }
    COMMIT();
    __local const uint4 *key_tile = tiles + from, *value_tile = key_tile + OTHER * FOURS;
    from = to;
    if (tile >= warp_end) continue;
    float weights[M_TILES][N_TILES][4], slopes[M_TILES][N_TILES][4];
    multiply_rows(own_tiles + WARP * WARP_ROWS * FOURS, key_tile, weights);
    EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) {
#ifdef MASK
      const uint t = min(own + 16 * i + e / 2 * 8 + ROW, queries - 1), s = tile + 8 * j + 2 * QUAD + e % 2;
      const float added = s < keys ? mask[t * mask_row + s] : 0.0f;
#endif
      weights[i][j][e] = WEIGHT(weights[i][j][e], added, shifts[i][e / 2]);
    }
    if (tile + OTHER > all_end) {
      EACH(i, M_TILES) EACH(below, 2) {
        const uint t = min(own + 16 * i + 8 * below + ROW, queries - 1), seen = keys_seen(t, length, queries);
        EACH(j, N_TILES) EACH(odd, 2) {
          if (tile + 8 * j + 2 * QUAD + odd >= seen) weights[i][j][2 * below + odd] = 0.0f;
        }
      }
    }
    multiply_rows(own_tiles + (OWN + WARP * WARP_ROWS) * FOURS, value_tile, slopes);
#ifdef DROPOUT
    EACH(i, M_TILES) EACH(j, N_TILES) {
      float drawn[4];
      draw_keys(drawn, of_queries + own + 16 * i + ROW, tile + 8 * j, keys DRAW_ARGUMENTS);
      EACH(e, 4) slopes[i][j][e] *= drawn[e];
    }
#endif
    EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) {
      slopes[i][j][e] = weights[i][j][e] * (slopes[i][j][e] - row_delta[i][e / 2]);
    }
    add_weighted(slopes, key_tile, factors, results);
  }
  EACH(i, M_TILES) EACH(below, 2) factors[i][below] = valid ? scale : NAN;
  store_rows(diff_q + diff_q_offset + of_vectors, QUERY_PITCH, own, queries, results, factors);
}
#undef COPY_TILE

// A work-group owns OWN keys and values of one head and walks over the queries of all heads that share them, so that a
// sum has one owner and a fixed order; tiles of q and diff_dst with their logsumexp and delta. Rows of scores are keys.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_mma_backward_key_value(
    __global const float *q, ulong q_offset, __global const float *k, ulong k_offset, __global const float *v,
    ulong v_offset, __global const float *diff_dst, ulong diff_dst_offset, __global const float *logsumexp,
    ulong logsumexp_offset, __global const float *delta, ulong delta_offset, __global float *diff_k, ulong diff_k_offset,
    __global float *diff_v, ulong diff_v_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  __local uint4 own_tiles[2 * OWN * FOURS] __attribute__((aligned(128)));  // of k and v
  __local uint4 tiles[2 * 2 * OTHER * FOURS] __attribute__((aligned(128)));
  __local float rows[2 * 2 * OTHER];
  const uint first = (uint)get_group_id(2) * OWN, batch = (uint)get_group_id(1), sharing = heads / key_heads;
  const ulong of_keys = OF_HEAD(batch, (uint)get_group_id(0), key_heads, keys);
  const uint first_head = (uint)get_group_id(0) * sharing;
  const ulong of_heads = ((ulong)batch * heads + first_head) * queries;  // the first query of the first head
  q += q_offset + OF_HEAD(batch, first_head, heads, queries);
  diff_dst += diff_dst_offset + OF_HEAD(batch, first_head, heads, queries);
  logsumexp += logsumexp_offset + of_heads;
  delta += delta_offset + OF_DELTAS(batch, first_head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + first_head * mask_head;
#else
  const float scale2 = scale * LOG2_E;
#endif
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  const uint own = first + WARP * WARP_ROWS;
  const uint begin = valid && first < (uint)length ? first_query(first, length, queries) / OTHER * OTHER : queries;
  const uint seen_heads = begin < queries ? sharing : 0;

  float key_results[M_TILES][D_TILES][4], value_results[M_TILES][D_TILES][4], factors[M_TILES][2];
  EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) key_results[i][j][e] = value_results[i][j][e] = 0.0f;
  EACH(i, M_TILES) EACH(below, 2) factors[i][below] = 1.0f;
#define COPY_TILE(head, tile, stage)                                                                             \
  {                                                                                                              \
    const ulong apart = (ulong)(head) * HEAD_APART;                                                              \
    copy_rows(tiles + (stage) * 2 * OTHER * FOURS, q + apart * WIDTH, QUERY_PITCH, (tile), OTHER, queries);      \
    copy_rows(tiles + ((stage) * 2 + 1) * OTHER * FOURS, diff_dst + apart * WIDTH, QUERY_PITCH, (tile), OTHER,   \
              queries);                                                                                          \
    for (uint r = ITEM; r < OTHER; r += THREADS) {                                                               \
      const bool wanted = (tile) + r < queries;                                                                  \
      const ulong t = wanted ? (tile) + r : 0;                                                                   \
      COPY_1(rows + (stage) * 2 * OTHER + r, logsumexp + (ulong)(head) * queries + t, wanted);                   \
      COPY_1(rows + ((stage) * 2 + 1) * OTHER + r, delta + apart + t * DELTA_PITCH, wanted);                     \
    }                                                                                                            \
  }
  if (seen_heads > 0) {
    copy_rows(own_tiles, k + k_offset + of_keys, KEY_PITCH, first, OWN, (uint)length);
    copy_rows(own_tiles + OWN * FOURS, v + v_offset + of_keys, KEY_PITCH, first, OWN, (uint)length);
    COPY_TILE(0, begin, 0)
  }
  COMMIT();
  uint stage = 0;
  for (uint head = 0; head < seen_heads; ++head) {
    for (uint tile = begin; tile < queries; tile += OTHER) {
      WAIT_ALL();
      barrier(CLK_LOCAL_MEM_FENCE);
      const bool is_last = tile + OTHER >= queries;
      if (!is_last || head + 1 < sharing) {
        COPY_TILE(is_last ? head + 1 : head, is_last ? begin : tile + OTHER, 1 - stage)
      }
      COMMIT();
      __local const uint4 *query_tile = tiles + stage * 2 * OTHER * FOURS, *diff_tile = query_tile + OTHER * FOURS;
      __local const float *tile_logsumexp = rows + stage * 2 * OTHER, *tile_delta = tile_logsumexp + OTHER;
      stage = 1 - stage;
      if (keys_seen(min(tile + OTHER, queries) - 1, length, queries) <= own) continue;
      float weights[M_TILES][N_TILES][4], slopes[M_TILES][N_TILES][4];
      multiply_rows(own_tiles + WARP * WARP_ROWS * FOURS, query_tile, weights);
      EACH(j, N_TILES) EACH(odd, 2) {
        const uint c = 8 * j + 2 * QUAD + odd;
        const float shift = shift_of(tile_logsumexp[c]);
        EACH(i, M_TILES) EACH(below, 2) {
          const uint e = 2 * below + odd;
#ifdef MASK
          const uint t = min(tile + c, queries - 1), s = own + 16 * i + 8 * below + ROW;
          const float added = s < keys ? mask[head * mask_head + t * mask_row + s] : 0.0f;
#endif
          weights[i][j][e] = WEIGHT(weights[i][j][e], added, shift);
        }
      }
      if (tile + OTHER > queries || keys_seen(tile, length, queries) < own + WARP_ROWS) {
        EACH(j, N_TILES) EACH(odd, 2) {
          const uint t = tile + 8 * j + 2 * QUAD + odd, seen = t < queries ? keys_seen(t, length, queries) : 0;
          EACH(i, M_TILES) EACH(below, 2) {
            if (own + 16 * i + 8 * below + ROW >= seen) weights[i][j][2 * below + odd] = 0.0f;
          }
        }
      }
#ifdef DROPOUT
      float drawn[M_TILES][N_TILES][4];
      EACH(i, M_TILES) EACH(j, N_TILES) {
        draw_queries(drawn[i][j], of_heads + (ulong)head * queries + tile + 8 * j + 2 * QUAD, own + 16 * i,
                     keys DRAW_ARGUMENTS);
        EACH(e, 4) slopes[i][j][e] = drawn[i][j][e] * weights[i][j][e];
      }
      add_weighted(slopes, diff_tile, factors, value_results);
#else
      add_weighted(weights, diff_tile, factors, value_results);
#endif
      multiply_rows(own_tiles + (OWN + WARP * WARP_ROWS) * FOURS, diff_tile, slopes);
      EACH(j, N_TILES) EACH(odd, 2) {
        const float column_delta = tile_delta[8 * j + 2 * QUAD + odd];
        EACH(i, M_TILES) EACH(below, 2) {
          const uint e = 2 * below + odd;
#ifdef DROPOUT
          slopes[i][j][e] *= drawn[i][j][e];
#endif
          slopes[i][j][e] = weights[i][j][e] * (slopes[i][j][e] - column_delta);
        }
      }
      add_weighted(slopes, query_tile, factors, key_results);
    }
  }
  EACH(i, M_TILES) EACH(below, 2) factors[i][below] = valid ? scale : NAN;
  store_rows(diff_k + diff_k_offset + of_keys, KEY_PITCH, own, keys, key_results, factors);
  EACH(i, M_TILES) EACH(below, 2) factors[i][below] = valid ? 1.0f : NAN;
  store_rows(diff_v + diff_v_offset + of_keys, KEY_PITCH, own, keys, value_results, factors);
}
