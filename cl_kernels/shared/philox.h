// Philox4x32-10, the counter-based random numbers of Concord (Salmon, Moraes, Dror, Shaw: "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC 2011). Compiles as OpenCL C and as C++, so weights, dropout masks, shuffles
// and augmentation are bit-equal on every device: a number depends on (seed, purpose, step, index) alone. Dropout in
// attention takes seven rounds (shared/attention_dropout.h).
#ifndef CONCORD_PHILOX_H
#define CONCORD_PHILOX_H

#ifdef __OPENCL_VERSION__
typedef ulong philox_u64;
typedef uint philox_u32;
#else
#include <cstdint>
typedef std::uint64_t philox_u64;
typedef std::uint32_t philox_u32;
#endif

typedef struct {
  philox_u32 word[4];
} philox_block;

// One round over a counter under the key (k0, k1).
static inline philox_block philox_round(philox_block c, philox_u32 k0, philox_u32 k1) {
  const philox_u64 p0 = (philox_u64)0xD2511F53u * c.word[0];
  const philox_u64 p1 = (philox_u64)0xCD9E8D57u * c.word[2];
  philox_block block;
  block.word[0] = (philox_u32)(p1 >> 32) ^ c.word[1] ^ k0;
  block.word[1] = (philox_u32)p1;
  block.word[2] = (philox_u32)(p0 >> 32) ^ c.word[3] ^ k1;
  block.word[3] = (philox_u32)p0;
  return block;
}

#define PHILOX_ROUNDS 10
// What the two halves of the key grow by from round to round.
#define PHILOX_STEP_0 0x9E3779B9u
#define PHILOX_STEP_1 0xBB67AE85u

// All rounds over the 128-bit counter (index_low, index_high, purpose, step) under the 64-bit key `seed`.
static inline philox_block philox4x32(philox_u64 index, philox_u32 purpose, philox_u32 step, philox_u64 seed) {
  philox_u32 k0 = (philox_u32)seed, k1 = (philox_u32)(seed >> 32);
  philox_block block;
  block.word[0] = (philox_u32)index;
  block.word[1] = (philox_u32)(index >> 32);
  block.word[2] = purpose;
  block.word[3] = step;
  for (int round = 0; round < PHILOX_ROUNDS; ++round) {
    block = philox_round(block, k0, k1);
    k0 += PHILOX_STEP_0;
    k1 += PHILOX_STEP_1;
  }
  return block;
}

// Element `index` of the stream (seed, purpose, step): one 32-bit word; four neighbours share a block.
static inline philox_u32 philox_word(philox_u64 index, philox_u32 purpose, philox_u32 step, philox_u64 seed) {
  const philox_block block = philox4x32(index >> 2, purpose, step, seed);
  return block.word[index & 3];
}

// Uniform in [0, 1) with 24 bits: exact in float on every device.
static inline float philox_uniform(philox_u64 index, philox_u32 purpose, philox_u32 step, philox_u64 seed) {
  return (float)(philox_word(index, purpose, step, seed) >> 8) * 5.9604644775390625e-8f;
}

#endif
