// Operands of gemm/hopper/tma.cl: numbers of PRECISION in planes (shared/nvidia/units.h), each plane with the index that the copy engine's boxes
// are narrow in as the inner one. Item 0 of each kernel also writes the tensor's description for the copy engine, whose
// address only the device knows (src/opencl/gemm/hopper/tensor_map.cpp).
#include "gemm/operands.h"
#include "gemm/hopper/scales.h"
#include "shared/nvidia/tma.h"
#include "shared/nvidia/units.h"

// Where a block of 16 bytes goes. TILE_LINES, TILE_BLOCKS: lines lie in tiles of so many lines by so many blocks, first
// those of the same lines; lines are padded to whole tiles and `blocks` are. Else a line's blocks follow each other.
#ifdef TILE_LINES
#define LINE_BLOCK(batch, lines, line, blocks, block)                                                             \
  ((((ulong)(batch) * (((lines) + TILE_LINES - 1) / TILE_LINES) + (line) / TILE_LINES) * (blocks) +                \
    (block) / TILE_BLOCKS * TILE_BLOCKS) *                                                                        \
       TILE_LINES +                                                                                               \
   (line) % TILE_LINES * TILE_BLOCKS + (block) % TILE_BLOCKS)
#else
#define LINE_BLOCK(batch, lines, line, blocks, block) (((ulong)(batch) * (lines) + (line)) * (blocks) + (block))
#endif

// SCALED has two maps: of the scaled planes, and of those of mixed factors.
#if PRECISION == SCALED
#define CHOSEN_MAP (map + (is_mixed ? MAP_WORDS : 0))
#else
#define CHOSEN_MAP map
#endif
// DESCRIBE: the product's other operand lies in memory as the copy engine takes it; it is described along.
#ifdef DESCRIBE
#define DESCRIBE_OPERANDS                                                            \
  , __global const uint *restrict direct_map, __global const uint4 *restrict direct, \
      __global uint *restrict direct_maps
#define DESCRIBE_NUMBERS(NUMBER) NUMBER(ulong, direct_offset) NUMBER(ulong, direct_maps_offset)
#define WRITE_DIRECT_MAP() write_map(direct_map, direct_maps + direct_maps_offset, direct + direct_offset)
#else
#define DESCRIBE_OPERANDS
#define DESCRIBE_NUMBERS(NUMBER)
#define WRITE_DIRECT_MAP()
#endif

// With SCALED a line's values are packed with the scale of its batch and image or row.
#if PRECISION == SCALED
#define SCALE_OPERANDS , __global const Mixture *restrict mixture, SCALE_OPERAND(packed)
#define ALL_SCALE_NUMBERS(NUMBER) NUMBER(ulong, mixture_offset) SCALE_NUMBERS(NUMBER, packed)
#define BEGIN_SCALED()                                             \
  const bool is_mixed = is_mixed_product(mixture + mixture_offset); \
  packed_inverse += packed_inverse_offset;
#define STORE(to, values, batch, line)                                             \
  if (is_mixed) {                                                                  \
    store_planes(to, plane_blocks, values);                                        \
  } else {                                                                         \
    const float inverse = packed_inverse[SCALE_INDEX(packed, batch, line)];        \
    store_scaled(to, plane_blocks, values, reciprocal(inverse));                   \
  }
#else
#define SCALE_OPERANDS
#define ALL_SCALE_NUMBERS(NUMBER)
#define BEGIN_SCALED()
#define STORE(to, values, batch, line) store_planes(to, plane_blocks, values);
#endif

#define MAP_OPERANDS                                                  \
  __global const uint *restrict map, __global uint4 *restrict packed, \
      __global uint *restrict maps SCALE_OPERANDS DESCRIBE_OPERANDS
#define MAP_NUMBERS(NUMBER) \
  NUMBER(ulong, packed_offset) NUMBER(ulong, maps_offset) ALL_SCALE_NUMBERS(NUMBER) DESCRIBE_NUMBERS(NUMBER)
#define BEGIN_PACKED()                                                              \
  packed += packed_offset;                                                          \
  BEGIN_SCALED()                                                                    \
  if (get_global_id(0) == 0 && get_global_id(1) == 0 && get_global_id(2) == 0) {    \
    write_map(CHOSEN_MAP, maps + maps_offset, packed);                              \
    WRITE_DIRECT_MAP();                                                             \
  }

// Of operands that lie as the copy engine takes them: nothing is packed.
typedef struct { MAP_NUMBERS(NUMBER_MEMBER) } map_numbers;
__kernel void planes_describe(MAP_OPERANDS, const map_numbers numbers) {
  MAP_NUMBERS(NUMBER_CONSTANT)
  BEGIN_PACKED()
}

// Rows whose k is adjacent in memory: (batch, row, k) from b_batch and row strides to (plane, batch, row, k in blocks, as
// LINE_BLOCK says).
// An item packs a block of a row. VECTOR: blocks are aligned to 16 bytes.
#define ROW_NUMBERS(NUMBER)                                                                 \
  NUMBER(uint, rows) NUMBER(uint, k_size) NUMBER(uint, blocks) NUMBER(ulong, source_offset) \
  NUMBER(ulong, batch_stride) NUMBER(ulong, row_stride) NUMBER(ulong, plane_blocks) MAP_NUMBERS(NUMBER)
