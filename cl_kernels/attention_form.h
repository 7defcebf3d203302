// The form of attention (src/ops/attention.hpp) as its kernels see it: what hides keys from a query, the mask, and the
// random numbers of dropout.
//
// Definitions: CAUSAL_FIRST or CAUSAL_LAST; MASK; LENGTHS; DROPOUT; WIDTH, the values of a vector; TOKENS_FIRST, and then
// QUERY_PITCH and KEY_PITCH, the values of all heads of a token.
#ifndef CONCORD_ATTENTION_FORM_H
#define CONCORD_ATTENTION_FORM_H
#include "philox.h"

// Vectors lie as (batch, heads, rows, WIDTH) or, with TOKENS_FIRST, as (batch, rows, heads, WIDTH): where those of a head
// begin, and how far apart they are; HEAD_APART vectors on those of the next head begin. Deltas lie as the vectors do.
#ifdef TOKENS_FIRST
#define OF_HEAD(batch, head, heads, rows) (((ulong)(batch) * (rows) * (heads) + (head)) * WIDTH)
#define OF_DELTAS(batch, head) ((ulong)(batch) * queries * heads + (head))
#define DELTA_PITCH heads
#define HEAD_APART 1
#else
#define QUERY_PITCH WIDTH
#define KEY_PITCH WIDTH
#define OF_HEAD(batch, head, heads, rows) (((ulong)(batch) * (heads) + (head)) * (rows) * WIDTH)
#define OF_DELTAS(batch, head) (((ulong)(batch) * heads + (head)) * queries)
#define DELTA_PITCH 1
#define HEAD_APART queries
#endif

// Always inlined: PoCL 3.1 gives the local memory that a function of its own is called with to all threads at once.
#define TILE_FUNCTION static inline __attribute__((always_inline))

// The operands of the form, as arguments of a kernel.
#ifdef MASK
#define MASK_PARAMETERS , __global const float *mask, ulong mask_offset, ulong mask_batch, ulong mask_head, ulong mask_row
#else
#define MASK_PARAMETERS
#endif
#ifdef LENGTHS
#define LENGTH_PARAMETERS , __global const int *lengths, ulong lengths_offset
#define LENGTH_OF(batch) lengths[lengths_offset + (batch)]
#else
#define LENGTH_PARAMETERS
#define LENGTH_OF(batch) ((int)keys)
#endif
#ifdef DROPOUT
#define DROPOUT_PARAMETERS , __global const int *state, ulong state_offset, uint purpose, float keep, float kept
#define DRAW_ARGUMENTS , state + state_offset, purpose, keep, kept
#else
#define DROPOUT_PARAMETERS
#endif
#define FORM_PARAMETERS MASK_PARAMETERS LENGTH_PARAMETERS DROPOUT_PARAMETERS
#define SIZE_PARAMETERS uint heads, uint key_heads, uint queries, uint keys, float scale

// How many keys query t sees: the first ones.
static inline uint keys_seen(const uint t, const int length, const uint queries) {
#if defined(CAUSAL_FIRST)
  return min((uint)length, t + 1);
#elif defined(CAUSAL_LAST)
  return (uint)clamp((int)t + 1 + length - (int)queries, 0, length);
#else
  return (uint)length;
#endif
}

// The first query that sees key s; may be beyond the last one.
static inline uint first_query(const uint s, const int length, const uint queries) {
#if defined(CAUSAL_FIRST)
  return s;
#elif defined(CAUSAL_LAST)
  return (uint)max((int)s + (int)queries - length, 0);
#else
  return 0;
#endif
}

#ifdef DROPOUT
// The random numbers of four weights: key s (a multiple of 4) and its neighbours, of row `row` = (b·H + h)·T + t.
static inline philox_block drawn_block(const ulong row, const uint s, const uint keys, __global const int *state,
                                       const uint purpose) {
  const ulong seed = (ulong)(uint)state[0] | ((ulong)(uint)state[1] << 32);
  return philox4x32(row * ((keys + 3) / 4) + s / 4, purpose, (uint)state[2], seed);
}

// Their factors.
static inline float4 draw_four(const ulong row, const uint s, const uint keys, __global const int *state,
                               const uint purpose, const float keep, const float kept) {
  const philox_block block = drawn_block(row, s, keys, state, purpose);
  const uint4 bits = (uint4)(block.word[0], block.word[1], block.word[2], block.word[3]) >> 8;
  return select((float4)(0.0f), (float4)(kept), convert_float4(bits) * 5.9604644775390625e-8f < keep);
}
#endif

#endif
