// attention_wgmma_backward_query and attention_wgmma_backward_key_value: the kernels of
// cl_kernels/ops/attention_backward.cl, whose formulas hold here, on the warpgroup instructions of NVIDIA's Hopper GPUs.
// Groups are (head, batch, block), the longest blocks first where queries see no later keys. Each tile of scores is
// computed by both kernels, so that a sum has one owner and a fixed order.
// Local memory: 2·OWN_BYTES + 2·STAGES·TILE_BYTES, 12·STAGES·OTHER more for keys and values.
// q, diff_dst, diff_q (batch, heads, queries, WIDTH); k, v, diff_k, diff_v (batch, key_heads, keys, WIDTH);
// statistics (2, batch, heads, queries), delta (batch, heads, queries). With TOKENS_FIRST tokens come before heads in all
// but statistics. maps: of q, k, v and diff_dst.
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

// A work-group owns OWN queries of one head; tiles of keys and values.
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_wgmma_backward_query(
    BACKWARD_PARAMETERS, __global vector_t *diff_q, ulong diff_q_offset, __global const uchar *maps, ulong maps_offset,
    SIZE_PARAMETERS FORM_PARAMETERS) {
  BEGIN_TILES(0, 1)
  __local float marks[OTHER];  // of keys
  const uint first = ((uint)get_num_groups(2) - 1 - (uint)get_group_id(2)) * OWN;
  const uint head = (uint)get_group_id(0), batch = (uint)get_group_id(1), key_head = head / (heads / key_heads);
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  const uint end = valid ? keys_seen(min(first + OWN, queries) - 1, length, queries) : 0;

  if (ITEM >= MULTIPLIERS) {
    SET_REGISTERS("dec", COPIER_REGISTERS);
    __global const uchar *const q_map = maps + maps_offset, *const k_map = q_map + MAP_BYTES;
    __global const uchar *const v_map = k_map + MAP_BYTES, *const diff_map = v_map + MAP_BYTES;
    for (bool guarded = false;; guarded = true) {
      if (ITEM == MULTIPLIERS && end > 0) {
        if (!guarded) {
          READ_MAP(q_map);
          READ_MAP(k_map);
          READ_MAP(v_map);
          READ_MAP(diff_map);
          BARRIER_EXPECT(own_full, 2 * OWN_BYTES);
          COPY_TILE(own_tile, q_map, own_full, OWN, first, head, batch);
          COPY_TILE(own_second, diff_map, own_full, OWN, first, head, batch);
        }
#pragma unroll 1
        for (uint tile = 0; tile < end; tile += OTHER) {
          tries = wait_phase(empty + 8 * stage, phase ^ 1, tries);
          BARRIER_EXPECT(full + 8 * stage, TILE_BYTES);
          COPY_TILE(ring + stage * TILE_BYTES, k_map, full + 8 * stage, OTHER, tile, key_head, batch);
          tries = wait_phase(second_empty + 8 * stage, phase ^ 1, tries);
          BARRIER_EXPECT(second_full + 8 * stage, TILE_BYTES);
          COPY_TILE(ring_second + stage * TILE_BYTES, v_map, second_full + 8 * stage, OTHER, tile, key_head, batch);
          NEXT_STAGE(stage, phase)
        }
      }
      if (any_of_group(0) == 0 || guarded) return;
    }
  }

  SET_REGISTERS("inc", MULTIPLIER_REGISTERS);
  const ulong of_queries = ((ulong)batch * heads + head) * queries;
  const ulong all_rows = (ulong)get_num_groups(1) * heads * queries;
  statistics += statistics_offset + of_queries;
  delta += delta_offset + OF_DELTAS(batch, head);
#ifdef MASK
  mask += mask_offset + batch * mask_batch + head * mask_head;
#endif
  const uint own = first + WARP * 16;  // the warp's first row
  const uint all_end = keys_seen(min(own, queries - 1), length, queries);
  const uint own_rows = own_tile + WARPGROUP * 64 * 128;
  float results[RESULTS], shift[2], row_delta[2];
  EACH(below, 2) {
    const uint t = min(own + 8 * below + ROW, queries - 1);
    shift[below] = shift_of(statistics[t]);
    row_delta[below] = delta[(ulong)t * DELTA_PITCH];
  }
  bool guarded = false;
#pragma unroll 1
  for (;; guarded = true) {
    EACH(i, RESULTS) results[i] = 0.0f;
    if (end > 0 && !guarded) tries = wait_phase(own_full, 0, tries);
#pragma unroll 1
    for (uint tile = 0; tile < end; tile += OTHER) {
      float scores[SCORES], slopes[SCORES];
      uint packed[SCORES / 2];
      const uint keys_at = ring + stage * TILE_BYTES;
      tries = wait_phase(full + 8 * stage, phase, tries);
      if (guarded) {
        MULTIPLIERS_BARRIER();
        if (ITEM < OTHER) marks[ITEM] = 0.0f;
        clean_rows(LOCAL_TILE(keys_at), marks);
      }
      WGMMA_FENCE();
      MULTIPLY_ROWS(scores, own_rows, keys_at)
      WGMMA_COMMIT();
      tries = wait_phase(second_full + 8 * stage, phase, tries);
      MULTIPLY_ROWS(slopes, own_rows + OWN_BYTES, ring_second + stage * TILE_BYTES)
      WGMMA_COMMIT();
      WGMMA_WAIT_BUT_ONE();
      SETTLE(scores, SCORES);
      EACH(i, SCORES) {
#ifdef MASK
        const uint t = min(own + 8 * BELOW(i) + ROW, queries - 1), s = tile + COLUMN(i);
        const float added = s < keys ? mask[t * mask_row + s] : 0.0f;
#endif
        scores[i] = POWER(scores[i], added, shift[BELOW(i)]);
      }
      // A marked key that is seen has a weight of 0 or a row of NaN, which the sum of the row brings.
      if (guarded || tile + OTHER > all_end) {
        EACH(below, 2) {
          const uint t = min(own + 8 * below + ROW, queries - 1), seen = keys_seen(t, length, queries);
          EACH(j, SCORES / 4) EACH(odd, 2) {
            const uint i = 4 * j + 2 * below + odd;
            if (tile + COLUMN(i) >= seen || (guarded && marks[COLUMN(i)] != 0.0f)) scores[i] = 0.0f;
          }
        }
      }
      WGMMA_WAIT();
      SETTLE(slopes, SCORES);
      RELEASE(second_empty + 8 * stage);
      EACH(j, SCORES / 4) {
        float drawn[4] = {1.0f, 1.0f, 1.0f, 1.0f};
#ifdef DROPOUT
        draw_keys(drawn, of_queries + own + ROW, tile + 8 * j, keys DRAW_ARGUMENTS);
#endif
        EACH(e, 4) slopes[4 * j + e] = slope_of(scores[4 * j + e], drawn[e], slopes[4 * j + e], row_delta[e / 2]);
      }
      pack_weights(packed, slopes);
      WGMMA_FENCE();
      ADD_WEIGHTED(results, packed, keys_at)
      WGMMA_COMMIT();
      WGMMA_WAIT();
      SETTLE(results, RESULTS);
      RELEASE(empty + 8 * stage);
      NEXT_STAGE(stage, phase)
    }
    if (tries == 0) EACH(i, RESULTS) results[i] = NAN;  // copies that never came: seen
    if (any_of_group(has_strange(results)) == 0 || guarded) break;
  }
  float factors[2];
  EACH(below, 2) {
    const uint t = min(own + 8 * below + ROW, queries - 1);
    factors[below] = valid ? scale * statistics[all_rows + t] : NAN;
  }
  store_rows(diff_q + diff_q_offset + OF_HEAD(batch, head, heads, queries), QUERY_PITCH, own, queries, results, factors);
}

