// attention_wgmma_backward_query (ops/attention_wgmma_backward.h): a work-group owns OWN queries of one head; tiles of keys
// and values.
#include "ops/attention_wgmma_backward.h"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_wgmma_backward_query(
    BACKWARD_PARAMETERS, __global vector_t *diff_q, ulong diff_q_offset, __global const uchar *maps, ulong maps_offset,
    SIZE_PARAMETERS FORM_PARAMETERS) {
  BEGIN_TILES(0, 1)
  BEGIN_DROPOUT()
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
#ifdef DROPOUT
  const uint row_of_squares = drawn_row(batch * heads + head, own, queries);
#endif
  float results[RESULTS], shift[2], row_delta[2];
#ifdef NUMBERS_F16
  float inverse[2];
#endif
  EACH(below, 2) {
    const uint row = own + 8 * below + ROW, t = min(row, queries - 1);
    shift[below] = row < queries ? shift_of(statistics[t]) : -INFINITY;  // a weight of 0 beyond the last one
    row_delta[below] = delta[(ulong)t * DELTA_PITCH];
#ifdef NUMBERS_F16
    inverse[below] = statistics[all_rows + t];
#endif
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
      WGMMA_FENCE();  // without it the compiler waits for every product
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
#ifdef NUMBERS_F16
        scores[i] *= inverse[BELOW(i)];  // before slopes are packed: they would overflow
#endif
      }
      if (tile + OTHER > all_end) {
        EACH(below, 2) {
          const uint t = min(own + 8 * below + ROW, queries - 1), seen = keys_seen(t, length, queries);
          EACH(j, SCORES / 4) EACH(odd, 2) {
            const uint i = 4 * j + 2 * below + odd;
            if (tile + COLUMN(i) >= seen) scores[i] = 0.0f;
          }
        }
      }
      // A marked key that is seen has a weight of 0 or a row of NaN, which the sum of the row brings.
      if (guarded) EACH(i, SCORES) scores[i] = marks[COLUMN(i)] != 0.0f ? 0.0f : scores[i];
      WGMMA_WAIT();
      SETTLE(slopes, SCORES);
      RELEASE(second_empty + 8 * stage);
      EACH(j, SCORES / 8) {
#ifdef DROPOUT
        const philox_block drawn = draw_keys(dropout, row_of_squares, tile + 16 * j);
#endif
        EACH(e, 8) {
          const uint i = 8 * j + e;
          slopes[i] = slope_of(scores[i], KEEPS_KEY(drawn, e), KEPT_FACTOR, slopes[i], row_delta[BELOW(i)]);
        }
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
#ifdef NUMBERS_F16
    factors[below] = valid && !isnan(inverse[below]) ? scale : NAN;
#else
    factors[below] = valid ? scale * statistics[all_rows + min(own + 8 * below + ROW, queries - 1)] : NAN;
#endif
  }
  store_rows(diff_q + diff_q_offset + OF_HEAD(batch, head, heads, queries), QUERY_PITCH, own, queries, results, factors);
}
