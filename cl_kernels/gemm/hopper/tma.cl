// gemm_tma_multiply: products on the matrix units of NVIDIA's Hopper GPUs (compute capability 9.0) from operands that
// were packed into planes (gemm/hopper/pack.cl) and that the copy engine (TMA) brings to local memory. As in gemm/hopper/wgmma.cl
// the right operand, a dense matrix or the patches of an image, gives the rows R of what the units see, and the left
// one the columns Q. A work-group stays and claims tiles of WARPGROUPS·64 rows by TILE_Q columns. One of
// its items orders the copies, STAGES tiles of depth TILE_K ahead; each warpgroup (128 items) multiplies 64 rows.
//
// Definitions beside those of gemm/operands.h:
//   PRECISION   SPLIT: fp32 as the sum of six products of bf16 numbers. SCALED: of scaled factors, three products of
//               FP16_PLANES = 2 fp16 numbers for fp32, or one of 1 for tf32; as SPLIT where the operands are flagged
//               as too mixed (gemm/hopper/scales.h). TF32, BF16, FP16: one product of rounded factors.
//   ROW_BYTES   64 or 128: TILE_K numbers
//   STAGED_Q    columns that a warpgroup finishes at a time, but of C_CHANNELS_LAST
//   RIGHT       MATRIX: rows n with k inside, both operands tile after tile. IMAGE: B_PATCH, k as (tap, channel in
//               channel_tiles tiles), the patches gathered from an image with channels inside. IMAGE_TURNED: B_PATCH and
//               B_ALONG_K: k are the places, rows (tap, channel in channel_tiles blocks of 64); the left operand has m
//               inside.
//   CLAIMED     there are more works than groups are given (gemm/hopper/tma_members.h)
//   MEMBERS     products of the launch (gemm/hopper/tma_members.h); 1 where it is not said
// With C_CHANNELS_LAST results leave in blocks of 8 values of m, C_IS_PARTIAL: as floats, (z, n, m).
// Results of IMAGE_TURNED have their columns in the order (tap, channel); c's steps put them where they belong.
#include "gemm/operands.h"

#define MATRIX 0
#define IMAGE 1
#define IMAGE_TURNED 2
#include "gemm/hopper/scales.h"
#include "shared/nvidia/tma.h"
#include "shared/nvidia/units.h"
#include "gemm/hopper/wgmma.h"
#if PRECISION == SPLIT || PRECISION == SCALED
#include "gemm/element.h"
#else
#define TABLE_PARAMETERS
#define DECLARE_TABLES
#define TABLE_NUMBERS(NUMBER)
#endif

#define MULTIPLIERS (WARPGROUPS * 128)
#define THREADS (MULTIPLIERS + 32)
#define TILE_R (WARPGROUPS * 64)
#define NUMBER_BYTES (PRECISION == TF32 ? 4 : 2)
#define TILE_K (ROW_BYTES / NUMBER_BYTES)
#define STEPS (ROW_BYTES / 32)
#define BLOCK_64 64           // numbers inside a box of an operand that is turned
#define BAND 8                // rows of tiles that are taken together
#define R_PLANE (TILE_R * ROW_BYTES)
#define Q_PLANE (TILE_Q * ROW_BYTES)
#if PRECISION == SCALED && STAGES * FP16_PLANES < PLANES
#error "too few stages for operands that are packed as SPLIT"
#endif
#define LOCAL_BYTES (STAGES * STAGE_PLANES * (R_PLANE + Q_PLANE))
#if PRECISION == SCALED
#define STAGE_PLANES FP16_PLANES
#define SCALE_MEMORIES(MEMORY) \
  MEMORY(const Mixture *restrict, mixture) SCALE_MEMORY(MEMORY, left) SCALE_MEMORY(MEMORY, right)
#define ALL_SCALE_NUMBERS(NUMBER) \
  NUMBER(ulong, mixture_offset) SCALE_NUMBERS(NUMBER, left) SCALE_NUMBERS(NUMBER, right)