// A work-group owns OWN keys and values of one head and walks over the queries of all heads that share them; tiles of q
// and diff_dst, with the statistics and delta of their rows. Rows of scores are keys.
#define ROW_BYTES (12 * OTHER)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_wgmma_backward_key_value(
    BACKWARD_PARAMETERS, __global vector_t *diff_k, ulong diff_k_offset, __global vector_t *diff_v,
    ulong diff_v_offset, __global const uchar *maps, ulong maps_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  BEGIN_TILES(ROW_BYTES, 1 + 32)
  __local float *const rows = (__local float *)tiles + (ring_second + STAGES * TILE_BYTES - own_tile) / 4;
  const uint first = (uint)get_group_id(2) * OWN, key_head = (uint)get_group_id(0), batch = (uint)get_group_id(1);
  const uint sharing = heads / key_heads, first_head = key_head * sharing;
  const ulong all_rows = (ulong)get_num_groups(1) * heads * queries;
  const ulong of_heads = ((ulong)batch * heads + first_head) * queries;  // the first query of the first head
  const int length = LENGTH_OF(batch);
  const bool valid = length >= 0 && length <= (int)keys;
  const uint begin = valid && first < (uint)length ? first_query(first, length, queries) / OTHER * OTHER : queries;
  const uint seen_heads = begin < queries ? sharing : 0;
  statistics += statistics_offset + of_heads;

  if (ITEM >= MULTIPLIERS) {
    SET_REGISTERS("dec", COPIER_REGISTERS);
    __global const uchar *const q_map = maps + maps_offset, *const k_map = q_map + MAP_BYTES;
    __global const uchar *const v_map = k_map + MAP_BYTES, *const diff_map = v_map + MAP_BYTES;
    delta += delta_offset + OF_DELTAS(batch, first_head);
    const uint lane = ITEM % 32;
#define EACH_TILE()                                  \
  for (uint head = 0; head < seen_heads; ++head)     \
    for (uint tile = begin; tile < queries; tile += OTHER)
    for (bool guarded = false;; guarded = true) {
      if (ITEM == MULTIPLIERS && seen_heads > 0) {
        if (!guarded) {
          READ_MAP(q_map);
          READ_MAP(k_map);
          READ_MAP(v_map);
          READ_MAP(diff_map);
          BARRIER_EXPECT(own_full, 2 * OWN_BYTES);
          COPY_TILE(own_tile, k_map, own_full, OWN, first, key_head, batch);
          COPY_TILE(own_second, v_map, own_full, OWN, first, key_head, batch);
        }
#pragma unroll 1
        EACH_TILE() {
          tries = wait_phase(empty + 8 * stage, phase ^ 1, tries);
          BARRIER_EXPECT(full + 8 * stage, TILE_BYTES);
          COPY_TILE(ring + stage * TILE_BYTES, q_map, full + 8 * stage, OTHER, tile, first_head + head, batch);
          tries = wait_phase(second_empty + 8 * stage, phase ^ 1, tries);
          BARRIER_EXPECT(second_full + 8 * stage, TILE_BYTES);
          COPY_TILE(ring_second + stage * TILE_BYTES, diff_map, second_full + 8 * stage, OTHER, tile, first_head + head,
                    batch);
          NEXT_STAGE(stage, phase)
        }
      } else if (WARP == MULTIPLIERS / 32 + 1) {
        // Of every row: what its power is shifted by, the inverse of its sum, its delta; 0 beyond the last one.
#pragma unroll 1
        EACH_TILE() {
          tries = wait_phase(empty + 8 * stage, phase ^ 1, tries);
          for (uint r = lane; r < OTHER; r += 32) {
            const bool is_row = tile + r < queries;
            const uint t = is_row ? tile + r : 0;
            const ulong of_head = (ulong)head * queries;
            __local float *const to = rows + stage * (ROW_BYTES / 4) + r;
            to[0] = shift_of(statistics[of_head + t]);
            to[OTHER] = is_row ? statistics[all_rows + of_head + t] : 0.0f;
            to[2 * OTHER] = is_row ? delta[(ulong)head * HEAD_APART + (ulong)t * DELTA_PITCH] : 0.0f;
          }
          BARRIER_ARRIVE(full + 8 * stage);
          NEXT_STAGE(stage, phase)
        }
      }
      if (any_of_group(0) == 0 || guarded) return;
    }
  }

  SET_REGISTERS("inc", MULTIPLIER_REGISTERS);
  const ulong of_keys = OF_HEAD(batch, key_head, key_heads, keys);
  const ulong of_vectors = OF_HEAD(batch, first_head, heads, queries);
  diff_v += diff_v_offset + of_keys;
