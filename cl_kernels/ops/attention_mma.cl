// attention_mma_forward: attention_forward of cl_kernels/ops/attention.cl on NVIDIA's matrix units. Group (head, batch,
// block) owns OWN queries of a head, the longest blocks first where queries see no later keys; a lane has largest score
// and sum of its rows in registers. A group reads 8·WIDTH bytes a key and does 4·OWN·WIDTH FLOPs.
// Local memory: 4·(OWN + 4·OTHER)·PADDED + 4·OTHER + 4 bytes.
// q, dst (batch, heads, queries, WIDTH); k, v (batch, key_heads, keys, WIDTH), or tokens before heads; logsumexp (batch,
// heads, queries); statistics (2, batch, heads, queries): of every row the largest score and 1 / Σ exp(score − largest).
#include "ops/attention_mma.h"

// The largest of, or the sum over, the four lanes of a row.
static inline float row_largest(float value) {
  value = fmax(value, as_float(lane_xor(as_uint(value), 1)));
  return fmax(value, as_float(lane_xor(as_uint(value), 2)));
}
static inline float row_sum(float value) {
  value += as_float(lane_xor(as_uint(value), 1));
  return value + as_float(lane_xor(as_uint(value), 2));
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_mma_forward(
    __global const vector_t *q, ulong q_offset, __global const vector_t *k, ulong k_offset, __global const vector_t *v,
    ulong v_offset, __global vector_t *dst, ulong dst_offset, __global float *logsumexp, ulong logsumexp_offset,
    __global float *statistics, ulong statistics_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  __local uint4 query_tile[OWN * PIECES] __attribute__((aligned(128)));
  __local uint4 tiles[2 * 2 * OTHER * PIECES] __attribute__((aligned(128)));  // keys and values, twice
  __local int flag, marks[OTHER];
  BEGIN_DROPOUT()
  const uint first = ((uint)get_num_groups(2) - 1 - (uint)get_group_id(2)) * OWN;
  const uint head = (uint)get_group_id(0), batch = (uint)get_group_id(1);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong all_rows = (ulong)get_num_groups(1) * heads * queries;
  const uint key_head = head / (heads / key_heads);
  q += q_offset + OF_Q(batch, head);
  dst += dst_offset + OF_HEAD(batch, head, heads, queries);
  statistics += statistics_offset + of_queries;
  k += k_offset + OF_K(batch, key_head);
  v += v_offset + OF_V(batch, key_head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#endif
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  const uint own = first + WARP * WARP_ROWS;  // the warp's first row
  // Keys that the last row of the group, and of the warp, sees.
  const uint end = valid ? keys_seen(min(first + OWN, queries) - 1, length, queries) : 0;
  const uint warp_end = own < queries ? keys_seen(min(own + WARP_ROWS, queries) - 1, length, queries) : 0;
#ifndef MASK
  const uint all_end = keys_seen(min(own, queries - 1), length, queries);  // what all rows of the warp see
#endif

  float results[M_TILES][D_TILES][4], largest[M_TILES][2], sum[M_TILES][2];
#define COPY_TILE(tile, to)                                         \
  copy_rows(tiles + (to), k, K_PITCH, (tile), OTHER, (uint)length); \
  copy_rows(tiles + (to) + OTHER * PIECES, v, V_PITCH, (tile), OTHER, (uint)length);
  bool guarded = false;
#pragma unroll 1
  for (;; guarded = true) {
    EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) results[i][j][e] = 0.0f;
    EACH(i, M_TILES) EACH(below, 2) {
      largest[i][below] = -INFINITY;
      sum[i][below] = 0.0f;
    }
    if (end > 0) {
      copy_rows(query_tile, q, Q_PITCH, first, OWN, queries);
      COPY_TILE(0, 0)
    }
    COMMIT();
    uint from = 0;
    for (uint tile = 0; tile < end; tile += OTHER) {
      WAIT_ALL();
      barrier(CLK_LOCAL_MEM_FENCE);
      const uint to = 2 * OTHER * PIECES - from;
      if (tile + OTHER < end) {
        COPY_TILE(tile + OTHER, to)
      }
      COMMIT();
      __local const uint4 *key_tile = tiles + from, *value_tile = key_tile + OTHER * PIECES;
      from = to;
      if (guarded) clean_rows(tiles + (2 * OTHER * PIECES - to) + OTHER * PIECES, marks);
      if (tile >= warp_end) continue;
      float scores[M_TILES][N_TILES][4], factors[M_TILES][2];
      multiply_rows(query_tile + WARP * WARP_ROWS * PIECES, key_tile, scores);
#ifndef MASK
      EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) scores[i][j][e] *= scale;
      if (tile + OTHER > all_end)
#endif
      {
        EACH(i, M_TILES) EACH(below, 2) {
          const uint t = min(own + 16 * i + 8 * below + ROW, queries - 1), seen = keys_seen(t, length, queries);
          EACH(j, N_TILES) EACH(odd, 2) {
            const uint s = tile + 8 * j + 2 * QUAD + odd, e = 2 * below + odd;
#ifdef MASK
            if (s < seen) scores[i][j][e] = masked_score(scores[i][j][e], scale, mask[t * mask_row + s]);
#endif
            if (s >= seen) scores[i][j][e] = -INFINITY;
          }
        }
      }
      EACH(i, M_TILES) EACH(below, 2) {
        float now = largest[i][below];
        EACH(j, N_TILES) now = fmax(now, fmax(scores[i][j][2 * below], scores[i][j][2 * below + 1]));
        now = row_largest(now);
        factors[i][below] = change_of(largest[i][below], now);
        largest[i][below] = now;
        sum[i][below] *= factors[i][below];
        EACH(j, N_TILES) EACH(odd, 2) {
          const float weight = power_of(scores[i][j][2 * below + odd], now);
          sum[i][below] += weight;
          scores[i][j][2 * below + odd] = weight;
        }
      }
#ifdef DROPOUT
      // What is kept is multiplied at the end.
      const uint row_of_squares = drawn_row(batch * heads + head, own, queries);
      EACH(i, M_TILES) EACH(pair, N_TILES / 2) {
        const philox_block drawn = draw_keys(dropout, row_of_squares + i, tile + 16 * pair);
        EACH(e, 8) {
          if (!KEEPS_KEY(drawn, e)) scores[i][2 * pair + e / 4][e % 4] = 0.0f;
        }
      }
#endif
      add_weighted(scores, value_tile, factors, results);
    }
    if (guarded || !any_item(&flag, has_strange(results))) break;
  }
  float factors[M_TILES][2];
  EACH(i, M_TILES) EACH(below, 2) {
    const float all = row_sum(sum[i][below]);
    const uint t = own + 16 * i + 8 * below + ROW;
    factors[i][below] = all == 0.0f ? 0.0f : 1.0f / all;
    if (!valid) factors[i][below] = NAN;
    if (QUAD == 0 && t < queries) {
      logsumexp[logsumexp_offset + of_queries + t] = valid ? largest[i][below] + log(all) : NAN;
      statistics[t] = valid ? largest[i][below] : NAN;
      statistics[all_rows + t] = factors[i][below];
    }
    factors[i][below] *= KEPT_FACTOR;
  }
  store_rows(dst, QUERY_PITCH, own, queries, results, factors);
  // Values that are not finite reach the rows that see them.
  if (guarded) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (uint e = ITEM; e < OWN * WIDTH; e += THREADS) {
      const uint t = first + e / WIDTH, d = e % WIDTH;
      if (t >= queries || !valid) continue;
      add_to(dst + (ulong)t * QUERY_PITCH + d,
             strange_values(v, t, d, q, k, statistics, statistics + all_rows, queries, keys, length, scale,
                            batch * heads + head HEAD_MASK(0) DROPOUT_ARGUMENTS));
    }
  }
}
