// attention_forward: dst = softmax(scale·q·kᵀ + mask)·v and the logsumexp of the scores, without storing the scores
// (Dao et al., "FlashAttention-2", 2023). A work-group owns OWN queries of one head (group (block, head, batch)); tiles of
// keys and of values pass through one place in local memory. Largest score, sum of exponentials and result of every
// row stay in registers and are corrected when a tile has a larger score; the sums are joined at the end. A group reads
// 8·WIDTH bytes a key and does 4·OWN·WIDTH FLOPs. Local memory: 4·((OWN + OTHER)·STRIDE + OWN·(SCORE_STRIDE + TX) + 1)
// bytes.
// q, dst (batch, heads, queries, WIDTH); k, v (batch, key_heads, keys, WIDTH), or tokens before heads; logsumexp (batch,
// heads, queries); statistics (2, batch, heads, queries): of every row the largest score and 1 / Σ exp(score − largest).
#include "ops/attention.h"

// Every item of a row ends with the sum, or else the largest, of the `values` of the row's TX items.
TILE_FUNCTION void combine_rows(float values[OWN_ITEM], __local float *scratch, const bool is_sum) {
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) scratch[(ITEM_Y + TY * i) * TX + ITEM_X] = values[i];
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) {
    __local const float *row = scratch + (ITEM_Y + TY * i) * TX;
    float all = row[0];
#pragma unroll
    for (uint x = 1; x < TX; ++x) all = is_sum ? all + row[x] : fmax(all, row[x]);
    values[i] = all;
  }
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_forward(
    __global const float *q, ulong q_offset, __global const float *k, ulong k_offset, __global const float *v,
    ulong v_offset, __global float *dst, ulong dst_offset, __global float *logsumexp, ulong logsumexp_offset,
    __global float *statistics, ulong statistics_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  __local float4 query_tile[OWN * STRIDE4];
  __local float4 other_tile[OTHER * STRIDE4];
  __local float4 weights4[OWN * SCORE_STRIDE / 4];
  __local float scratch[OWN * TX];
  __local float *weights = (__local float *)weights4;
  __local int flag;
  BEGIN_DROPOUT()
  const uint first = ((uint)get_num_groups(0) - 1 - (uint)get_group_id(0)) * OWN;  // with a causal mask the longest first
  const uint head = (uint)get_group_id(1), batch = (uint)get_group_id(2);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong all_rows = (ulong)get_num_groups(2) * heads * queries;
  const ulong of_keys = OF_HEAD(batch, head / (heads / key_heads), key_heads, keys);
  q += q_offset + OF_HEAD(batch, head, heads, queries);
  k += k_offset + of_keys;
  v += v_offset + of_keys;
  dst += dst_offset + OF_HEAD(batch, head, heads, queries);
  statistics += statistics_offset + of_queries;
  logsumexp += logsumexp_offset + of_queries;
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#endif
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;

  float results[OWN_ITEM][WIDTH_ITEM], scores[OWN_ITEM][OTHER_ITEM];
  float largest[OWN_ITEM], sum[OWN_ITEM];
  bool strange = false;  // a value that this item loaded is not finite
  clear_results(results);
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) {
    largest[i] = -INFINITY;
    sum[i] = 0.0f;
  }
  load_tile(query_tile, q, QUERY_PITCH, first, OWN, queries);
  const uint end = valid ? keys_seen(min(first + OWN, queries) - 1, length, queries) : 0;
  for (uint tile = 0; tile < end; tile += OTHER) {
    barrier(CLK_LOCAL_MEM_FENCE);
    load_tile(other_tile, k, KEY_PITCH, tile, OTHER, (uint)length);
#ifdef DROPOUT
    draw_tile(weights, OWN, OTHER, SCORE_STRIDE, 1, batch * heads + head, first, tile, queries DROPOUT_ARGUMENTS);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_tiles(query_tile, other_tile, scores);
    float tile_largest[OWN_ITEM];
#pragma unroll
    for (uint i = 0; i < OWN_ITEM; ++i) {
      const uint t = min(first + ITEM_Y + TY * i, queries - 1), seen = keys_seen(t, length, queries);
      tile_largest[i] = -INFINITY;
#pragma unroll
      for (uint j = 0; j < OTHER_ITEM; ++j) {
        const uint s = tile + ITEM_X + TX * j;
#ifdef MASK
        scores[i][j] = masked_score(scores[i][j], scale, s < seen ? mask[t * mask_row + s] : -INFINITY);
#else
        scores[i][j] = s < seen ? scale * scores[i][j] : -INFINITY;
#endif
        tile_largest[i] = fmax(tile_largest[i], scores[i][j]);
      }
    }
    combine_rows(tile_largest, scratch, false);
#pragma unroll
    for (uint i = 0; i < OWN_ITEM; ++i) {
      const float now = fmax(largest[i], tile_largest[i]);
      const float correction = now == largest[i] ? 1.0f : exp(largest[i] - now);
      largest[i] = now;
      sum[i] *= correction;
#pragma unroll
      for (uint j = 0; j < WIDTH_ITEM; ++j) results[i][j] *= correction;
#pragma unroll
      for (uint j = 0; j < OTHER_ITEM; ++j) {
        // Not exp(−∞ − −∞); a NaN stays one.
        const float weight = scores[i][j] == -INFINITY ? 0.0f : exp(scores[i][j] - now);
        __local float *place = weights + (ITEM_Y + TY * i) * SCORE_STRIDE + ITEM_X + TX * j;
        sum[i] += weight;
#ifdef DROPOUT
        *place *= weight;
#else
        *place = weight;
#endif
      }
    }
    // All have left the keys: combine_rows waited.
    if (load_tile(other_tile, v, KEY_PITCH, tile, OTHER, (uint)length)) {
      clean_tile(other_tile, OTHER);
      strange = true;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_weighted(weights, other_tile, results);
  }
  combine_rows(sum, scratch, true);
  float factors[OWN_ITEM];
#pragma unroll
  for (uint i = 0; i < OWN_ITEM; ++i) {
    const uint t = first + ITEM_Y + TY * i;
    factors[i] = sum[i] == 0.0f ? 0.0f : 1.0f / sum[i];
    if (!valid) factors[i] = NAN;
    if (ITEM_X == 0 && t < queries) {
      logsumexp[t] = valid ? largest[i] + log(sum[i]) : NAN;
      statistics[t] = valid ? largest[i] : NAN;
      statistics[all_rows + t] = factors[i];
    }
  }
  store_rows(dst, QUERY_PITCH, first, queries, results, factors);
  // Values that are not finite reach the rows that see them.
  if (any_item(&flag, strange)) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (uint e = ITEM; e < OWN * WIDTH; e += THREADS) {
      const uint t = first + e / WIDTH, d = e % WIDTH;
      const uint seen = t < queries && valid ? keys_seen(t, length, queries) : 0;
      float added = 0.0f;
      for (uint s = 0; s < seen; ++s) {
        const float value = v[(ulong)s * KEY_PITCH + d];
        if (!is_strange(value)) continue;
        const float weight = one_weight(q + (ulong)t * QUERY_PITCH, k + (ulong)s * KEY_PITCH, scale,
                                        ADDED(t * mask_row + s), statistics[t], statistics[all_rows + t],
                                        batch * heads + head, t, s, queries DROPOUT_ARGUMENTS);
        if (weight != 0.0f) added += weight * value;
      }
      if (added != 0.0f) dst[(ulong)t * QUERY_PITCH + d] += added;
    }
  }
}
