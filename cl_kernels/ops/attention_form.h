// The form of attention (src/ops/attention.hpp) as its kernels see it: what hides keys from a query, the mask, and
// dropout, whose random numbers shared/attention_dropout.h lays out.
//
// Definitions: CAUSAL_FIRST or CAUSAL_LAST; MASK; LENGTHS; DROPOUT; WIDTH, the values of a vector; TOKENS_FIRST, and then
// QUERY_PITCH and KEY_PITCH, the values of all heads of a token, and Q_PITCH, K_PITCH and V_PITCH, the values from token
// to token of q, k and v, which may be columns of wider tokens; TOKENS for vectors in 16 bits.
#ifndef CONCORD_ATTENTION_FORM_H
#define CONCORD_ATTENTION_FORM_H
#include "shared/attention_dropout.h"

// A value of a vector in memory.
#ifdef TOKENS
#include "shared/channels_last.h"
typedef ushort vector_t;
static inline float value_of(const vector_t number) { return floats_of(number).x; }
static inline vector_t number_of(const float value) { return (vector_t)pair_of(value, 0.0f); }
#else
typedef float vector_t;
#define value_of(number) (number)
#define number_of(value) (value)
#endif

// Vectors lie as (batch, heads, rows, WIDTH) or, with TOKENS_FIRST, as (batch, rows, heads, WIDTH): where those of a head
// begin, and how far apart they are; HEAD_APART vectors on those of the next head begin. Deltas lie as the vectors do.
#ifdef TOKENS_FIRST
#define OF_HEAD(batch, head, heads, rows) (((ulong)(batch) * (rows) * (heads) + (head)) * WIDTH)
#define OF_Q(batch, head) ((ulong)(batch) * queries * Q_PITCH + (head)*WIDTH)
#define OF_K(batch, key_head) ((ulong)(batch) * keys * K_PITCH + (key_head)*WIDTH)
#define OF_V(batch, key_head) ((ulong)(batch) * keys * V_PITCH + (key_head)*WIDTH)
#define OF_DELTAS(batch, head) ((ulong)(batch) * queries * heads + (head))
#define DELTA_PITCH heads
#define HEAD_APART 1
#else
#define QUERY_PITCH WIDTH
#define KEY_PITCH WIDTH
#define Q_PITCH WIDTH
#define K_PITCH WIDTH
#define V_PITCH WIDTH
#define OF_HEAD(batch, head, heads, rows) (((ulong)(batch) * (heads) + (head)) * (rows) * WIDTH)
#define OF_Q(batch, head) OF_HEAD(batch, head, heads, queries)
#define OF_K(batch, key_head) OF_HEAD(batch, key_head, key_heads, keys)
#define OF_V(batch, key_head) OF_HEAD(batch, key_head, key_heads, keys)
#define OF_DELTAS(batch, head) (((ulong)(batch) * heads + (head)) * queries)
#define DELTA_PITCH 1
#define HEAD_APART queries
#endif

// Always inlined: PoCL 3.1 gives the local memory that a function of its own is called with to all threads at once.
#define TILE_FUNCTION static inline __attribute__((always_inline))

// The operands of the form, as arguments of a kernel.
#ifdef MASK
#define MASK_PARAMETERS , __global const float *mask, ulong mask_offset, ulong mask_batch, ulong mask_head, ulong mask_row
#define ADDED(place) mask[place]
#else
#define MASK_PARAMETERS
#define ADDED(place) 0.0f
#endif
#ifdef LENGTHS
#define LENGTH_PARAMETERS , __global const int *lengths, ulong lengths_offset
#define LENGTH_OF(batch) lengths[lengths_offset + (batch)]
#else
#define LENGTH_PARAMETERS
#define LENGTH_OF(batch) ((int)keys)
#endif
#ifdef DROPOUT
#define DROPOUT_PARAMETERS , __global const uint *state, ulong state_offset, uint purpose, uint keep, float kept
#define BEGIN_DROPOUT() \
  state += state_offset; \
  const attention_dropout dropout = dropout_of(state[0], state[1], state[2], purpose, keep);
#define KEPT_FACTOR kept
#define DROPOUT_ARGUMENTS , dropout, kept
#define DROPOUT_OPERANDS , const attention_dropout dropout, const float kept
#else
#define DROPOUT_PARAMETERS
#define BEGIN_DROPOUT()
#define DROPOUT_ARGUMENTS
#define DROPOUT_OPERANDS
#define KEPT_FACTOR 1.0f
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

// A score from the product of query and key. What the mask hides is −∞ whatever the product is. fma: the gradients must
// find the bits of the forward pass again.
static inline float masked_score(const float product, const float scale, const float added) {
  return added == -INFINITY ? -INFINITY : fma(scale, product, added);
}

// The weight of a score from the statistics of its row, the largest score and 1 / Σ exp(score − largest); 0 for what is
// hidden.
static inline float weight_of(const float score, const float largest, const float inverse) {
  return score == -INFINITY ? 0.0f : exp(score - largest) * inverse;
}

// d loss / d score; `factor` multiplies a weight that dropout keeps. What has a weight of 0 or is dropped is not read,
// whatever it is.
static inline float slope_of(const float weight, const bool is_kept, const float factor, const float product,
                             const float delta) {
  return weight == 0.0f ? 0.0f : weight * (is_kept ? factor * product - delta : -delta);
}

// Whether x is infinite or not a number.
static inline bool is_strange(const float x) { return (as_uint(x) & 0x7f800000u) == 0x7f800000u; }

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

// Whether `value` is true for any item of the group.
TILE_FUNCTION bool any_item(__local int *flag, const bool value) {
  if (get_local_id(0) == 0) *flag = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (value) atomic_or(flag, 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  return *flag != 0;
}

// The weight of query t and key s of head b·H + h, with the factor of dropout, from their vectors; for the few values that
// are not finite, which the products leave out.
static inline float one_weight(__global const vector_t *query, __global const vector_t *key, const float scale,
                               const float added, const float largest, const float inverse, const uint head,
                               const uint t, const uint s, const uint queries DROPOUT_OPERANDS) {
  float product = 0.0f;
  for (uint d = 0; d < WIDTH; ++d) product += value_of(query[d]) * value_of(key[d]);
  const float weight = weight_of(masked_score(product, scale, added), largest, inverse);
#ifdef DROPOUT
  if (!keeps_weight(dropout, head, t, s, queries)) return 0.0f;
#endif
  return weight * KEPT_FACTOR;
}

#endif
