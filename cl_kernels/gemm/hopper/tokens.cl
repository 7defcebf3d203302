// gemm_tokens: products of matrices of 16-bit numbers on the matrix units of NVIDIA's Hopper GPUs (compute capability
// 9.0), read where they lie by the copy engine (TMA): C(r, q) = Σ_k A(r, k)·B(q, k) of rows r and columns q.
//
// A work-group stays and claims tiles of TILE_R = 64·BLOCKS rows by TILE_Q columns. Two warpgroups take turns: one
// multiplies a tile while the other one finishes and writes the tile before, so the units never wait for results. A
// third one, which gives most of its registers to the others, orders the copies, STAGES tiles of 64 values of k ahead.
// Results leave through local memory and the copy engine, which leaves out what is beyond the edge.
//
// Where a group has one work (TOGETHER), both warpgroups multiply it, half of its rows each.
//
// Where tiles do not fill the device evenly, the first `cut` ones are cut along k so that each group gets the same length
// of k. Whoever adds the last part of such a tile reads the others and adds all in the order of k, so results do not
// depend on timing, and no group waits for another. Bytes a tile: 128·(TILE_R + TILE_Q) for 64 values of k.
//
// Definitions: PRECISION    BF16 or FP16
//   LEFT_TURNED             A's rows are adjacent, else its k; RIGHT_TURNED: B's columns are, else its k
//   TILE_Q, BLOCKS          64, 128, 192 or 256 columns; 1 or 2, with at most 192 columns for 2; 2 where TOGETHER
//   STAGES, STAGED          tiles that are loaded ahead; pieces of 64 rows of 128 bytes of results that leave at a time
//   RESULT_FLOATS           results are floats, else 16-bit numbers, whose lines are padded to whole blocks of 8
//   HAS_EPILOGUE            EPILOGUE (gemm/operands.h) of floats, EPILOGUE_READ and _APPLY of pairs of 16-bit numbers
//   BLOCK_CHANNELS          2
//   APPENDED_WHOLES         with _READ and _APPLY: a formula of pairs of the result, whose result is written too
//   CUT                     some tiles are cut
//   TOGETHER                a group has one work at most
//   MEMBERS                 products of the same sizes, whose tiles follow each other; 1 if not given
// maps: of A, B and the results of each member.
#include "gemm/hopper/tokens.h"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm_tokens(
    uint rows, uint columns, uint tiles_r, uint tiles_q, uint tiles_k, uint band, __global const uchar *maps,
    ulong maps_offset CUT_PARAMETERS EPILOGUE_PARAMETERS APPENDED_PARAMETERS) {
  __local uint4 tiles[(STAGES * STAGE_BYTES + 2 * STAGED_BYTES) / 16] __attribute__((aligned(1024)));
  __local ulong barriers[2 * STAGES];
  __local uint arrived_before[2];
#ifndef TOGETHER
  __local uint known_works[KNOWN_WORKS];
#endif
  const uint item = (uint)get_local_id(0), lane = item % 32, warpgroup = item / 128;
  const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
  const uint local_base = (uint)(size_t)tiles, full = (uint)(size_t)barriers, empty = full + 8 * STAGES;
  if (item == 0) {
    for (uint i = 0; i < STAGES; ++i) {
      BARRIER_BEGIN(full + 8 * i, 1);
      BARRIER_BEGIN(empty + 8 * i, READING_WARPS);
    }
    BARRIERS_BEGUN();
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  uint tries = MOST_TRIES;
  BEGIN_WORKS()
  if (warpgroup == 2) {
    SET_REGISTERS("dec", COPIER_REGISTERS);
    if (item == 256) {
      EACH(m, MEMBERS) {
        READ_MAP(MAP_OF(m, 0));
        READ_MAP(MAP_OF(m, 1));
      }
      uint stage = 0, phase = 0;
#pragma unroll 1
      for (uint turn = 1; HAS_WORK(); ++turn) {
        TAKE_WORK(CLAIM_TILE())
        __global const uchar *const left_map = MAP_OF(member, 0), *const right_map = MAP_OF(member, 1);
#pragma unroll 1
        for (uint k = begin; k < end; ++k) {
          tries = wait_phase(empty + 8 * stage, phase ^ 1, tries);
          const uint arrived = full + 8 * stage, left_to = local_base + stage * STAGE_BYTES;
#ifndef TOGETHER
          if (k + 1 == end) known_works[turn % KNOWN_WORKS] = next_tile;
#endif
          BARRIER_EXPECT(arrived, STAGE_BYTES);
#ifdef LEFT_TURNED
          EACH(i, BLOCKS) COPY_MATRIX(left_to + i * PIECE_BYTES, left_map, arrived, r_begin + 64 * i, k * TILE_K);
#else
          COPY_MATRIX(left_to, left_map, arrived, k * TILE_K, r_begin);
#endif
#ifdef RIGHT_TURNED
          EACH(i, TILE_Q / 64)
            COPY_MATRIX(left_to + LEFT_BYTES + i * PIECE_BYTES, right_map, arrived, q_begin + 64 * i, k * TILE_K);
#else
          COPY_MATRIX(left_to + LEFT_BYTES, right_map, arrived, k * TILE_K, q_begin);
#endif
          if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
    }
    return;
  }

  SET_REGISTERS("inc", MULTIPLIER_REGISTERS);
  const uint warp = item / 32 % 4;
  const uint staged = local_base + STAGES * STAGE_BYTES + warpgroup * STAGED_BYTES;
  const bool is_first = item % 128 == 0;
  if (lane == 0) {
    EACH(m, MEMBERS) EACH(result, RESULTS) READ_MAP(MAP_OF(m, 2 + result));
  }
  uint position = 0;  // tiles of k of the works so far
#pragma unroll 1
  for (uint turn = 0, goes_on = 1; goes_on; ++turn) {
#ifdef TOGETHER
    goes_on = 0;
#else
    // A phase is told from the next but one only by its turn, so nobody waits for tiles of k before its turn.
    if (turn != 0 && turn % 2 == warpgroup) {
      TAKE_TURN();
      next_tile = known_works[turn % KNOWN_WORKS];
      if (!HAS_WORK()) break;
    }
#endif
    TAKE_WORK()
    const uint length = end - begin;
#ifndef TOGETHER
    if (turn % 2 != warpgroup) {  // the other one multiplies it
      position += length;
      continue;
    }
#endif
    float sums[GROUP_BLOCKS][SUMS];
    uint stage = position % STAGES, phase = position / STAGES % 2, in_use = STAGES;
    position += length;
    EACH(block, GROUP_BLOCKS) EACH(i, SUMS) sums[block][i] = 0.0f;
#pragma unroll 1
    for (uint k = 0; k < length; ++k) {
      tries = wait_phase(full + 8 * stage, phase, tries);
      const uint left_at = local_base + stage * STAGE_BYTES;
      const ulong left = LEFT_FACTOR(left_at + FIRST_BLOCK * PIECE_BYTES), right = RIGHT_FACTOR(left_at + LEFT_BYTES);
      WGMMA_FENCE();
      EACH(step, TILE_K / 16) EACH(block, GROUP_BLOCKS)
        MULTIPLY(sums[block], left + block * (PIECE_BYTES / 16) + step * LEFT_STEP, right + step * RIGHT_STEP);
      WGMMA_COMMIT();
      WGMMA_WAIT_BUT_ONE();
      if (in_use < STAGES && lane == 0) BARRIER_ARRIVE(empty + 8 * in_use);
      in_use = stage;
      if (++stage == STAGES) {
        stage = 0;
        phase ^= 1;
      }
    }
#ifndef TOGETHER
    next_tile = known_works[(turn + 1) % KNOWN_WORKS];
    goes_on = tries != 0 && HAS_WORK();  // where copies never came, nobody knows what is next
    GIVE_TURN();
#endif
    WGMMA_WAIT();
    if (lane == 0) BARRIER_ARRIVE(empty + 8 * in_use);
    EACH(block, GROUP_BLOCKS) EACH(i, SUMS) asm volatile("" : "+f"(sums[block][i])::"memory");
    if (tries == 0) EACH(block, GROUP_BLOCKS) EACH(i, SUMS) sums[block][i] = NAN;  // copies that never came

#ifdef CUT
    if (length != tiles_k) {
      // The groups that have parts of this tile, in the order of k.
      const uint tile_first = tile * tiles_k, tile_last = tile_first + tiles_k - 1;
      const uint first_group = GROUP_OF(tile_first), last_group = GROUP_OF(tile_last);
      __global float4 *const mine = parts + parts_offset + PART_OF(group) + item % 128;
      EACH(block, GROUP_BLOCKS) EACH(i, SUMS / 4)
        mine[((FIRST_BLOCK + block) * (SUMS / 4) + i) * 128] = (float4)(sums[block][4 * i], sums[block][4 * i + 1],
                                                        sums[block][4 * i + 2], sums[block][4 * i + 3]);
      WARPGROUP_BARRIER();
      if (is_first) {
        uint before;
        FENCE_DEVICE();  // for what the whole warpgroup wrote, and will read
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                     : "=r"(before) : "l"(arrivals + arrivals_offset + OF_WARPGROUP(tile)) : "memory");
        FENCE_DEVICE();
        // The last one leaves it as it was for the next launch.
        if (before == last_group - first_group) arrivals[arrivals_offset + OF_WARPGROUP(tile)] = 0;
        arrived_before[warpgroup] = before;
      }
      WARPGROUP_BARRIER();
      const bool is_last = arrived_before[warpgroup] == last_group - first_group;
      WARPGROUP_BARRIER();
      if (!is_last) continue;
      BEGIN_CHUNKS()
      EACH(chunk, TILE_Q / 64) EACH(block, GROUP_BLOCKS) {
        float values[32];
        EACH(i, 32) values[i] = 0.0f;
#pragma unroll 1
        for (uint from = first_group; from <= last_group; from += AT_ONCE) {
          float4 more[AT_ONCE][8];
          EACH(p, AT_ONCE) {
            const uint of_group = min(from + p, last_group);
            __global const float4 *const other =
                parts + parts_offset + PART_OF(of_group) + ((FIRST_BLOCK + block) * (SUMS / 4) + chunk * 8) * 128 + item % 128;
            EACH(i, 8) more[p][i] = other[i * 128];
          }
          EACH(p, AT_ONCE) EACH(i, 8) {
            const bool is_there = from + p <= last_group;
            values[4 * i] += is_there ? more[p][i].x : 0.0f;
            values[4 * i + 1] += is_there ? more[p][i].y : 0.0f;
            values[4 * i + 2] += is_there ? more[p][i].z : 0.0f;
            values[4 * i + 3] += is_there ? more[p][i].w : 0.0f;
          }
        }
        STORE_CHUNK(values, chunk, block)
      }
      continue;
    }
#endif
    BEGIN_CHUNKS()
    EACH(chunk, TILE_Q / 64) EACH(block, GROUP_BLOCKS) STORE_CHUNK(sums[block] + 32 * chunk, chunk, block)
  }
  if (lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
