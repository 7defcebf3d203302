// All time steps of a recurrent layer in one launch (Diamos et al., "Persistent RNNs: Stashing Recurrent Weights On-Chip",
// 2016), on the matrix units of NVIDIA's GPUs from compute capability 8.0 on. A group owns UNITS hidden units of `chunks`
// times SEQUENCES sequences, and keeps its weights in registers. After a step it publishes what the next step multiplies,
// the states or in the backward pass the gradients of the hidden parts of the gates, to the groups of other units of the
// same sequences, and raises the flag of that chunk; they wait for it. So all groups must be on the device at once. The
// host gives
//   HIDDEN     the hidden units, a multiple of 256
//   UNITS, SEQUENCES, WARPS   of a group, 16, 16 and 8: an item has a unit of a sequence
//   PRECISION  TF32, BF16 or FP16: of the factors of the products, which are summed in fp32
//   BACKWARD   for the backward pass
// Global size (THREADS · HIDDEN / UNITS, rows / (SEQUENCES · chunks)); rows: the sequences, rounded up to whole groups.
#include "shared/nvidia/units.h"
#include "ops/recurrent_cell.h"

#define THREADS (32 * WARPS)
#define OWNERS (HIDDEN / UNITS)  // groups with the same sequences

// The products of a chunk: SEQUENCES rows, INNER values of k, COLUMNS of this group. Of k each warp multiplies a part,
// PIECES times four lanes' 16 bytes of a row. Published rows have the values of one owner side by side, so that a warp
// needs those of few owners.
#ifdef BACKWARD
#define INNER (GATES * HIDDEN)
#define COLUMNS UNITS
#define CHAINS 2  // sums of a tile that do not wait for each other
#else
#define INNER HIDDEN
#define COLUMNS (GATES * UNITS)
#define CHAINS 1
#endif
#define N_TILES (COLUMNS / 8)
#if PRECISION == TF32
#define NUMBERS 4  // in 16 bytes
#define NUMBER uint
#else
#define NUMBERS 8
#define NUMBER ushort
#endif
#define PIECES (INNER / WARPS / NUMBERS / 4)
#define PIECES_AT_ONCE (PIECES < 8 ? PIECES : 8)
#define PITCH (COLUMNS + 8)
#define WATCHED (OWNERS / WARPS)  // owners whose values a warp multiplies

// A wait of more tries, some seconds, is given up: the results are NaN, and nobody hangs.
#define MOST_TRIES (1u << 24)

static inline NUMBER rounded(const float x) {
  uint bits;
#if PRECISION == TF32
  ROUND(bits, x);
#else
  PACK(bits, x, x);
#endif
  return (NUMBER)bits;
}

// c += a·b of 16 x 8 values, over the numbers of k in the first half of the four lanes' 16 bytes (part 0) or in the second.
// The instruction has these numbers in another order, which is the same for both factors.
#if PRECISION == TF32
#define SHAPE_AND_TYPES "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif PRECISION == FP16
#define SHAPE_AND_TYPES "m16n8k16.row.col.f32.f16.f16.f32"
#else
#define SHAPE_AND_TYPES "m16n8k16.row.col.f32.bf16.bf16.f32"
#endif
#define MULTIPLY(c, upper, lower, right, part) \
  asm volatile("mma.sync.aligned." SHAPE_AND_TYPES " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" \
               : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3]) \
               : "r"((upper)[2 * (part)]), "r"((lower)[2 * (part)]), "r"((upper)[2 * (part) + 1]), \
                 "r"((lower)[2 * (part) + 1]), "r"((right)[2 * (part)]), "r"((right)[2 * (part) + 1]))

// What other groups have published.
static inline void load_published(uint to[4], __global const NUMBER *from) {
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from) : "memory");
}

static inline void raise(__global uint *flag, const uint turn) {
  asm volatile("fence.acq_rel.gpu;\n\tst.relaxed.gpu.global.u32 [%0], %1;" : : "l"(flag), "r"(turn) : "memory");
}

// Whether the flag came to `turn` in time.
static inline int has_come(__global const uint *flag, const uint turn) {
  for (uint tries = 0; tries < MOST_TRIES; ++tries) {
    uint value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    if ((int)(value - turn) >= 0) return 1;
  }
  return 0;
}