#else
#define STAGE_PLANES PLANES
#define SCALE_MEMORIES(MEMORY)
#define ALL_SCALE_NUMBERS(NUMBER)
#endif
#define MAP_BYTES 128
#define SUMS (TILE_Q / 2)  // of an item
#if defined(C_IS_PARTIAL) || defined(JOINED)
#define GIVES_PARTS
#endif
#ifdef C_CHANNELS_LAST
#include "shared/channels_last.h"
#include "shared/epilogue_block.h"
#else
#define STAGED_PITCH 68  // 64 rows of a warpgroup; 2 columns further is 8 banks further
#define STAGED_NUMBERS (WARPGROUPS * STAGED_Q * STAGED_PITCH)
#endif
#define WARPGROUP_BARRIER() asm volatile("bar.sync %0, 128;" ::"r"(1 + warpgroup) : "memory")

#include "gemm/hopper/tma_forms.h"
#include "gemm/hopper/tma_products.h"
#include "gemm/hopper/tma_join.h"
#if PRECISION == SPLIT || PRECISION == SCALED
#include "gemm/hopper/exact.h"
#endif

#define TMA_NUMBERS(NUMBER)                                                                         \
  GEMM_NUMBERS(NUMBER) NUMBER(ulong, maps_offset) NUMBER(uint, tiles_r) NUMBER(uint, tiles_k)       \
  NUMBER(uint, part_tiles) NUMBER(uint, first_work) NUMBER(uint, works) NUMBER(uint, channel_tiles) \
  NUMBER(uint, images) ALL_SCALE_NUMBERS(NUMBER) TABLE_NUMBERS(NUMBER) JOIN_NUMBERS(NUMBER)
