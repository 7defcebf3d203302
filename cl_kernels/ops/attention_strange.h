// What attention kernels on matrix units add after a guarded pass (ops/attention_mma.h): values that are not finite,
// which their products left out, reach the rows that see them with a weight other than 0. Rare, so short rather than
// fast.
#ifndef CONCORD_ATTENTION_STRANGE_H
#define CONCORD_ATTENTION_STRANGE_H
#include "ops/attention_form.h"

// Vectors and statistics of a head; `drawn_head` is its number among all, b·H + h.
#define HEAD_PARAMETERS                                                                                              \
  __global const vector_t *q, __global const vector_t *k, __global const float *largest,                             \
      __global const float *inverse, const uint queries, const uint keys, const int length, const float scale,       \
      const uint drawn_head HEAD_MASK_PARAMETERS DROPOUT_OPERANDS
#ifdef MASK
#define HEAD_MASK_PARAMETERS , __global const float *mask, const ulong mask_row
#define HEAD_MASK(of_head) , mask + (of_head), mask_row
#else
#define HEAD_MASK_PARAMETERS
#define HEAD_MASK(of_head)
#endif
#define WEIGHT_OF(t, s)                                                                                              \
  one_weight(q + (ulong)(t) * Q_PITCH, k + (ulong)(s) * K_PITCH, scale, ADDED((t) * mask_row + (s)),                 \
             largest[t], inverse[t], drawn_head, t, s, queries DROPOUT_ARGUMENTS)

// Of value d: the strange values of v that query t sees, times their weights.
static inline float strange_values(__global const vector_t *v, const uint t, const uint d, HEAD_PARAMETERS) {
  const uint seen = keys_seen(t, length, queries);
  float sum = 0.0f;
  for (uint s = 0; s < seen; ++s) {
    const float value = value_of(v[(ulong)s * V_PITCH + d]);
    if (!is_strange(value)) continue;
    const float weight = WEIGHT_OF(t, s);
    if (weight != 0.0f) sum += weight * value;
  }
  return sum;
}

// Of value d: the strange values of diff_dst of queries `begin` and later that see key s, times their weights.
static inline float strange_gradients(__global const vector_t *diff_dst, const uint s, const uint d, const uint begin,
                                      HEAD_PARAMETERS) {
  float sum = 0.0f;
  for (uint t = begin; t < queries; ++t) {
    const float diff = value_of(diff_dst[(ulong)t * QUERY_PITCH + d]);
    if (!is_strange(diff) || s >= keys_seen(t, length, queries)) continue;
    const float weight = WEIGHT_OF(t, s);
    if (weight != 0.0f) sum += weight * diff;
  }
  return sum;
}

static inline void add_to(__global vector_t *to, const float added) {
  if (added != 0.0f) *to = number_of(value_of(*to) + added);
}

#endif
