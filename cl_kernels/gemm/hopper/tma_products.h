// The loops in which gemm/hopper/tma.cl multiplies the tiles of a work, by the numbers that stand for a factor. Uses that
// file's names.
#ifndef CONCORD_NVIDIA_GEMM_TMA_PRODUCTS_H
#define CONCORD_NVIDIA_GEMM_TMA_PRODUCTS_H

#define RELEASE(of_stage) \
  if (lane == 0) BARRIER_ARRIVE(empty + 8 * (of_stage))
// After a wait the sums hold what the units wrote: keeps the compiler from reading them before.
#define SETTLE(sums) EACH(i, SUMS) asm volatile("" : "+f"((sums)[i])::"memory")

// The tiles of a work; TAKE_TILE waits for the next one and names what the units read of it.
#define EACH_TILE() for (uint k_tile = tile_begin; k_tile < tile_end; ++k_tile)
#define TAKE_TILE()                                                                                               \
  tries = wait_phase(full + 8 * stage, phase, tries);                                                             \
  const uint at = local_base + stage * stage_bytes;                                                               \
  const ulong rows = DESCRIPTOR(at + warpgroup * ROWS_64_BYTES), columns = DESCRIPTOR(at + planes * R_PLANE);      \
  WGMMA_FENCE();

// Products of a tile, those of small parts first. `keep`: added to what the sums hold.
#define ONE_PRODUCT(types, to) \
  EACH(step, STEPS) WGMMA_OF(types, to, rows + step * STEP_UNITS, columns + step * STEP_UNITS, 1)
// Of two fp16 numbers each, without the product of both small parts.
#define THREE_PRODUCTS(to, keep)                                                   \
  const ulong low_r = rows + R_PLANE / 16, low_q = columns + Q_PLANE / 16;         \
  EACH(step, STEPS) {                                                              \
    const ulong next = step * STEP_UNITS;                                          \
    WGMMA_OF(WGMMA_TYPES_FP16, to, rows + next, low_q + next, (keep) || step != 0); \
    WGMMA_OF(WGMMA_TYPES_FP16, to, low_r + next, columns + next, 1);               \
    WGMMA_OF(WGMMA_TYPES_FP16, to, rows + next, columns + next, 1);                \
  }
// Of three bf16 numbers each, without the three smallest products.
#define SIX_PRODUCTS(to, keep)                                                     \
  const ulong middle_r = rows + R_PLANE / 16, low_r = middle_r + R_PLANE / 16;     \
  const ulong middle_q = columns + Q_PLANE / 16, low_q = middle_q + Q_PLANE / 16;  \
  EACH(step, STEPS) {                                                              \
    const ulong next = step * STEP_UNITS;                                          \
    WGMMA(to, rows + next, low_q + next, (keep) || step != 0);                     \
    WGMMA(to, low_r + next, columns + next, 1);                                    \
    WGMMA(to, middle_r + next, middle_q + next, 1);                                \
    WGMMA(to, rows + next, middle_q + next, 1);                                    \
    WGMMA(to, middle_r + next, columns + next, 1);                                 \
    WGMMA(to, rows + next, columns + next, 1);                                     \
  }

// The units round their sums toward zero: for fp32 results each tile's are added up outside.
#define ADD_TILES_OUTSIDE(PRODUCTS)     \
  EACH_TILE() {                         \
    TAKE_TILE()                         \
    PRODUCTS(part, 0)                   \
    WGMMA_COMMIT();                     \
    WGMMA_WAIT();                       \
    RELEASE(stage);                     \
    SETTLE(part);                       \
    EACH(i, SUMS) sums[i] += part[i];   \
    NEXT_STAGE()                        \
  }
// The units add up themselves.
#define ADD_TILES_INSIDE(PRODUCTS) \
  EACH_TILE() {                    \
    TAKE_TILE()                    \
    PRODUCTS(sums, 1)              \
    WGMMA_COMMIT();                \
    WGMMA_WAIT();                  \
    RELEASE(stage);                \
    SETTLE(sums);                  \
    NEXT_STAGE()                   \
  }
// One product, a tile's while the next one's is begun.
#define ADD_TILES_OVERLAPPED(types)           \
  {                                           \
    uint in_use = stages;                     \
    EACH_TILE() {                             \
      TAKE_TILE()                             \
      ONE_PRODUCT(types, sums);               \
      WGMMA_COMMIT();                         \
      WGMMA_WAIT_BUT_ONE();                   \
      if (in_use < stages) RELEASE(in_use);   \
      in_use = stage;                         \
      NEXT_STAGE()                            \
    }                                         \
    WGMMA_WAIT();                             \
    RELEASE(in_use);                          \
    SETTLE(sums);                             \
  }

#if PRECISION == SPLIT
#define MULTIPLY_TILES() ADD_TILES_OUTSIDE(SIX_PRODUCTS)
#elif PRECISION == SCALED && FP16_PLANES == 2
#define MULTIPLY_TILES()                \
  if (is_mixed) {                       \
    ADD_TILES_OUTSIDE(SIX_PRODUCTS)     \
  } else {                              \
    ADD_TILES_OUTSIDE(THREE_PRODUCTS)   \
  }
#elif PRECISION == SCALED
#define MULTIPLY_TILES()                      \
  if (is_mixed) {                             \
    ADD_TILES_INSIDE(SIX_PRODUCTS)            \
  } else {                                    \
    ADD_TILES_OVERLAPPED(WGMMA_TYPES_FP16)    \
  }
#else
#define MULTIPLY_TILES() ADD_TILES_OVERLAPPED(WGMMA_TYPES)
#endif
#define HAS_PARTS (PRECISION == SPLIT || (PRECISION == SCALED && FP16_PLANES == 2))

#endif