typedef struct { TMA_NUMBERS(NUMBER_MEMBER) } product_numbers;
#define TMA_MEMORIES(MEMORY) GEMM_MEMORIES(MEMORY) MEMORY(const uchar *, maps) SCALE_MEMORIES(MEMORY)
#include "gemm/hopper/tma_members.h"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm_tma_multiply(
    MEMORY_PARAMETERS(TMA_MEMORIES) TABLE_PARAMETERS FURTHER_PARAMETERS(JOIN_MEMORIES)
    const launch_numbers numbers EPILOGUE_PARAMETERS) {
  NUMBERS_OF_LAUNCH
  DECLARE_MEMORIES(TMA_MEMORIES)
  DECLARE_MEMORIES(JOIN_MEMORIES)
  DECLARE_TABLES
  __local uint4 tiles[LOCAL_BYTES / 16] __attribute__((aligned(1024)));
#ifndef C_CHANNELS_LAST
  __local float staging[STAGED_NUMBERS] __attribute__((aligned(16)));
#endif
  __local ulong barriers[2 * STAGES];
#ifdef CLAIMED
  __local uint known_works[KNOWN_WORKS];
#endif
  JOIN_MEMORY
  const uint t = (uint)get_local_id(0), lane = t & 31, warpgroup = t >> 7;
  const uint local_base = (uint)(size_t)tiles, full = (uint)(size_t)barriers, empty = full + 8 * STAGES;
#if PRECISION == SCALED
  const bool is_mixed = is_mixed_product(mixture + mixture_offset);
  const uint planes = is_mixed ? PLANES : FP16_PLANES, stages = is_mixed ? STAGES * FP16_PLANES / PLANES : STAGES;
#else
  const uint planes = PLANES, stages = STAGES;
#endif
  const uint stage_bytes = planes * (R_PLANE + Q_PLANE);
  if (t == 0) {
    for (uint i = 0; i < STAGES; ++i) {
      BARRIER_BEGIN(full + 8 * i, 1);
      BARRIER_BEGIN(empty + 8 * i, WARPGROUPS * 4);
    }
    BARRIERS_BEGUN();
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  // A work: a tile of C, of a batch, of a part of k. Bands of tiles that share what they read follow each other.
#define FIND_TILE()                                                                                        \
  NUMBERS_OF_WORK                                                                                          \
  const uint tiles_q = (m_size + TILE_Q - 1) / TILE_Q, tiles_c = tiles_r * tiles_q;                        \
  const uint z = (work - first_work) / tiles_c, tile = work - first_work - z * tiles_c;                    \
  const uint part_number = z / batches, batch = z - part_number * batches;                                 \
  const uint band = tile / (BAND * tiles_q), in_band = tile - band * BAND * tiles_q;                       \
  const uint height = min(tiles_r - band * BAND, (uint)BAND);                                              \
  const uint r_begin = (band * BAND + in_band % height) * TILE_R, q_begin = in_band / height * TILE_Q;     \
  const uint tile_begin = part_number * part_tiles, tile_end = min(tiles_k, tile_begin + part_tiles);

  uint stage = 0, phase = 0, tries = MOST_TRIES;
#define NEXT_STAGE()           \
  if (++stage == stages) {     \
    stage = 0;                 \
    phase ^= 1;                \
  }
  if (t >= MULTIPLIERS) {
    if (t == MULTIPLIERS) {
      EACH(i, 2 * MEMBERS) READ_MAP(maps + OF_FIRST(maps_offset) + i * MAP_BYTES);
      EACH_WORK_TO_COPY() {
        CLAIM_WORK()
        FIND_TILE()
        __global const uchar *const left_map = maps + maps_offset, *const right_map = left_map + MAP_BYTES;
#if RIGHT != MATRIX
        FIND_TAPS()
#endif
#if RIGHT == IMAGE
        FIND_PLACE(r_begin)
        uint tap = tile_begin / channel_tiles, channel_tile = tile_begin - tap * channel_tiles;
        uint tap_y = tap / taps_x, tap_x = tap - tap_y * taps_x;
#endif
        for (uint k_tile = tile_begin; k_tile < tile_end; ++k_tile) {
          tries = wait_phase(empty + 8 * stage, phase ^ 1, tries);
          const uint arrived = full + 8 * stage;
          const uint right_to = local_base + stage * stage_bytes, left_to = right_to + planes * R_PLANE;
          if (k_tile + 1 == tile_end) { SAY_NEXT_WORK() }
          BARRIER_EXPECT(arrived, stage_bytes);
#if RIGHT == IMAGE_TURNED
          FIND_PLACE(k_tile * TILE_K)
#endif
          EACH(plane, planes) {
            const uint left_z = plane * batches + batch;
#if RIGHT == MATRIX
            COPY_BOX(right_to + plane * R_PLANE, right_map, arrived, 0, r_begin * tiles_k + k_tile * TILE_R, left_z);
            COPY_BOX(left_to + plane * Q_PLANE, left_map, arrived, 0, q_begin * tiles_k + k_tile * TILE_Q, left_z);
#elif RIGHT == IMAGE
            COPY_PLACES(right_to + plane * R_PLANE, right_map, arrived, channel_tile * TILE_K, place_x, place_y,
                        image + left_z * images, tap_x * tap_step_x, tap_y * tap_step_y);
            COPY_BOX(left_to + plane * Q_PLANE, left_map, arrived, k_tile * TILE_K, q_begin, left_z);
#else
            EACH(i, TILE_R / BLOCK_64) {
              const uint block = r_begin / BLOCK_64 + i, tap = min(block / channel_tiles, TAPS(_block) - 1);
              const uint tap_y = tap / taps_x;
              COPY_PLACES(right_to + plane * R_PLANE + i * ROWS_64_BYTES, right_map, arrived,
                          (block - tap * channel_tiles) * BLOCK_64, place_x, place_y, image + left_z * images,
                          (tap - tap_y * taps_x) * tap_step_x, tap_y * tap_step_y);
            }
            EACH(i, TILE_Q / BLOCK_64)
              COPY_BOX(left_to + plane * Q_PLANE + i * ROWS_64_BYTES, left_map, arrived, q_begin + i * BLOCK_64,
                       k_tile * TILE_K, left_z);
#endif
          }
#if RIGHT == IMAGE
          if (++channel_tile == channel_tiles) {
            channel_tile = 0;
            if (++tap_x == taps_x) {
              tap_x = 0;
              ++tap_y;
            }
          }
#endif
          NEXT_STAGE()
        }
      }
    }
    return;
  }

  a += OF_FIRST(a_offset);
  b += OF_FIRST(b_offset);
  EACH_WORK() {
    FIND_TILE()
    __global C_ELEMENTS *const result = c + c_offset;
    float sums[SUMS];
    EACH(i, SUMS) sums[i] = 0.0f;
#if HAS_PARTS
    float part[SUMS];
    EACH(i, SUMS) part[i] = 0.0f;
#endif
    MULTIPLY_TILES()
    if (tries == 0) EACH(i, SUMS) sums[i] = NAN;  // copies that never came: seen; splits are taken again

    const uint warp = t >> 5 & 3;
#ifdef C_CHANNELS_LAST
    // Sums 4·j + 2·h and the next belong to row lane / 4 + 8·h and to columns 8·j + 2·(lane % 4) and the next. The four lanes
    // of a row exchange those of four j, after which each has a block of 8 neighbouring columns. The operands of the
    // epilogue of AT_ONCE blocks are read before the first is written, since C may be one of them.
#define AT_ONCE (TILE_Q / 32 < 4 ? TILE_Q / 32 : 4)
    const uint quad = lane & 3;
    EACH(h, 2) {
      const uint line = r_begin + warpgroup * 64 + warp * 16 + (lane >> 2) + 8 * h, n = min(line, n_size - 1);
#ifndef GIVES_PARTS
      const uint outer = C_OUTER(n), inner = C_INNER(n, outer);
#endif
      EACH(first, TILE_Q / 32 / AT_ONCE) {
        float values[AT_ONCE][BLOCK_CHANNELS];
        ulong places[AT_ONCE];
        EACH(i, AT_ONCE) {
          const uint four = first * AT_ONCE + i;
          float turned[4][2];
          EACH(j, 4) EACH(e, 2) turned[j][e] = sums[(four * 4 + j) * 4 + 2 * h + e];
          turn_quad(turned, quad);
          EACH(j, 4) EACH(e, 2) values[i][2 * j + e] = turned[j][e];
          // No read waits for a branch: past the edge they repeat others.
          const uint m = min(q_begin + four * 32 + quad * BLOCK_CHANNELS, m_size - BLOCK_CHANNELS);
#ifdef GIVES_PARTS
          places[i] = (((ulong)z * n_size + n) * m_size + m) / 4;
#else
          places[i] = ((ulong)outer * c_outer + (ulong)inner * m_size + m) / BLOCK_CHANNELS;
          EPILOGUE_BLOCK(values[i], places[i], outer, m);
#endif
        }
        EACH(i, AT_ONCE) {
          const bool is_inside =
              line < n_size && q_begin + (first * AT_ONCE + i) * 32 + quad * BLOCK_CHANNELS < m_size;
#ifdef GIVES_PARTS
          EACH(half_number, 2) {
            if (is_inside)
              BLOCK_PARTS[places[i] + half_number] =
                  (uint4)(as_uint(values[i][4 * half_number]), as_uint(values[i][4 * half_number + 1]),
                          as_uint(values[i][4 * half_number + 2]), as_uint(values[i][4 * half_number + 3]));
          }
#else
          if (is_inside) result[places[i]] = block_of(values[i]);
#endif
        }
      }
    }
#else
    // The sums of STAGED_Q columns at a time go through local memory, after which neighbouring items have neighbouring
    // rows.
    __local float *const staged = staging + warpgroup * (STAGED_Q * STAGED_PITCH);
    uint column[2], outer[2], inner[2];
    bool is_column[2];
#if PRECISION == SCALED
    float right_scale[2];
#define LEFT_INVERSE(line) left_inverse[left_inverse_offset + SCALE_INDEX(left, batch, line)]
#define RIGHT_INVERSE(line) right_inverse[right_inverse_offset + SCALE_INDEX(right, batch, line)]
#endif
    EACH(half_number, 2) {
      const uint line = r_begin + warpgroup * 64 + half_number * 32 + lane;
      FIND_COLUMN(line, column[half_number], is_column[half_number])
      const uint n = is_column[half_number] ? column[half_number] : 0;
      outer[half_number] = C_OUTER(n);
      inner[half_number] = C_INNER(n, outer[half_number]);
#if PRECISION == SCALED
#if RIGHT == IMAGE
      right_scale[half_number] = RIGHT_INVERSE(n / PLACES(_block));
#else
      right_scale[half_number] = RIGHT_INVERSE(n);
#endif
#endif
    }
    const ulong c_begin = (ulong)z * c_batch;
    EACH(chunk, TILE_Q / STAGED_Q) {
      // Sum 4·j + e of an item belongs to row lane / 4 + 8·(e / 2) of its warp's 16 and to column 8·j + 2·(lane % 4) +
      // e % 2.
      EACH(j, STAGED_Q / 8) EACH(e, 4)
        staged[(j * 8 + (lane & 3) * 2 + e % 2) * STAGED_PITCH + warp * 16 + (lane >> 2) + e / 2 * 8] =
            sums[(chunk * (STAGED_Q / 8) + j) * 4 + e];
      WARPGROUP_BARRIER();
#define STAGED_COLUMN(i) (warp * (STAGED_Q / 4) + (i) / 2)
#define STAGED_PLACE(i) (STAGED_COLUMN(i) * STAGED_PITCH + (i) % 2 * 32 + lane)
#define M_OF(i) (q_begin + chunk * STAGED_Q + STAGED_COLUMN(i))
      float values[STAGED_Q / 2];
      EACH(i, STAGED_Q / 2) values[i] = staged[STAGED_PLACE(i)];
#if PRECISION == SCALED
      if (!is_mixed) {
        EACH(i, STAGED_Q / 2) values[i] = values[i] * LEFT_INVERSE(min(M_OF(i), m_size - 1)) * right_scale[i % 2];
      }
#endif
#if PRECISION == SPLIT || PRECISION == SCALED
      // A product of scaled operands is of finite factors: what is not finite there is too large.
      bool finite = true;
      EACH(i, STAGED_Q / 2) finite = finite & isfinite(values[i]);
#if PRECISION == SCALED
      finite |= !is_mixed;
#endif
      if (!finite) {
        for (uint i = 0; i < STAGED_Q / 2; ++i) {
          const bool wanted = i % 2 == 0 ? is_column[0] : is_column[1];
          if (isfinite(staged[STAGED_PLACE(i)]) || M_OF(i) >= m_size || !wanted) continue;
          staged[STAGED_PLACE(i)] = EXACT_SUM(M_OF(i), i % 2 == 0 ? column[0] : column[1]);
        }
        EACH(i, STAGED_Q / 2) values[i] = staged[STAGED_PLACE(i)];
      }
#endif
      // All operands of the epilogue are read before the first write: C may be one of them, so a read never passes a
      // write. No read waits for a branch: past the edge they repeat others.
#ifndef JOINED
      EACH(i, STAGED_Q / 2)
        values[i] = EPILOGUE(values[i], batch, min(M_OF(i), m_size - 1), outer[i % 2], inner[i % 2]);
#endif
      EACH(i, STAGED_Q / 2) {
        const uint m = M_OF(i);
        if (m >= m_size || !is_column[i % 2]) continue;
#ifdef JOINED
        joined[joined_offset + ((ulong)z * m_size + m) * n_size + column[i % 2]] = values[i];
#else
        result[c_begin + (index_t)m * c_m + C_COLUMN(outer[i % 2], inner[i % 2])] = values[i];
#endif
      }
      WARPGROUP_BARRIER();
    }
#endif
    JOIN_TILE()
  }
}
