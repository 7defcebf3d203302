// A time step of a recurrent layer in one launch, for GPUs: the product of the states with the weights and what the
// cell makes of it. A group of THREADS items owns UNITS hidden units of SEQUENCES sequences; global size (hidden /
// UNITS · THREADS, groups of sequences). States and weights pass CHUNK values of k at a time through local memory, the
// next ones already in registers; of a chunk each of SLICES quarters of the group multiplies a part. An item has GATES
// sums of four sequences: 8 reads of four floats serve 16·GATES products. h_from and h_to are states (batch, hidden),
// not the same; hidden is a multiple of 4.
#include "ops/recurrent_cell.h"

#define UNITS 4
#define SEQUENCES 64
#define CHUNK 64
#define SLICES 4
#define THREADS 256
#define LANES (SEQUENCES / 4)                // items side by side in one unit and slice
#define FOURS (CHUNK / 4)
#define PITCH (FOURS + 1)                    // in fours
#define H_LOADS (SEQUENCES * FOURS / THREADS)
#define W_FOURS (UNITS * GATES * FOURS)      // at most THREADS
#define SUM_PITCH (SEQUENCES + 8)            // neighbouring units are 8 banks apart

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void recurrent_step_forward(
    IN_SEQUENCE(gates_x), IN(weights), IN(h_from), LENGTHS_PARAMETER OUT_SEQUENCE(y), OUT(h_to) CELL_PARAMETERS,
    uint batch, uint hidden, uint steps, uint t, uint is_first) {
  __local float4 tiles[2 * (SEQUENCES + UNITS * GATES) * PITCH];
  const uint item = (uint)get_local_id(0), j_begin = (uint)get_group_id(0) * UNITS;
  const uint n_begin = (uint)get_group_id(1) * SEQUENCES;
  const uint chunks = (hidden + CHUNK - 1) / CHUNK, row_fours = hidden / 4;
  __global const float4 *const from = (__global const float4 *)(h_from + h_from_offset);
  __global const float4 *const rows = (__global const float4 *)(weights + weights_offset);

  float4 next_h[H_LOADS], next_w;
  const uint four = item % FOURS, line = item / FOURS;
#define FETCH(chunk)                                                                                           \
  {                                                                                                            \
    const uint k = (chunk)*FOURS + four;                                                                       \
    EACH(i, H_LOADS) {                                                                                         \
      const uint n = n_begin + line + i * (THREADS / FOURS);                                                   \
      next_h[i] = n < batch && k < row_fours ? from[(ulong)n * row_fours + k] : (float4)(0.0f);                \
    }                                                                                                          \
    const uint gate = line % GATES, unit = line / GATES;                                                       \
    next_w = item < W_FOURS && k < row_fours ? rows[((ulong)gate * hidden + j_begin + unit) * row_fours + k]   \
                                             : (float4)(0.0f);                                                 \
  }
#define KEEP(chunk)                                                                          \
  {                                                                                          \
    __local float4 *const tile = tiles + (chunk) % 2 * (SEQUENCES + UNITS * GATES) * PITCH;  \
    EACH(i, H_LOADS) tile[(line + i * (THREADS / FOURS)) * PITCH + four] = next_h[i];        \
    if (item < W_FOURS) tile[(SEQUENCES + line) * PITCH + four] = next_w;                    \
  }
  const uint slice = item / (UNITS * LANES), unit = item / LANES % UNITS, lane = item % LANES;
  float sums[GATES][4];
  EACH(gate, GATES) EACH(i, 4) sums[gate][i] = 0.0f;
  FETCH(0)
  KEEP(0)
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint chunk = 0; chunk < chunks; ++chunk) {
    if (chunk + 1 < chunks) FETCH(chunk + 1)
    __local const float4 *const h_tile = tiles + chunk % 2 * (SEQUENCES + UNITS * GATES) * PITCH;
    __local const float4 *const w_tile = h_tile + (SEQUENCES + unit * GATES) * PITCH;
    EACH(i, FOURS / SLICES) {
      const uint k = slice * (FOURS / SLICES) + i;
      float4 w[GATES];
      EACH(gate, GATES) w[gate] = w_tile[gate * PITCH + k];
      EACH(s, 4) {
        const float4 h = h_tile[(lane + s * LANES) * PITCH + k];
        EACH(gate, GATES) {
          const float two = fma(w[gate].y, h.y, fma(w[gate].x, h.x, sums[gate][s]));
          sums[gate][s] = fma(w[gate].w, h.w, fma(w[gate].z, h.z, two));
        }
      }
    }
    if (chunk + 1 < chunks) KEEP(chunk + 1)
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  // The slices' sums meet in local memory; then an item has one unit of one sequence.
  __local float *const meeting = (__local float *)tiles;
#define SUM_PLACE(slice, gate, unit, n) ((((slice)*GATES + (gate)) * UNITS + (unit)) * SUM_PITCH + (n))
  EACH(gate, GATES) EACH(s, 4) meeting[SUM_PLACE(slice, gate, unit, lane + s * LANES)] = sums[gate][s];
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint own_unit = item % UNITS, in_group = item / UNITS, j = j_begin + own_unit, n = n_begin + in_group;
  if (n >= batch) return;
  PLACES;
  float p[GATES];
  EACH(gate, GATES) {
    p[gate] = meeting[SUM_PLACE(0, gate, own_unit, in_group)];
    for (uint i = 1; i < SLICES; ++i) p[gate] += meeting[SUM_PLACE(i, gate, own_unit, in_group)];
  }
  const float h = h_from[h_from_offset + state];
  h_to += h_to_offset + state;
  ADVANCE(p, h, h_to);
}
