// attention_wgmma_forward: attention_forward of cl_kernels/ops/attention.cl on the warpgroup instructions of NVIDIA's
// Hopper GPUs (Shah et al., "FlashAttention-3", 2024). Group (head, batch, block) owns OWN queries of a head, the longest
// blocks first where queries see no later keys. While the units multiply the weights of a tile by its values, a
// warpgroup computes the weights of the next tile. A group reads 4·WIDTH bytes a key and does 4·OWN·WIDTH FLOPs.
// Local memory: OWN_BYTES + 2·STAGES·TILE_BYTES.
// q, dst (batch, heads, queries, WIDTH); k, v (batch, key_heads, keys, WIDTH), or tokens before heads; logsumexp (batch,
// heads, queries); statistics (2, batch, heads, queries): of every row the largest score and 1 / Σ exp(score − largest).
// maps: of q, k and v.
#include "ops/attention_wgmma.h"

// The largest of, or the sum over, the four lanes of a row.
static inline float row_largest(float value) {
  value = fmax(value, as_float(lane_xor(as_uint(value), 1)));
  return fmax(value, as_float(lane_xor(as_uint(value), 2)));
}
static inline float row_sum(float value) {
  value += as_float(lane_xor(as_uint(value), 1));
  return value + as_float(lane_xor(as_uint(value), 2));
}

