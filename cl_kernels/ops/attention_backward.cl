// The gradients of attention, from the statistics of every row instead of stored weights (Dao et al., "FlashAttention-2",
// 2023); largest and sum apart, because their logsumexp in fp32 has lost the sum where scores are large:
//   weight = exp(score − largest) / sum,  slope = d loss / d score = weight·(factor·(diff_dst·v) − delta)
//   diff_q = scale·Σ_s slope·k,  diff_k = scale·Σ_t slope·q,  diff_v = Σ_t factor·weight·diff_dst
// where `factor` is that of dropout. Two kernels, so that every sum has one owner and a fixed order.
// q, diff_dst, diff_q (batch, heads, queries, WIDTH); k, v, diff_k, diff_v (batch, key_heads, keys, WIDTH);
// statistics (2, batch, heads, queries): the largest score and 1 / sum; delta (batch, heads, queries). With TOKENS_FIRST
// tokens come before heads in all but statistics. A value that is not finite reaches what sees it and nothing else: tiles
// lose such values before they are weighted. The weight of a key that is not finite is NaN or 0, so that nothing is missing
// then; diff_dst is added again where it is seen.
#include "ops/attention.h"

#define MASK_PLACE(head) (mask_offset + batch * mask_batch + (head) * mask_head)

// A work-group owns OWN queries of one head: group (block, head, batch). The tile of keys passes twice, that of values
// once. Local memory: 4·((2·OWN + OTHER)·STRIDE + OWN·SCORE_STRIDE) bytes. A row's statistics and delta are read at each
// tile: kept from before the loop, with factors drawn, Intel's runtime for CPUs (2026.22.10) gives all items of a group
// those of the last one.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_backward_query(
    __global const float *q, ulong q_offset, __global const float *k, ulong k_offset, __global const float *v,
    ulong v_offset, __global const float *diff_dst, ulong diff_dst_offset, __global const float *statistics,
    ulong statistics_offset, __global const float *delta, ulong delta_offset, __global float *diff_q, ulong diff_q_offset,
    SIZE_PARAMETERS FORM_PARAMETERS) {
  __local float4 query_tile[OWN * STRIDE4];
  __local float4 diff_tile[OWN * STRIDE4];
  __local float4 other_tile[OTHER * STRIDE4];
  __local float4 slopes4[OWN * SCORE_STRIDE / 4];
  __local float *slopes = (__local float *)slopes4;
  BEGIN_DROPOUT()
  const uint first = ((uint)get_num_groups(0) - 1 - (uint)get_group_id(0)) * OWN;
  const uint head = (uint)get_group_id(1), batch = (uint)get_group_id(2);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong of_vectors = OF_HEAD(batch, head, heads, queries);
  const ulong of_keys = OF_HEAD(batch, head / (heads / key_heads), key_heads, keys);
  k += k_offset + of_keys;
  v += v_offset + of_keys;
  statistics += statistics_offset;
  delta += delta_offset + OF_DELTAS(batch, head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#endif
  const ulong all_rows = (ulong)get_num_groups(2) * heads * queries;
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;

  float results[OWN_ITEM][WIDTH_ITEM], products[OWN_ITEM][OTHER_ITEM], scores[OWN_ITEM][OTHER_ITEM];
  clear_results(results);
  load_tile(query_tile, q + q_offset + of_vectors, QUERY_PITCH, first, OWN, queries);
  load_tile(diff_tile, diff_dst + diff_dst_offset + of_vectors, QUERY_PITCH, first, OWN, queries);
  const uint end = valid ? keys_seen(min(first + OWN, queries) - 1, length, queries) : 0;
  for (uint tile = 0; tile < end; tile += OTHER) {
    barrier(CLK_LOCAL_MEM_FENCE);
    load_tile(other_tile, v, KEY_PITCH, tile, OTHER, (uint)length);
#ifdef DROPOUT
    draw_tile(slopes, OWN, OTHER, SCORE_STRIDE, 1, batch * heads + head, first, tile, queries DROPOUT_ARGUMENTS);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_tiles(diff_tile, other_tile, products);
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool strange = load_tile(other_tile, k, KEY_PITCH, tile, OTHER, (uint)length);
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_tiles(query_tile, other_tile, scores);
#pragma unroll
    for (uint i = 0; i < OWN_ITEM; ++i) {
      const uint t = min(first + ITEM_Y + TY * i, queries - 1), seen = keys_seen(t, length, queries);
      const float largest = statistics[of_queries + t], inverse = statistics[all_rows + of_queries + t];
      const float row_delta = delta[t * DELTA_PITCH];
#pragma unroll
      for (uint j = 0; j < OTHER_ITEM; ++j) {
        const uint s = tile + ITEM_X + TX * j;
#ifdef MASK
        const float score = masked_score(scores[i][j], scale, s < seen ? mask[t * mask_row + s] : -INFINITY);
#else
        const float score = s < seen ? scale * scores[i][j] : -INFINITY;
#endif
        const float weight = weight_of(score, largest, inverse);
        __local float *place = slopes + (ITEM_Y + TY * i) * SCORE_STRIDE + ITEM_X + TX * j;
#ifdef DROPOUT
        *place = slope_of(weight, *place != 0.0f, *place, products[i][j], row_delta);
#else
        *place = slope_of(weight, true, 1.0f, products[i][j], row_delta);
#endif
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (strange) clean_tile(other_tile, OTHER);
    barrier(CLK_LOCAL_MEM_FENCE);
    add_weighted(slopes, other_tile, results);
  }
  float factors[OWN_ITEM];
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) factors[i] = valid ? scale : NAN;
  store_rows(diff_q + diff_q_offset + of_vectors, QUERY_PITCH, first, queries, results, factors);
}

// A work-group owns OWN keys and values of one head: group (block, key head, batch), and walks over the queries of all
// heads that share them. The tile of queries passes twice, that of diff_dst once. Local memory as above, 4 bytes more.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_backward_key_value(
    __global const float *q, ulong q_offset, __global const float *k, ulong k_offset, __global const float *v,
    ulong v_offset, __global const float *diff_dst, ulong diff_dst_offset, __global const float *statistics,
    ulong statistics_offset, __global const float *delta, ulong delta_offset, __global float *diff_k, ulong diff_k_offset,
    __global float *diff_v, ulong diff_v_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  __local float4 key_tile[OWN * STRIDE4];
  __local float4 value_tile[OWN * STRIDE4];
  __local float4 other_tile[OTHER * STRIDE4];
  __local float4 weights4[OWN * SCORE_STRIDE / 4];
  __local float *weights = (__local float *)weights4;
  __local int flag;
  BEGIN_DROPOUT()
  const uint first = (uint)get_group_id(0) * OWN, batch = (uint)get_group_id(2), sharing = heads / key_heads;
  const uint first_head = (uint)get_group_id(1) * sharing;
  const ulong of_keys = OF_HEAD(batch, (uint)get_group_id(1), key_heads, keys);
  q += q_offset;
  k += k_offset + of_keys;
  diff_k += diff_k_offset + of_keys;
  diff_v += diff_v_offset + of_keys;
  diff_dst += diff_dst_offset;
  statistics += statistics_offset;
  delta += delta_offset;
  const ulong all_rows = (ulong)get_num_groups(2) * heads * queries;
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;

  float key_results[OWN_ITEM][WIDTH_ITEM], value_results[OWN_ITEM][WIDTH_ITEM];
  float scores[OWN_ITEM][OTHER_ITEM], products[OWN_ITEM][OTHER_ITEM];
  clear_results(key_results);
  clear_results(value_results);
  load_tile(key_tile, k, KEY_PITCH, first, OWN, min((uint)length, keys));
  load_tile(value_tile, v + v_offset + of_keys, KEY_PITCH, first, OWN, min((uint)length, keys));
  bool any_strange = false;  // a value of diff_dst that this item loaded is not finite
  const uint begin = valid && first < (uint)length ? first_query(first, length, queries) / OTHER * OTHER : queries;
  for (uint h = 0; h < sharing; ++h) {
    const uint head = first_head + h;
    const ulong of_queries = ((ulong)batch * heads + head) * queries, of_deltas = OF_DELTAS(batch, head);
    const ulong of_vectors = OF_HEAD(batch, head, heads, queries);
    for (uint tile = begin; tile < queries; tile += OTHER) {
      barrier(CLK_LOCAL_MEM_FENCE);
      load_tile(other_tile, q + of_vectors, QUERY_PITCH, tile, OTHER, queries);
#ifdef DROPOUT
      draw_tile(weights, OTHER, OWN, 1, SCORE_STRIDE, batch * heads + head, tile, first, queries DROPOUT_ARGUMENTS);
#endif
      barrier(CLK_LOCAL_MEM_FENCE);
      multiply_tiles(key_tile, other_tile, scores);
      barrier(CLK_LOCAL_MEM_FENCE);
      const bool strange = load_tile(other_tile, diff_dst + of_vectors, QUERY_PITCH, tile, OTHER, queries);
      any_strange = any_strange || strange;
      barrier(CLK_LOCAL_MEM_FENCE);
      multiply_tiles(value_tile, other_tile, products);
#pragma unroll
      for (uint j = 0; j < OTHER_ITEM; ++j) {
        const uint t = min(tile + ITEM_X + TX * j, queries - 1);
        const uint seen = tile + ITEM_X + TX * j < queries ? keys_seen(t, length, queries) : 0;
        const float largest = statistics[of_queries + t], inverse = statistics[all_rows + of_queries + t];
        const float row_delta = delta[of_deltas + t * DELTA_PITCH];
#pragma unroll
        for (uint i = 0; i < OWN_ITEM; ++i) {
          const uint s = first + ITEM_Y + TY * i;
#ifdef MASK
          const ulong row = MASK_PLACE(head) + t * mask_row;
          const float score = masked_score(scores[i][j], scale, s < seen ? mask[row + s] : -INFINITY);
#else
          const float score = s < seen ? scale * scores[i][j] : -INFINITY;
#endif
          const float weight = weight_of(score, largest, inverse);
          __local float *place = weights + (ITEM_Y + TY * i) * SCORE_STRIDE + ITEM_X + TX * j;
#ifdef DROPOUT
          scores[i][j] = slope_of(weight, *place != 0.0f, *place, products[i][j], row_delta);
          *place *= weight;
#else
          scores[i][j] = slope_of(weight, true, 1.0f, products[i][j], row_delta);
          *place = weight;
#endif
        }
      }
      if (strange) clean_tile(other_tile, OTHER);
      barrier(CLK_LOCAL_MEM_FENCE);
      add_weighted(weights, other_tile, value_results);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (load_tile(other_tile, q + of_vectors, QUERY_PITCH, tile, OTHER, queries)) clean_tile(other_tile, OTHER);
#pragma unroll
      for (uint i = 0; i < OWN_ITEM; ++i) {
#pragma unroll
        for (uint j = 0; j < OTHER_ITEM; ++j) {
          weights[(ITEM_Y + TY * i) * SCORE_STRIDE + ITEM_X + TX * j] = scores[i][j];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      add_weighted(weights, other_tile, key_results);
    }
  }
  float factors[OWN_ITEM];
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) factors[i] = valid ? scale : NAN;
  store_rows(diff_k, KEY_PITCH, first, keys, key_results, factors);
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) factors[i] = valid ? 1.0f : NAN;
  store_rows(diff_v, KEY_PITCH, first, keys, value_results, factors);
  // What is not finite in diff_dst reaches the values that its query sees.
  if (any_item(&flag, any_strange)) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (uint e = ITEM; e < OWN * WIDTH; e += THREADS) {
      const uint s = first + e / WIDTH, d = e % WIDTH;
      for (uint h = 0; h < sharing && s < keys; ++h) {
        const uint head = first_head + h;
        const ulong of_vectors = OF_HEAD(batch, head, heads, queries), of_queries = ((ulong)batch * heads + head) * queries;
        for (uint t = begin; t < queries; ++t) {
          const float diff = diff_dst[of_vectors + (ulong)t * QUERY_PITCH + d];
          if (!is_strange(diff) || s >= keys_seen(t, length, queries)) continue;
          const float weight = one_weight(q + of_vectors + (ulong)t * QUERY_PITCH, k + (ulong)s * KEY_PITCH, scale,
                                          ADDED(MASK_PLACE(head) + t * mask_row + s), statistics[of_queries + t],
                                          statistics[all_rows + of_queries + t], batch * heads + head, t, s, queries DROPOUT_ARGUMENTS);
          if (weight != 0.0f) diff_v[(ulong)s * KEY_PITCH + d] += weight * diff;
        }
      }
    }
  }
}