#define SHARED_PARAMETERS \
  __global NUMBER *published, ulong published_offset, __global uint *flags, ulong flags_offset, uint batch, \
      uint steps, uint chunks, uint is_reverse

// What both passes begin with.
#define SET_UP \
  const uint hidden = HIDDEN, item = (uint)get_local_id(0), owner = (uint)get_group_id(0); \
  const uint lane = item % 32, warp = item / 32, quad = lane % 4, line = lane / 4; \
  const uint unit = item % UNITS, j = owner * UNITS + unit; \
  const uint rows = (uint)get_num_groups(1) * SEQUENCES * chunks; \
  __local float meeting[WARPS * SEQUENCES * PITCH]; \
  __local uint is_lost; \
  if (item == 0) is_lost = 0; \
  published += published_offset; \
  flags += flags_offset; \
  uint right[PIECES][N_TILES][4]; \
  EACH(piece, PIECES) EACH(tile, N_TILES) read_weights(right[piece][tile], weights + weights_offset, \
                                                       ((warp * PIECES + piece) * 4 + quad) * NUMBERS, tile * 8 + line, \
                                                       owner * UNITS); \
  barrier(CLK_LOCAL_MEM_FENCE)

// NUMBERS weights of a column from place k of a published row on.
static inline void read_weights(uint to[4], __global const float *weights, const uint k, const uint column,
                                const uint j_begin) {
  float values[NUMBERS];
#ifdef BACKWARD
  const uint gate = k / UNITS % GATES, j = k / (UNITS * GATES) * UNITS + k % UNITS;
  EACH(i, NUMBERS) values[i] = weights[(ulong)(gate * HIDDEN + j + i) * HIDDEN + j_begin + column];
#else
  const ulong line = column / UNITS * HIDDEN + j_begin + column % UNITS;
  EACH(i, NUMBERS) values[i] = weights[line * HIDDEN + k + i];
#endif
  EACH(i, 4) {
#if PRECISION == TF32
    ROUND(to[i], values[i]);
#else
    PACK(to[i], values[2 * i], values[2 * i + 1]);
#endif
  }
}

// Each warp waits for the owners of its part of k, multiplies, and leaves its sums in `meeting`.
#define MULTIPLY_PUBLISHED(turn) \
  { \
    if (lane < WATCHED && !is_lost && \
        !has_come(flags + n_begin / SEQUENCES * OWNERS + warp * WATCHED + lane, turn)) { \
      is_lost = 1; \
    } \
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); \
    float sums[CHAINS][N_TILES][4]; \
    EACH(chain, CHAINS) EACH(tile, N_TILES) EACH(e, 4) sums[chain][tile][e] = 0.0f; \
    __global const NUMBER *const left = \
        published + ((ulong)((turn) % 2) * rows + n_begin + line) * INNER + (warp * PIECES * 4 + quad) * NUMBERS; \
    EACH(first, (PIECES + PIECES_AT_ONCE - 1) / PIECES_AT_ONCE) { \
      uint upper[PIECES_AT_ONCE][4], lower[PIECES_AT_ONCE][4]; \
      EACH(i, PIECES_AT_ONCE) { \
        const uint piece = first * PIECES_AT_ONCE + i; \
        if (piece < PIECES) { \
          load_published(upper[i], left + piece * 4 * NUMBERS); \
          load_published(lower[i], left + (ulong)8 * INNER + piece * 4 * NUMBERS); \
        } \
      } \
      EACH(i, PIECES_AT_ONCE) { \
        const uint piece = first * PIECES_AT_ONCE + i; \
        if (piece < PIECES) { \
          EACH(part, 2) EACH(tile, N_TILES) \
            MULTIPLY(sums[part % CHAINS][tile], upper[i], lower[i], right[piece][tile], part); \
        } \
      } \
    } \
    EACH(tile, N_TILES) EACH(e, 4) { \
      const float sum = CHAINS == 2 ? sums[0][tile][e] + sums[CHAINS - 1][tile][e] : sums[0][tile][e]; \
      meeting[(warp * SEQUENCES + line + e / 2 * 8) * PITCH + tile * 8 + quad * 2 + e % 2] = sum; \
    } \
    barrier(CLK_LOCAL_MEM_FENCE); \
  }

