// attention_mma_backward_query and attention_mma_backward_key_value: the kernels of cl_kernels/ops/attention_backward.cl,
// whose formulas hold here, on NVIDIA's matrix units. Groups are (head, batch, block), the longest blocks first where
// queries see no later keys. Local memory: 4·((2·OWN + 4·OTHER)·PADDED + OTHER + 1) bytes, 24·OTHER more for keys and
// values.
// q, diff_dst, diff_q (batch, heads, queries, WIDTH); k, v, diff_k, diff_v (batch, key_heads, keys, WIDTH);
// statistics (2, batch, heads, queries), delta (batch, heads, queries). With TOKENS_FIRST tokens come before heads in all
// but statistics.
#include "ops/attention_mma.h"

// score, a sum of products, to exp(score − largest); `added` is the mask.
#ifdef MASK
#define POWER(score, added, largest) \
  ((added) == -INFINITY ? 0.0f : power_of(fma(scale, score, added), largest))
#else
#define POWER(score, added, largest) power_of((score) * scale, largest)
#endif

// A work-group owns OWN queries of one head; tiles of keys and values.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_mma_backward_query(
    __global const vector_t *q, ulong q_offset, __global const vector_t *k, ulong k_offset, __global const vector_t *v,
    ulong v_offset, __global const vector_t *diff_dst, ulong diff_dst_offset, __global const float *statistics,
    ulong statistics_offset, __global const float *delta, ulong delta_offset, __global vector_t *diff_q, ulong diff_q_offset,
    SIZE_PARAMETERS FORM_PARAMETERS) {
  __local uint4 own_tiles[2 * OWN * PIECES] __attribute__((aligned(128)));  // of q and diff_dst
  __local uint4 tiles[2 * 2 * OTHER * PIECES] __attribute__((aligned(128)));
  __local int flag, marks[OTHER];
  BEGIN_DROPOUT()
  const uint first = ((uint)get_num_groups(2) - 1 - (uint)get_group_id(2)) * OWN;
  const uint head = (uint)get_group_id(0), batch = (uint)get_group_id(1);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong all_rows = (ulong)get_num_groups(1) * heads * queries;
  const ulong of_vectors = OF_HEAD(batch, head, heads, queries);
  const uint key_head = head / (heads / key_heads);
  k += k_offset + OF_K(batch, key_head);
  v += v_offset + OF_V(batch, key_head);
  statistics += statistics_offset + of_queries;
  delta += delta_offset + OF_DELTAS(batch, head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#endif
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  const uint own = first + WARP * WARP_ROWS;
  const uint end = valid ? keys_seen(min(first + OWN, queries) - 1, length, queries) : 0;
  const uint warp_end = own < queries ? keys_seen(min(own + WARP_ROWS, queries) - 1, length, queries) : 0;
  const uint all_end = keys_seen(min(own, queries - 1), length, queries);

  float results[M_TILES][D_TILES][4], largest[M_TILES][2], row_delta[M_TILES][2], factors[M_TILES][2];
#ifdef NUMBERS_F16
  float inverse[M_TILES][2];
#endif
  EACH(i, M_TILES) EACH(below, 2) {
    const uint t = min(own + 16 * i + 8 * below + ROW, queries - 1);
    largest[i][below] = statistics[t];
#ifdef NUMBERS_F16
    inverse[i][below] = statistics[all_rows + t];
#endif
    row_delta[i][below] = delta[(ulong)t * DELTA_PITCH];
    factors[i][below] = 1.0f;
  }
#define COPY_TILE(tile, to)                                         \
  copy_rows(tiles + (to), k, K_PITCH, (tile), OTHER, (uint)length); \
  copy_rows(tiles + (to) + OTHER * PIECES, v, V_PITCH, (tile), OTHER, (uint)length);
  bool guarded = false;
#pragma unroll 1
  for (;; guarded = true) {
    EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) results[i][j][e] = 0.0f;
    if (end > 0) {
      copy_rows(own_tiles, q + q_offset + OF_Q(batch, head), Q_PITCH, first, OWN, queries);
      copy_rows(own_tiles + OWN * PIECES, diff_dst + diff_dst_offset + of_vectors, QUERY_PITCH, first, OWN, queries);
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
      if (guarded) clean_rows(tiles + (2 * OTHER * PIECES - to), marks);
      if (tile >= warp_end) continue;
      float weights[M_TILES][N_TILES][4], slopes[M_TILES][N_TILES][4];
      multiply_rows(own_tiles + WARP * WARP_ROWS * PIECES, key_tile, weights);
      EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) {
#ifdef MASK
        const uint t = min(own + 16 * i + e / 2 * 8 + ROW, queries - 1), s = tile + 8 * j + 2 * QUAD + e % 2;
        const float added = s < keys ? mask[t * mask_row + s] : 0.0f;
#endif
        weights[i][j][e] = POWER(weights[i][j][e], added, largest[i][e / 2]);
#ifdef NUMBERS_F16
        weights[i][j][e] *= inverse[i][e / 2];  // before slopes are packed: they would overflow
#endif
      }
      if (guarded) {  // a marked key that is seen has a weight of 0 or a row of NaN, which the sum of the row brings
        EACH(i, M_TILES) EACH(j, N_TILES) EACH(e, 4) {
          if (marks[8 * j + 2 * QUAD + e % 2]) weights[i][j][e] = 0.0f;
        }
      }
      if (tile + OTHER > all_end) {
        EACH(i, M_TILES) EACH(below, 2) {
          const uint t = min(own + 16 * i + 8 * below + ROW, queries - 1), seen = keys_seen(t, length, queries);
          EACH(j, N_TILES) EACH(odd, 2) {
            if (tile + 8 * j + 2 * QUAD + odd >= seen) weights[i][j][2 * below + odd] = 0.0f;
          }
        }
      }
      multiply_rows(own_tiles + (OWN + WARP * WARP_ROWS) * PIECES, value_tile, slopes);
      EACH(i, M_TILES) EACH(pair, N_TILES / 2) {
#ifdef DROPOUT
        const philox_block drawn =
            draw_keys(dropout, drawn_row(batch * heads + head, own, queries) + i, tile + 16 * pair);
#endif
        EACH(e, 8) {
          const uint j = 2 * pair + e / 4, x = e % 4;
          slopes[i][j][x] =
              slope_of(weights[i][j][x], KEEPS_KEY(drawn, e), KEPT_FACTOR, slopes[i][j][x], row_delta[i][x / 2]);
        }
      }
      add_weighted(slopes, key_tile, factors, results);
    }
    if (guarded || !any_item(&flag, has_strange(results))) break;
  }
  EACH(i, M_TILES) EACH(below, 2) {
#ifdef NUMBERS_F16
    factors[i][below] = valid && !isnan(inverse[i][below]) ? scale : NAN;
#else
    const uint t = min(own + 16 * i + 8 * below + ROW, queries - 1);
    factors[i][below] = valid ? scale * statistics[all_rows + t] : NAN;
#endif
  }
  store_rows(diff_q + diff_q_offset + of_vectors, QUERY_PITCH, own, queries, results, factors);
}
#undef COPY_TILE