#ifdef MASK
  mask += mask_offset + batch * mask_batch + first_head * mask_head;
#endif
  const uint own = first + WARP * 16;  // the warp's first row
  const uint own_rows = own_tile + WARPGROUP * 64 * 128;
  float key_results[RESULTS], value_results[RESULTS];
  bool guarded = false;
#pragma unroll 1
  for (;; guarded = true) {
    EACH(i, RESULTS) key_results[i] = value_results[i] = 0.0f;
    if (seen_heads > 0 && !guarded) tries = wait_phase(own_full, 0, tries);
#pragma unroll 1
    for (uint head = 0; head < seen_heads; ++head) {
#pragma unroll 1
      for (uint tile = begin; tile < queries; tile += OTHER) {
        float scores[SCORES], slopes[SCORES];
        uint packed[SCORES / 2], packed_slopes[SCORES / 2];
        const uint queries_at = ring + stage * TILE_BYTES, diffs_at = ring_second + stage * TILE_BYTES;
        __local const float *const row_shift = rows + stage * (ROW_BYTES / 4), *const row_inverse = row_shift + OTHER;
        __local const float *const row_delta = row_inverse + OTHER;
        tries = wait_phase(full + 8 * stage, phase, tries);
        // A marked query has a weight of 0 or, where its row is NaN, of NaN.
        if (guarded) clean_rows(LOCAL_TILE(queries_at), rows + stage * (ROW_BYTES / 4));
        WGMMA_FENCE();
        MULTIPLY_ROWS(scores, own_rows, queries_at)
        WGMMA_COMMIT();
        tries = wait_phase(second_full + 8 * stage, phase, tries);
        if (guarded) clean_tile(LOCAL_TILE(diffs_at));
        MULTIPLY_ROWS(slopes, own_rows + OWN_BYTES, diffs_at)
        WGMMA_COMMIT();
        WGMMA_WAIT_BUT_ONE();
        SETTLE(scores, SCORES);
        EACH(j, SCORES / 4) {
          const float2 shift = *(__local const float2 *)(row_shift + COLUMN(4 * j));
          const float2 inverse = *(__local const float2 *)(row_inverse + COLUMN(4 * j));
          EACH(e, 4) {
            const uint i = 4 * j + e;
#ifdef MASK
            const uint t = min(tile + COLUMN(i), queries - 1), s = own + 8 * BELOW(i) + ROW;
            const float added = s < keys ? mask[head * mask_head + t * mask_row + s] : 0.0f;
#endif
            scores[i] = POWER(scores[i], added, e % 2 == 0 ? shift.x : shift.y) * (e % 2 == 0 ? inverse.x : inverse.y);
          }
        }
        if (keys_seen(tile, length, queries) < own + 16) {
          EACH(j, SCORES / 4) EACH(odd, 2) {
            const uint t = min(tile + COLUMN(4 * j + odd), queries - 1), seen = keys_seen(t, length, queries);
            EACH(below, 2) {
              if (own + 8 * below + ROW >= seen) scores[4 * j + 2 * below + odd] = 0.0f;
            }
          }
        }
#ifdef DROPOUT
        float drawn[SCORES];
        EACH(j, SCORES / 4) {
          draw_queries(drawn + 4 * j, of_heads + (ulong)head * queries + tile + COLUMN(4 * j), own, keys DRAW_ARGUMENTS);
        }
        EACH(i, SCORES / 2)
          packed[i] = pair_of(drawn[2 * i] * scores[2 * i], drawn[2 * i + 1] * scores[2 * i + 1]);
#else
        pack_weights(packed, scores);
#endif
        WGMMA_FENCE();
        ADD_WEIGHTED(value_results, packed, diffs_at)
        WGMMA_COMMIT();
        WGMMA_WAIT_BUT_ONE();
        SETTLE(slopes, SCORES);
        EACH(j, SCORES / 4) {
          const float2 deltas = *(__local const float2 *)(row_delta + COLUMN(4 * j));
          EACH(e, 4) {
            const uint i = 4 * j + e;
#ifdef DROPOUT
            const float factor = drawn[i];
#else
            const float factor = 1.0f;
#endif
            slopes[i] = slope_of(scores[i], factor, slopes[i], e % 2 == 0 ? deltas.x : deltas.y);
          }
        }
        pack_weights(packed_slopes, slopes);
        WGMMA_FENCE();
        ADD_WEIGHTED(key_results, packed_slopes, queries_at)
        WGMMA_COMMIT();
        WGMMA_WAIT();
        SETTLE(key_results, RESULTS);
        SETTLE(value_results, RESULTS);
        RELEASE(empty + 8 * stage);
        RELEASE(second_empty + 8 * stage);
        NEXT_STAGE(stage, phase)
      }
    }
    if (tries == 0) EACH(i, RESULTS) key_results[i] = value_results[i] = NAN;  // copies that never came: seen
    if (any_of_group(has_strange(key_results) || has_strange(value_results)) == 0 || guarded) break;
  }
  float factors[2];
  EACH(below, 2) factors[below] = valid ? scale : NAN;
  store_rows(diff_k + diff_k_offset + of_keys, KEY_PITCH, own, keys, key_results, factors);
  EACH(below, 2) factors[below] = valid ? 1.0f : NAN;
  store_rows(diff_v, KEY_PITCH, own, keys, value_results, factors);
  // What is not finite in diff_dst reaches the values that its query sees.
  if (guarded) {
    MULTIPLIERS_BARRIER();
    for (uint e = ITEM; e < OWN * WIDTH; e += MULTIPLIERS) {
      const uint s = first + e / WIDTH, d = e % WIDTH;
      float sum = 0.0f;
      for (uint head = 0; head < seen_heads && s < keys; ++head) {
        const ulong of_head = (ulong)head * HEAD_APART * WIDTH + of_vectors, of_rows = (ulong)head * queries;
        sum += strange_gradients(diff_dst + diff_dst_offset + of_head, s, d, begin, q + q_offset + of_head,
                                 k + k_offset + of_keys, statistics + of_rows, statistics + all_rows + of_rows, queries,
                                 keys, length, scale, of_heads + of_rows HEAD_MASK(head * mask_head) DRAW_ARGUMENTS);
      }
      if (s < keys) add_to(diff_v + (ulong)s * KEY_PITCH + d, sum);
    }
  }
}