static inline float sum_of_warps(__local const float *meeting, const uint in_chunk, const uint column) {
  float sum = meeting[in_chunk * PITCH + column];
  for (uint warp = 1; warp < WARPS; ++warp) sum += meeting[(warp * SEQUENCES + in_chunk) * PITCH + column];
  return sum;
}

// Shows value `part` of `parts` of this item's unit to the other owners; RAISE says that all of the group's are there.
#define PUBLISH(turn, part, parts, x) \
  published[((ulong)((turn) % 2) * rows + own) * INNER + (owner * (parts) + (part)) * UNITS + unit] = rounded(x)
#define RAISE(turn) \
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); \
  if (item == 0) raise(flags + n_begin / SEQUENCES * OWNERS + owner, turn)

// An item has one unit of one sequence of a chunk. Items behind the last sequence read what it has, and store nothing.
#define EACH_CHUNK \
  for (uint n_begin = (uint)get_group_id(1) * chunks * SEQUENCES, n_end = n_begin + chunks * SEQUENCES; \
       n_begin < n_end; n_begin += SEQUENCES)
#define ITEM \
  const uint own = n_begin + item / UNITS, n = min(own, batch - 1); \
  const int is_real = own < batch; \
  PLACES

__kernel void recurrent_persistent_begin(__global uint *flags, ulong flags_offset) {
  flags[flags_offset + get_global_id(0)] = 0;
}

#ifdef BACKWARD
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void recurrent_persistent_backward(
    IN_SEQUENCE(diff_y), IN(diff_hn), IN(weights), IN(h0), IN_SEQUENCE(y), LENGTHS_PARAMETER OUT_SEQUENCE(diff_gates),
    OUT(diff_h0), OUT_SEQUENCE(previous), BACK_PARAMETERS SHARED_PARAMETERS) {
  SET_UP;
  for (uint k = 0; k <= steps; ++k) EACH_CHUNK {
    const uint step = min(k, steps - 1), t = is_reverse ? step : steps - 1 - step;
    ITEM;
    READ_BACK(k == 0, is_reverse);
    float carried = k == 0 ? diff_hn[diff_hn_offset + state] : diff_h0[diff_h0_offset + state];
    if (k > 0) {
      MULTIPLY_PUBLISHED(k);
      carried += is_lost ? NAN : sum_of_warps(meeting, item / UNITS, unit);
    }
    if (k < steps) {
      RETREAT(own_diff + carried);
      EACH(gate, GATES) PUBLISH(k + 1, gate, GATES, hidden_part[gate]);
      RAISE(k + 1);
      if (is_real) {
        KEEP_BACK;
        diff_h0[diff_h0_offset + state] = runs ? passed : carried + idle;
      }
    } else {
      if (is_real) diff_h0[diff_h0_offset + state] = carried;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
}
#else
__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void recurrent_persistent_forward(
    IN_SEQUENCE(gates_x), IN(weights), IN(h0), LENGTHS_PARAMETER OUT_SEQUENCE(y), OUT(hn) CELL_PARAMETERS,
    SHARED_PARAMETERS) {
  SET_UP;
  EACH_CHUNK {
    const uint own = n_begin + item / UNITS;
    PUBLISH(1, 0, 1, own < batch ? h0[h0_offset + (ulong)own * HIDDEN + j] : 0.0f);
    RAISE(1);
  }
  for (uint k = 0; k < steps; ++k) EACH_CHUNK {
    const uint t = is_reverse ? steps - 1 - k : k;
    ITEM;
    READ_GATES_X(x);
    const float c = CELL_STATE(k == 0), old_h = k == 0 ? h0[h0_offset + state] : hn[hn_offset + state];
    MULTIPLY_PUBLISHED(k + 1);
    float p[GATES];
    EACH(gate, GATES) p[gate] = is_lost ? NAN : sum_of_warps(meeting, item / UNITS, gate * UNITS + unit);
    ADVANCE_CELL(x, p, old_h, c);
    const float next_h = runs ? NEW_H : old_h + idle;
    PUBLISH(k + 2, 0, 1, next_h);
    RAISE(k + 2);
    if (is_real) {
      KEEP_CELL(c);
      y[y_offset + place] = runs ? next_h : idle;
      hn[hn_offset + state] = next_h;
    }
  }
}
#endif