// A work-group owns OWN keys and values of one head and walks over the queries of all heads that share them, so that a
// sum has one owner and a fixed order; tiles of q and diff_dst with their logsumexp and delta. Rows of scores are keys.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_mma_backward_key_value(
    __global const vector_t *q, ulong q_offset, __global const vector_t *k, ulong k_offset, __global const vector_t *v,
    ulong v_offset, __global const vector_t *diff_dst, ulong diff_dst_offset, __global const float *statistics,
    ulong statistics_offset, __global const float *delta, ulong delta_offset, __global vector_t *diff_k, ulong diff_k_offset,
    __global vector_t *diff_v, ulong diff_v_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  __local uint4 own_tiles[2 * OWN * PIECES] __attribute__((aligned(128)));  // of k and v
  __local uint4 tiles[2 * 2 * OTHER * PIECES] __attribute__((aligned(128)));
  __local float rows[2 * 3 * OTHER];  // largest scores, inverse sums and deltas
  __local int flag, marks[OTHER];
  BEGIN_DROPOUT()
  const uint first = (uint)get_group_id(2) * OWN, batch = (uint)get_group_id(1), sharing = heads / key_heads;
  const uint key_head = (uint)get_group_id(0), first_head = key_head * sharing;
  const ulong all_rows = (ulong)get_num_groups(1) * heads * queries;
  const ulong of_heads = ((ulong)batch * heads + first_head) * queries;  // the first query of the first head
  const ulong of_keys = OF_HEAD(batch, key_head, key_heads, keys);
  k += k_offset + OF_K(batch, key_head);
  diff_v += diff_v_offset + of_keys;
  q += q_offset + OF_Q(batch, first_head);
  diff_dst += diff_dst_offset + OF_HEAD(batch, first_head, heads, queries);
  statistics += statistics_offset + of_heads;
  delta += delta_offset + OF_DELTAS(batch, first_head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + first_head * mask_head;
#endif
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  const uint own = first + WARP * WARP_ROWS;
  const uint begin = valid && first < (uint)length ? first_query(first, length, queries) / OTHER * OTHER : queries;
  const uint seen_heads = begin < queries ? sharing : 0;

  float key_results[M_TILES][D_TILES][4], value_results[M_TILES][D_TILES][4], factors[M_TILES][2];
  EACH(i, M_TILES) EACH(below, 2) factors[i][below] = 1.0f;
#define COPY_TILE(head, tile, stage)                                                                             \
  {                                                                                                              \
    const ulong apart = (ulong)(head) * HEAD_APART;                                                              \
    copy_rows(tiles + (stage) * 2 * OTHER * PIECES, q + apart * WIDTH, Q_PITCH, (tile), OTHER, queries);          \
    copy_rows(tiles + ((stage) * 2 + 1) * OTHER * PIECES, diff_dst + apart * WIDTH, QUERY_PITCH, (tile), OTHER,   \
              queries);                                                                                          \
    for (uint r = ITEM; r < OTHER; r += THREADS) {                                                               \
      const bool wanted = (tile) + r < queries;                                                                  \
      const ulong t = wanted ? (tile) + r : 0;                                                                   \
      COPY_1(rows + (stage) * 3 * OTHER + r, statistics + (ulong)(head) * queries + t, wanted);                  \
      COPY_1(rows + ((stage) * 3 + 1) * OTHER + r, statistics + all_rows + (ulong)(head) * queries + t, wanted); \
      COPY_1(rows + ((stage) * 3 + 2) * OTHER + r, delta + apart + t * DELTA_PITCH, wanted);                     \
    }                                                                                                            \
  }
  bool guarded = false;
#pragma unroll 1
  for (;; guarded = true) {
    EACH(i, M_TILES) EACH(j, D_TILES) EACH(e, 4) key_results[i][j][e] = value_results[i][j][e] = 0.0f;
    if (seen_heads > 0) {
      copy_rows(own_tiles, k, K_PITCH, first, OWN, (uint)length);
      copy_rows(own_tiles + OWN * PIECES, v + v_offset + OF_V(batch, key_head), V_PITCH, first, OWN, (uint)length);
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
        __local const uint4 *query_tile = tiles + stage * 2 * OTHER * PIECES, *diff_tile = query_tile + OTHER * PIECES;
        __local const float *tile_largest = rows + stage * 3 * OTHER, *tile_inverse = tile_largest + OTHER;
        __local const float *tile_delta = tile_inverse + OTHER;
        if (guarded) {
          clean_rows(tiles + (stage * 2 + 1) * OTHER * PIECES, marks);
          clean_rows(tiles + stage * 2 * OTHER * PIECES, marks);
        }
        stage = 1 - stage;
        if (keys_seen(min(tile + OTHER, queries) - 1, length, queries) <= own) continue;
        float weights[M_TILES][N_TILES][4], slopes[M_TILES][N_TILES][4];
        multiply_rows(own_tiles + WARP * WARP_ROWS * PIECES, query_tile, weights);
        EACH(j, N_TILES) EACH(odd, 2) {
          const uint c = 8 * j + 2 * QUAD + odd;
          const float largest = tile_largest[c], inverse = tile_inverse[c];
          // A marked query has a weight of 0 or, where its row is NaN, of NaN.
          const bool marked = guarded && marks[c];
          EACH(i, M_TILES) EACH(below, 2) {
            const uint e = 2 * below + odd;
#ifdef MASK
            const uint t = min(tile + c, queries - 1), s = own + 16 * i + 8 * below + ROW;
            const float added = s < keys ? mask[head * mask_head + t * mask_row + s] : 0.0f;
#endif
            weights[i][j][e] = (marked ? 0.0f : POWER(weights[i][j][e], added, largest)) * inverse;
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
        // What is kept is multiplied at the end.
        const uint row_of_squares = drawn_row(batch * heads + first_head + head, tile, queries);
        philox_block drawn[M_TILES][N_TILES / 2];
        EACH(i, M_TILES) EACH(pair, N_TILES / 2) {
          drawn[i][pair] = draw_queries(dropout, row_of_squares + pair, own + 16 * i);
          EACH(e, 8) {
            const uint j = 2 * pair + e / 4, x = e % 4;
            slopes[i][j][x] = KEEPS_QUERY(drawn[i][pair], e) ? weights[i][j][x] : 0.0f;
          }
        }
        add_weighted(slopes, diff_tile, factors, value_results);
#else
        add_weighted(weights, diff_tile, factors, value_results);
#endif
        multiply_rows(own_tiles + (OWN + WARP * WARP_ROWS) * PIECES, diff_tile, slopes);
        EACH(j, N_TILES) EACH(odd, 2) {
          const float column_delta = tile_delta[8 * j + 2 * QUAD + odd];
          EACH(i, M_TILES) EACH(below, 2) {
            const uint e = 2 * below + odd;
            slopes[i][j][e] = slope_of(weights[i][j][e], KEEPS_QUERY(drawn[i][j / 2], j % 2 * 4 + e), KEPT_FACTOR,
                                       slopes[i][j][e], column_delta);
          }
        }
        add_weighted(slopes, query_tile, factors, key_results);
      }
    }
    if (guarded || !any_item(&flag, has_strange(key_results) || has_strange(value_results))) break;
  }
  EACH(i, M_TILES) EACH(below, 2) factors[i][below] = valid ? scale : NAN;
  store_rows(diff_k + diff_k_offset + of_keys, KEY_PITCH, own, keys, key_results, factors);
  EACH(i, M_TILES) EACH(below, 2) factors[i][below] = valid ? KEPT_FACTOR : NAN;
  store_rows(diff_v, KEY_PITCH, own, keys, value_results, factors);
  // What is not finite in diff_dst reaches the values that its query sees.
  if (guarded) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (uint e = ITEM; e < OWN * WIDTH; e += THREADS) {
      const uint s = first + e / WIDTH, d = e % WIDTH;
      float sum = 0.0f;
      for (uint head = 0; head < seen_heads && s < keys; ++head) {
        const ulong of_vectors = (ulong)head * HEAD_APART * WIDTH, of_queries = (ulong)head * queries;
        sum += strange_gradients(diff_dst + of_vectors, s, d, begin, q + of_vectors, k, statistics + of_queries,
                                 statistics + all_rows + of_queries, queries, keys, length, scale,
                                 batch * heads + first_head + head HEAD_MASK(head * mask_head) DROPOUT_ARGUMENTS);
      }
      if (s < keys) add_to(diff_v + (ulong)s * KEY_PITCH + d, sum);
    }
  }
}
