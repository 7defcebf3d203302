// Which weights dropout in attention keeps: the one definition for kernels on every device and for the host. Compiles as
// OpenCL C and as C++. A weight is kept if its 16 random bits are below `keep`, a count out of 65536.
//
// The weights of a head, (queries, keys), are cut into squares of 16 queries by 16 keys. A square has 32 blocks of four
// words; block 4·r + c (r < 8, c < 4) serves eight weights, two a word, the first of them in the low half:
//   word[0]  query r      keys 2c and 2c + 1
//   word[1]  query r + 8  keys 2c and 2c + 1
//   word[2]  query r      keys 2c + 8 and 2c + 9
//   word[3]  query r + 8  keys 2c + 8 and 2c + 9
// These are the weights that lane 4·r + c of a warp holds on NVIDIA's matrix units, where rows are queries; where rows
// are keys, two lanes exchange halves (ops/attention_draws.h).
//
// A block is Philox4x32-7 of the counter (32·square + block, row of squares, purpose, step) under the key `seed`. Squares
// count along the keys; head b·H + h has the rows of squares from (b·H + h)·⌈queries / 16⌉ on. Seven rounds are the fewest
// of Philox4x32 that pass the test battery BigCrush (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
#ifndef CONCORD_ATTENTION_DROPOUT_H
#define CONCORD_ATTENTION_DROPOUT_H
#include "shared/philox.h"

#define ATTENTION_PHILOX_ROUNDS 7
#define DRAWN_SQUARE 16  // queries, and keys, of a square
#define DRAWN_BLOCKS 32  // of a square

// What all draws of an attention share.
typedef struct {
  philox_u32 keys[2 * ATTENTION_PHILOX_ROUNDS];  // two of every round
  philox_u32 purpose, step;
  philox_u32 limit;  // 65536·keep; keep is at most 65535
} attention_dropout;

static inline attention_dropout dropout_of(const philox_u32 seed_low, const philox_u32 seed_high,
                                           const philox_u32 step, const philox_u32 purpose, const philox_u32 keep) {
  attention_dropout dropout;
  for (philox_u32 round = 0; round < ATTENTION_PHILOX_ROUNDS; ++round) {
    dropout.keys[2 * round] = seed_low + round * PHILOX_STEP_0;
    dropout.keys[2 * round + 1] = seed_high + round * PHILOX_STEP_1;
  }
  dropout.purpose = purpose;
  dropout.step = step;
  dropout.limit = keep << 16;
  return dropout;
}

// The row of squares of query t of a head of so many queries.
static inline philox_u32 drawn_row(const philox_u32 head, const philox_u32 t, const philox_u32 queries) {
  return head * ((queries + DRAWN_SQUARE - 1) / DRAWN_SQUARE) + t / DRAWN_SQUARE;
}

// The place in its row of squares of the block that serves query t and key s.
static inline philox_u32 drawn_place(const philox_u32 t, const philox_u32 s) {
  return s / DRAWN_SQUARE * DRAWN_BLOCKS + t % 8 * 4 + s % 8 / 2;
}

static inline philox_block drawn_block(const attention_dropout dropout, const philox_u32 row, const philox_u32 place) {
  philox_block block;
  block.word[0] = place;
  block.word[1] = row;
  block.word[2] = dropout.purpose;
  block.word[3] = dropout.step;
  for (int round = 0; round < ATTENTION_PHILOX_ROUNDS; ++round) {
    block = philox_round(block, dropout.keys[2 * round], dropout.keys[2 * round + 1]);
  }
  return block;
}

// Whether the low (0) or high (1) half of a word keeps its weight: what lies below the half does not matter.
static inline bool keeps_half(const attention_dropout dropout, const philox_u32 word, const philox_u32 half_of_word) {
  return (half_of_word == 0 ? word << 16 : word) < dropout.limit;
}

// Whether the weight of query t and key s is kept.
static inline bool keeps_weight(const attention_dropout dropout, const philox_u32 head, const philox_u32 t,
                                const philox_u32 s, const philox_u32 queries) {
  const philox_block block = drawn_block(dropout, drawn_row(head, t, queries), drawn_place(t, s));
  const philox_u32 upper = s / 8 % 2 == 0 ? block.word[0] : block.word[2];
  const philox_u32 lower = s / 8 % 2 == 0 ? block.word[1] : block.word[3];
  return keeps_half(dropout, t / 8 % 2 == 0 ? upper : lower, s % 2);
}

#endif