// Scores of rows ROW and ROW + 8 become exp(score − largest), with the largest ones so far; `factors` are those of what
// was summed up before.
static inline void weigh_scores(float scores[SCORES], float largest[2], float sum[2], float factors[2],
                                const float unit) {
  EACH(below, 2) {
    float most[2] = {-INFINITY, -INFINITY}, sums[2] = {0.0f, 0.0f};  // of two independent chains
    EACH(j, SCORES / 4) EACH(odd, 2) most[odd] = fmax(most[odd], scores[4 * j + 2 * below + odd]);
    const float now = fmax(largest[below], row_largest(fmax(most[0], most[1])) * unit), shift = shift_of(now);
    factors[below] = change_of(largest[below], now);
    largest[below] = now;
    EACH(j, SCORES / 4) EACH(odd, 2) {
      const uint i = 4 * j + 2 * below + odd;
      scores[i] = power_of(scores[i], unit, shift);
      sums[odd] += scores[i];
    }
    sum[below] = sum[below] * factors[below] + (sums[0] + sums[1]);
  }
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_wgmma_forward(
    __global const vector_t *q, ulong q_offset, __global const vector_t *k, ulong k_offset, __global const vector_t *v,
    ulong v_offset, __global vector_t *dst, ulong dst_offset, __global float *logsumexp, ulong logsumexp_offset,
    __global float *statistics, ulong statistics_offset, __global const uchar *maps, ulong maps_offset,
    SIZE_PARAMETERS FORM_PARAMETERS) {
  __local uint4 tiles[(OWN_BYTES + 2 * STAGES * TILE_BYTES) / 16] __attribute__((aligned(1024)));
  __local ulong barriers[1 + 4 * STAGES];
  BEGIN_DROPOUT()
  const uint first = ((uint)get_num_groups(2) - 1 - (uint)get_group_id(2)) * OWN;
  const uint head = (uint)get_group_id(0), batch = (uint)get_group_id(1), key_head = head / (heads / key_heads);
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  // Keys that the last row of the group sees.
  const uint end = valid ? keys_seen(min(first + OWN, queries) - 1, length, queries) : 0;

  const uint query_tile = (uint)(size_t)tiles, key_tiles = query_tile + OWN_BYTES;
  const uint value_tiles = key_tiles + STAGES * TILE_BYTES;
  const uint query_full = (uint)(size_t)barriers, key_full = query_full + 8, key_empty = key_full + 8 * STAGES;
  const uint value_full = key_empty + 8 * STAGES, value_empty = value_full + 8 * STAGES;
  if (ITEM == 0) {
    BARRIER_BEGIN(query_full, 1);
    for (uint i = 0; i < STAGES; ++i) {
      BARRIER_BEGIN(key_full + 8 * i, 1);
      BARRIER_BEGIN(value_full + 8 * i, 1);
      BARRIER_BEGIN(key_empty + 8 * i, MULTIPLIERS / 32);
      BARRIER_BEGIN(value_empty + 8 * i, MULTIPLIERS / 32);
    }
    BARRIERS_BEGUN();
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint stage = 0, phase = 0, tries = MOST_TRIES;

  if (ITEM >= MULTIPLIERS) {
    SET_REGISTERS("dec", COPIER_REGISTERS);
    __global const uchar *const q_map = maps + maps_offset, *const k_map = q_map + MAP_BYTES;
    __global const uchar *const v_map = k_map + MAP_BYTES;
    for (bool guarded = false;; guarded = true) {
      if (ITEM == MULTIPLIERS && end > 0) {
        if (!guarded) {
          READ_MAP(q_map);
          READ_MAP(k_map);
          READ_MAP(v_map);
          BARRIER_EXPECT(query_full, OWN_BYTES);
          COPY_TILE(query_tile, q_map, query_full, OWN, first, head, batch);
        }
#pragma unroll 1
        for (uint tile = 0; tile < end; tile += OTHER) {
          tries = wait_phase(key_empty + 8 * stage, phase ^ 1, tries);
          BARRIER_EXPECT(key_full + 8 * stage, TILE_BYTES);
          COPY_TILE(key_tiles + stage * TILE_BYTES, k_map, key_full + 8 * stage, OTHER, tile, key_head, batch);
          tries = wait_phase(value_empty + 8 * stage, phase ^ 1, tries);
          BARRIER_EXPECT(value_full + 8 * stage, TILE_BYTES);
          COPY_TILE(value_tiles + stage * TILE_BYTES, v_map, value_full + 8 * stage, OTHER, tile, key_head, batch);
          NEXT_STAGE(stage, phase)
        }
      }
      if (any_of_group(0) == 0 || guarded) return;
    }
  }

  SET_REGISTERS("inc", MULTIPLIER_REGISTERS);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong all_rows = (ulong)get_num_groups(1) * heads * queries;
  dst += dst_offset + OF_HEAD(batch, head, heads, queries);
  statistics += statistics_offset + of_queries;
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#endif
  const uint own = first + WARP * 16;  // the warp's first row
#ifndef MASK
  const uint all_end = keys_seen(min(own, queries - 1), length, queries);  // what all rows of the warp see
#endif
  const uint own_rows = query_tile + WARPGROUP * 64 * 128;
// Warpgroups take turns to hand products to the units: one computes weights while another's products run.
#define TURN(warpgroup) (8 + (warpgroup) % WARPGROUPS)
#define TAKE_TURN() asm volatile("bar.sync %0, 256;" ::"r"(TURN(WARPGROUP)) : "memory")
#define GIVE_TURN() asm volatile("bar.arrive %0, 256;" ::"r"(TURN(WARPGROUP + 1)) : "memory")
  float results[RESULTS], largest[2], sum[2];
  if (WARPGROUP == WARPGROUPS - 1) GIVE_TURN();
  bool guarded = false;
#define BEGIN_SCORES()                                            \
  {                                                               \
    tries = wait_phase(key_full + 8 * stage, phase, tries);       \
    WGMMA_FENCE();                                                \
    MULTIPLY_ROWS(scores, own_rows, key_tiles + stage * TILE_BYTES) \
    WGMMA_COMMIT();                                               \
  }
#define END_SCORES()                  \
  {                                   \
    SETTLE(scores, SCORES);           \
    RELEASE(key_empty + 8 * stage);   \
    NEXT_STAGE(stage, phase)          \
    HIDE_KEYS()                       \
    weigh_scores(scores, largest, sum, factors, SCORE_UNIT); \
    DROP_WEIGHTS()                    \
  }
#define BEGIN_RESULTS()                                                        \
  {                                                                            \
    const uint at = value_tiles + value_stage * TILE_BYTES;                    \
    tries = wait_phase(value_full + 8 * value_stage, value_phase, tries);      \
    if (guarded) clean_tile((__local ushort *)tiles + (at - query_tile) / 2);  \
    WGMMA_FENCE();                                                             \
    ADD_WEIGHTED(results, weights, at)                                         \
    WGMMA_COMMIT();                                                            \
  }
#define END_RESULTS()                          \
  {                                            \
    WGMMA_WAIT();                              \
    SETTLE(results, RESULTS);                  \
    RELEASE(value_empty + 8 * value_stage);    \
    NEXT_STAGE(value_stage, value_phase)       \
  }
  // Scores with the mask, −∞ for keys that a row does not see.
#ifdef MASK
#define FOR_EDGE()
#define ADD_MASK(t, s, seen) \
  if ((s) < (seen)) scores[i] = masked_score(scores[i], scale, mask[(t) * mask_row + (s)]);
#else
#define FOR_EDGE() if (tile + OTHER > all_end)
#define ADD_MASK(t, s, seen)
#endif
#define HIDE_KEYS()                                                                                \
  FOR_EDGE() EACH(below, 2) {                                                                      \
    const uint t = min(own + 8 * below + ROW, queries - 1), seen = keys_seen(t, length, queries);  \
    EACH(j, SCORES / 4) EACH(odd, 2) {                                                             \
      const uint i = 4 * j + 2 * below + odd, s = tile + COLUMN(i);                                \
      ADD_MASK(t, s, seen)                                                                         \
      if (s >= seen) scores[i] = -INFINITY;                                                        \
    }                                                                                              \
  }
#ifdef DROPOUT
  const uint row_of_squares = drawn_row(batch * heads + head, own, queries);
  // What is kept is multiplied at the end.
#define DROP_WEIGHTS()                                                             \
  EACH(j, SCORES / 8) {                                                            \
    const philox_block drawn = draw_keys(dropout, row_of_squares, tile + 16 * j);  \
    EACH(i, 8) scores[8 * j + i] = KEEPS_KEY(drawn, i) ? scores[8 * j + i] : 0.0f; \
  }
#else
#define DROP_WEIGHTS()
#endif
#pragma unroll 1
  for (;; guarded = true) {
    EACH(i, RESULTS) results[i] = 0.0f;
    EACH(below, 2) {
      largest[below] = -INFINITY;
      sum[below] = 0.0f;
    }
    if (end > 0) {
      float scores[SCORES], factors[2];
      uint weights[SCORES / 2], value_stage = stage, value_phase = phase, tile = 0;
      if (!guarded) tries = wait_phase(query_full, 0, tries);
      BEGIN_SCORES()
      WGMMA_WAIT();
      END_SCORES()
      pack_weights(weights, scores);
#pragma unroll 1
      for (tile = OTHER; tile < end; tile += OTHER) {
        TAKE_TURN();
        BEGIN_SCORES()
        BEGIN_RESULTS()
        GIVE_TURN();
        WGMMA_WAIT_BUT_ONE();
        END_SCORES()
        END_RESULTS()
        EACH(i, RESULTS) results[i] *= factors[BELOW(i)];
        pack_weights(weights, scores);
      }
      BEGIN_RESULTS()
      END_RESULTS()
      if (tries == 0) EACH(i, RESULTS) results[i] = NAN;  // copies that never came: seen
    }
    if (any_of_group(has_strange(results)) == 0 || guarded) break;
  }
  float inverse[2];
  EACH(below, 2) {
    const float all = row_sum(sum[below]);
    const uint t = own + 8 * below + ROW;
    inverse[below] = all == 0.0f ? 0.0f : 1.0f / all;
    if (!valid) inverse[below] = NAN;
    if (QUAD == 0 && t < queries) {
      logsumexp[logsumexp_offset + of_queries + t] = valid ? largest[below] + log(all) : NAN;
      statistics[t] = valid ? largest[below] : NAN;
      statistics[all_rows + t] = inverse[below];
    }
    inverse[below] *= KEPT_FACTOR;
  }
  store_rows(dst, QUERY_PITCH, own, queries, results, inverse);
  // Values that are not finite reach the rows that see them.
  if (guarded) {
    MULTIPLIERS_BARRIER();
    for (uint e = ITEM; e < OWN * WIDTH; e += MULTIPLIERS) {
      const uint t = first + e / WIDTH, d = e % WIDTH;
      if (t >= queries || !valid) continue;
      add_to(dst + (ulong)t * QUERY_PITCH + d,
             strange_values(v + v_offset + OF_V(batch, key_head), t, d, q + q_offset + OF_Q(batch, head),
                            k + k_offset + OF_K(batch, key_head), statistics, statistics + all_rows, queries, keys,
                            length, scale, batch * heads + head HEAD_MASK(0) DROPOUT_ARGUMENTS));
    }
  }
}
