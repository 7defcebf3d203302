// The gradients of attention, from the logsumexp of every row instead of stored weights (Dao et al., "FlashAttention-2",
// 2023):
//   weight = exp(score − logsumexp),  slope = d loss / d score = weight·(factor·(diff_dst·v) − delta)
//   diff_q = scale·Σ_s slope·k,  diff_k = scale·Σ_t slope·q,  diff_v = Σ_t factor·weight·diff_dst
// where `factor` is that of dropout. Two kernels, so that every sum has one owner and a fixed order.
// q, diff_dst, diff_q (batch, heads, queries, WIDTH); k, v, diff_k, diff_v (batch, key_heads, keys, WIDTH);
// logsumexp, delta (batch, heads, queries). With TOKENS_FIRST tokens come before heads in all but logsumexp.
#include "attention.h"

// exp(score − logsumexp), 0 for what is hidden; a row that sees nothing has a logsumexp of −∞.
static inline float weight_of(const float score, const float logsumexp) {
  return score == -INFINITY ? 0.0f : exp(score - logsumexp);
}

// A work-group owns OWN queries of one head: group (block, head, batch). The tile of keys passes twice, that of values
// once. Local memory: 4·((2·OWN + OTHER)·STRIDE + OWN·SCORE_STRIDE) bytes. A row's logsumexp and delta are read at each
// tile: kept from before the loop, with factors drawn, Intel's runtime for CPUs (2026.22.10) gives all items of a group
// those of the last one.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_backward_query(
    __global const float *q, ulong q_offset, __global const float *k, ulong k_offset, __global const float *v,
    ulong v_offset, __global const float *diff_dst, ulong diff_dst_offset, __global const float *logsumexp,
    ulong logsumexp_offset, __global const float *delta, ulong delta_offset, __global float *diff_q, ulong diff_q_offset,
    SIZE_PARAMETERS FORM_PARAMETERS) {
  __local float4 query_tile[OWN * STRIDE4];
  __local float4 diff_tile[OWN * STRIDE4];
  __local float4 other_tile[OTHER * STRIDE4];
  __local float4 slopes4[OWN * SCORE_STRIDE / 4];
  __local float *slopes = (__local float *)slopes4;
  const uint first = ((uint)get_num_groups(0) - 1 - (uint)get_group_id(0)) * OWN;
  const uint head = (uint)get_group_id(1), batch = (uint)get_group_id(2);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong of_vectors = OF_HEAD(batch, head, heads, queries);
  const ulong of_keys = OF_HEAD(batch, head / (heads / key_heads), key_heads, keys);
  k += k_offset + of_keys;
  v += v_offset + of_keys;
  logsumexp += logsumexp_offset;
  delta += delta_offset + OF_DELTAS(batch, head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#endif
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
    draw_tile(slopes4, of_queries + first, tile, keys DRAW_ARGUMENTS);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_tiles(diff_tile, other_tile, products);
    barrier(CLK_LOCAL_MEM_FENCE);
    load_tile(other_tile, k, KEY_PITCH, tile, OTHER, (uint)length);
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_tiles(query_tile, other_tile, scores);
#pragma unroll
    for (uint i = 0; i < OWN_ITEM; ++i) {
      const uint t = min(first + ITEM_Y + TY * i, queries - 1), seen = keys_seen(t, length, queries);
      const float row_logsumexp = logsumexp[of_queries + t], row_delta = delta[t * DELTA_PITCH];
#pragma unroll
      for (uint j = 0; j < OTHER_ITEM; ++j) {
        const uint s = tile + ITEM_X + TX * j;
        float score = scale * scores[i][j];
#ifdef MASK
        if (s < seen) score += mask[t * mask_row + s];
#endif
        const float weight = weight_of(s < seen ? score : -INFINITY, row_logsumexp);
        __local float *place = slopes + (ITEM_Y + TY * i) * SCORE_STRIDE + ITEM_X + TX * j;
#ifdef DROPOUT
        *place = weight * (*place * products[i][j] - row_delta);
#else
        *place = weight * (products[i][j] - row_delta);
#endif
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_weighted(slopes, other_tile, results);
  }
  float factors[OWN_ITEM];
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) factors[i] = valid ? scale : NAN;
  store_rows(diff_q + diff_q_offset + of_vectors, QUERY_PITCH, first, queries, results, factors);
}

// A work-group owns OWN keys and values of one head: group (block, key head, batch), and walks over the queries of all
// heads that share them. The tile of queries passes twice, that of diff_dst once. Local memory as above.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_backward_key_value(
    __global const float *q, ulong q_offset, __global const float *k, ulong k_offset, __global const float *v,
    ulong v_offset, __global const float *diff_dst, ulong diff_dst_offset, __global const float *logsumexp,
    ulong logsumexp_offset, __global const float *delta, ulong delta_offset, __global float *diff_k, ulong diff_k_offset,
    __global float *diff_v, ulong diff_v_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  __local float4 key_tile[OWN * STRIDE4];
  __local float4 value_tile[OWN * STRIDE4];
  __local float4 other_tile[OTHER * STRIDE4];
  __local float4 weights4[OWN * SCORE_STRIDE / 4];
  __local float *weights = (__local float *)weights4;
  const uint first = (uint)get_group_id(0) * OWN, batch = (uint)get_group_id(2), sharing = heads / key_heads;
  const ulong of_keys = OF_HEAD(batch, (uint)get_group_id(1), key_heads, keys);
  q += q_offset;
  diff_dst += diff_dst_offset;
  logsumexp += logsumexp_offset;
  delta += delta_offset;
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;

  float key_results[OWN_ITEM][WIDTH_ITEM], value_results[OWN_ITEM][WIDTH_ITEM];
  float scores[OWN_ITEM][OTHER_ITEM], products[OWN_ITEM][OTHER_ITEM];
  clear_results(key_results);
  clear_results(value_results);
  load_tile(key_tile, k + k_offset + of_keys, KEY_PITCH, first, OWN, min((uint)length, keys));
  load_tile(value_tile, v + v_offset + of_keys, KEY_PITCH, first, OWN, min((uint)length, keys));
  const uint begin = valid && first < (uint)length ? first_query(first, length, queries) / OTHER * OTHER : queries;
  for (uint h = 0; h < sharing; ++h) {
    const uint head = (uint)get_group_id(1) * sharing + h;
    const ulong of_queries = ((ulong)batch * heads + head) * queries, of_deltas = OF_DELTAS(batch, head);
    const ulong of_vectors = OF_HEAD(batch, head, heads, queries);
    for (uint tile = begin; tile < queries; tile += OTHER) {
      barrier(CLK_LOCAL_MEM_FENCE);
      load_tile(other_tile, q + of_vectors, QUERY_PITCH, tile, OTHER, queries);
#ifdef DROPOUT
      for (uint e = ITEM; e < OWN / 4 * OTHER; e += THREADS) {
        const uint t = e / (OWN / 4), s = e % (OWN / 4) * 4;
        const float4 four = draw_four(of_queries + tile + t, first + s, keys DRAW_ARGUMENTS);
        weights[s * SCORE_STRIDE + t] = four.x;
        weights[(s + 1) * SCORE_STRIDE + t] = four.y;
        weights[(s + 2) * SCORE_STRIDE + t] = four.z;
        weights[(s + 3) * SCORE_STRIDE + t] = four.w;
      }
#endif
      barrier(CLK_LOCAL_MEM_FENCE);
      multiply_tiles(key_tile, other_tile, scores);
      barrier(CLK_LOCAL_MEM_FENCE);
      load_tile(other_tile, diff_dst + of_vectors, QUERY_PITCH, tile, OTHER, queries);
      barrier(CLK_LOCAL_MEM_FENCE);
      multiply_tiles(value_tile, other_tile, products);
#pragma unroll
      for (uint j = 0; j < OTHER_ITEM; ++j) {
        const uint t = min(tile + ITEM_X + TX * j, queries - 1);
        const uint seen = tile + ITEM_X + TX * j < queries ? keys_seen(t, length, queries) : 0;
        const float row_logsumexp = logsumexp[of_queries + t], row_delta = delta[of_deltas + t * DELTA_PITCH];
#pragma unroll
        for (uint i = 0; i < OWN_ITEM; ++i) {
          const uint s = first + ITEM_Y + TY * i;
          float score = scale * scores[i][j];
#ifdef MASK
          if (s < seen) {
            score += mask[mask_offset + batch * mask_batch + head * mask_head + t * mask_row + s];
          }
#endif
          const float weight = weight_of(s < seen ? score : -INFINITY, row_logsumexp);
          __local float *place = weights + (ITEM_Y + TY * i) * SCORE_STRIDE + ITEM_X + TX * j;
#ifdef DROPOUT
          scores[i][j] = weight * (*place * products[i][j] - row_delta);
          *place *= weight;
#else
          scores[i][j] = weight * (products[i][j] - row_delta);
          *place = weight;
#endif
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      add_weighted(weights, other_tile, value_results);
      barrier(CLK_LOCAL_MEM_FENCE);
      load_tile(other_tile, q + of_vectors, QUERY_PITCH, tile, OTHER, queries);
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
  store_rows(diff_k + diff_k_offset + of_keys, KEY_PITCH, first, keys, key_results, factors);
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) factors[i] = valid ? 1.0f : NAN;
  store_rows(diff_v + diff_v_offset + of_keys, KEY_PITCH, first, keys, value_results, factors);
}
