// attention_wgmma_backward_key_value (ops/attention_wgmma_backward.h): a work-group owns OWN keys and values of one head and
// walks over the queries of all heads that share them; tiles of q and diff_dst, with the statistics and delta of their
// rows. Rows of scores are keys.
#include "ops/attention_wgmma_backward.h"

#define ROW_BYTES (12 * OTHER)
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_wgmma_backward_key_value(
    BACKWARD_PARAMETERS, __global vector_t *diff_k, ulong diff_k_offset, __global vector_t *diff_v,
    ulong diff_v_offset, __global const uchar *maps, ulong maps_offset, SIZE_PARAMETERS FORM_PARAMETERS) {
  BEGIN_TILES(ROW_BYTES, 1 + 32)
  BEGIN_DROPOUT()
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
        // Of every row: what its power is shifted by, the inverse of its sum, its delta; beyond the last one a weight
        // of 0.
#pragma unroll 1
        EACH_TILE() {
          tries = wait_phase(empty + 8 * stage, phase ^ 1, tries);
          for (uint r = lane; r < OTHER; r += 32) {
            const bool is_row = tile + r < queries;
            const uint t = is_row ? tile + r : 0;
            const ulong of_head = (ulong)head * queries;
            __local float *const to = rows + stage * (ROW_BYTES / 4) + r;
            to[0] = is_row ? shift_of(statistics[of_head + t]) : -INFINITY;
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
#ifdef DROPOUT
        // While the units multiply: 6 % faster than where the words are used. What is kept is multiplied at the end.
        const uint row_of_squares = drawn_row(batch * heads + first_head + head, tile, queries);
        philox_block drawn[SCORES / 8];
        EACH(j, SCORES / 8) drawn[j] = draw_queries(dropout, row_of_squares + j, own);
        HOLD_DRAWN(drawn);
#endif
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
        EACH(i, SCORES / 2) {
          packed[i] = pair_of(KEEPS_QUERY(drawn[i / 4], 2 * i % 8) ? scores[2 * i] : 0.0f,
                              KEEPS_QUERY(drawn[i / 4], 2 * i % 8 + 1) ? scores[2 * i + 1] : 0.0f);
        }
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
            slopes[i] = slope_of(scores[i], KEEPS_QUERY(drawn[i / 8], i % 8), KEPT_FACTOR, slopes[i],
                                 e % 2 == 0 ? deltas.x : deltas.y);
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
  EACH(below, 2) factors[below] = valid ? KEPT_FACTOR : NAN;
  store_rows(diff_v, KEY_PITCH, own, keys, value_results, factors);
  // What is not finite in diff_dst reaches the values that its query sees.
  if (guarded) {
    MULTIPLIERS_BARRIER();
    for (uint e = ITEM; e < OWN * WIDTH; e += MULTIPLIERS) {
      const uint s = first + e / WIDTH, d = e % WIDTH;
      float sum = 0.0f;
      for (uint head = 0; head < seen_heads && s < keys; ++head) {
        const uint sharer = first_head + head;
        const ulong of_rows = (ulong)head * queries;
        sum += strange_gradients(diff_dst + diff_dst_offset + OF_HEAD(batch, sharer, heads, queries), s, d, begin,
                                 q + q_offset + OF_Q(batch, sharer), k + k_offset + OF_K(batch, key_head),
                                 statistics + of_rows, statistics + all_rows + of_rows, queries, keys, length, scale,
                                 batch * heads + sharer HEAD_MASK(head * mask_head) DROPOUT_ARGUMENTS);
      }
      if (s < keys) add_to(diff_v + (ulong)s * KEY_PITCH + d, sum);
    }
  }
}