typedef struct { ROW_NUMBERS(NUMBER_MEMBER) } row_numbers;
__kernel void planes_pack_rows(__global const float *restrict source, MAP_OPERANDS, const row_numbers numbers) {
  ROW_NUMBERS(NUMBER_CONSTANT)
  const uint block = (uint)get_global_id(0), row = (uint)get_global_id(1), batch = (uint)get_global_id(2);
  BEGIN_PACKED()
  if (block >= blocks || row >= rows) return;
  source += source_offset + batch * batch_stride + row * row_stride + block * BLOCK;
  float values[BLOCK];
#ifdef VECTOR
  if ((block + 1) * BLOCK <= k_size) {
    EACH(i, BLOCK / 4) {
      const float4 four = ((__global const float4 *)source)[i];
      values[4 * i] = four.x;
      values[4 * i + 1] = four.y;
      values[4 * i + 2] = four.z;
      values[4 * i + 3] = four.w;
    }
  } else
#endif
  {
    EACH(i, BLOCK) values[i] = block * BLOCK + i < k_size ? source[i] : 0.0f;
  }
  STORE(packed + LINE_BLOCK(batch, rows, row, blocks, block), values, batch, row)
}

// Columns adjacent in memory become rows: element (j, i) at j·j_stride + (i / run)·run_stride + i % run, to
// (plane, batch, i, j in blocks). A group turns a square of SIDE x SIDE in local memory.
#define SIDE 64
#define TURN_THREADS 256
#define PITCH (SIDE + 1)
#define TURN_NUMBERS(NUMBER)                                                                  \
  NUMBER(uint, i_size) NUMBER(uint, j_size) NUMBER(uint, blocks) NUMBER(ulong, source_offset) \
  NUMBER(ulong, batch_stride) NUMBER(ulong, j_stride) DIVISOR_NUMBERS(NUMBER, run)            \
  NUMBER(ulong, run_stride) NUMBER(ulong, plane_blocks) MAP_NUMBERS(NUMBER)
typedef struct { TURN_NUMBERS(NUMBER_MEMBER) } turn_numbers;
__kernel __attribute__((reqd_work_group_size(TURN_THREADS, 1, 1))) void planes_pack_turned(
    __global const float *restrict source, MAP_OPERANDS, const turn_numbers numbers) {
  TURN_NUMBERS(NUMBER_CONSTANT)
  __local float square[SIDE * PITCH];
  const uint t = (uint)get_local_id(0), batch = (uint)get_global_id(2);
  const uint i_begin = (uint)get_group_id(0) * SIDE, j_begin = (uint)get_group_id(1) * SIDE;
  BEGIN_PACKED()

  const uint i = i_begin + t % SIDE, outer = DIVIDE(i, run);
  source += source_offset + batch * batch_stride + outer * run_stride + (i - outer * run);
#pragma unroll 8
  for (uint row = t / SIDE; row < SIDE; row += TURN_THREADS / SIDE) {
    const uint j = j_begin + row;
    square[row * PITCH + t % SIDE] = i < i_size && j < j_size ? source[j * j_stride] : 0.0f;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  const uint block = t % (SIDE / BLOCK), to_block = j_begin / BLOCK + block;
  if (to_block >= blocks) return;
#pragma unroll
  for (uint row = t / (SIDE / BLOCK); row < SIDE; row += TURN_THREADS / (SIDE / BLOCK)) {
    if (i_begin + row >= i_size) break;
    float values[BLOCK];
    EACH(e, BLOCK) values[e] = square[(block * BLOCK + e) * PITCH + row];
    STORE(packed + LINE_BLOCK(batch, i_size, i_begin + row, blocks, to_block), values, batch,
          DIVIDE(i_begin + row, run))
  }
}

// Filters: A(m, channel·taps + tap) to (plane, batch, m, tap, channel in `blocks` blocks), zeros from `channels` on; with
// `backward`, taps from last to first. An item packs a block.
#define FILTER_NUMBERS(NUMBER)                                                                               \
  NUMBER(uint, m_size) NUMBER(uint, channels) NUMBER(uint, taps) NUMBER(uint, backward) NUMBER(uint, blocks) \
  GEMM_A_NUMBERS(NUMBER) NUMBER(ulong, plane_blocks) MAP_NUMBERS(NUMBER)
typedef struct { FILTER_NUMBERS(NUMBER_MEMBER) } filter_numbers;
__kernel void planes_pack_filters(__global const float *restrict a, MAP_OPERANDS, const filter_numbers numbers) {
  FILTER_NUMBERS(NUMBER_CONSTANT)
  const uint i = (uint)get_global_id(0), m = (uint)get_global_id(1), batch = (uint)get_global_id(2);
  BEGIN_PACKED()
  if (i >= taps * blocks) return;
  const uint to_tap = i / blocks, block = i - to_tap * blocks, tap = backward ? taps - 1 - to_tap : to_tap;
  a += a_offset + batch * a_batch;
  float values[BLOCK];
  EACH(e, BLOCK) {
    const uint channel = block * BLOCK + e, k = channel * taps + tap;
    values[e] = channel < channels ? a[A_ROW(m) + A_STEP(k)] : 0.0f;
  }
  STORE(packed + ((ulong)batch * m_size + m) * taps * blocks + i, values, batch, m)
}
