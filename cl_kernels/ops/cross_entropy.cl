// cross_entropy_forward: logits (rows, classes) and a target give loss, largest logit and Σ exp(x − max) of each row. LANES
// items share a row (shared/lanes.h) and read it once, 4 bytes an element; with smoothing or probabilities once more.
// loss = Σ_c t'_c·(log Σ exp(x − max) − (x_c − max)), t' = (1 − smoothing)·t + smoothing / classes. With CLASS_INDEX t is
// 1 at the target's class (NaN loss outside [0, classes)); otherwise `target` holds probabilities (rows, classes).
// With TOKENS logits lie in 16 bits, each row padded to whole blocks of 8 (shared/channels_last.h), 2 bytes an element.
#include "shared/lanes.h"
#ifdef TOKENS
#include "shared/channels_last.h"
#ifdef PTX
#include "shared/nvidia/ptx.h"
#endif
#endif

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

#ifdef CLASS_INDEX
typedef int target_t;
#else
typedef float target_t;
#endif

#ifdef TOKENS
#define LOGITS uint4
#define AT_ONCE 8
#define ROW_LENGTH ((classes + 7) / 8)
#define CLASS_OF(first, i) (8 * (first) + (i))
#define STEP LANES
// A block is read while the one before is added up.
#define BEGIN_READING() uint4 next = logits[min((ulong)LANE, ROW_LENGTH - 1)];
#define READ_LOGITS(x, first) \
  read_block(x, next);        \
  next = logits[min((first) + LANES, ROW_LENGTH - 1)]
#define LOGIT(c) floats_of(((__global const ushort *)logits)[c]).x
#else
#define LOGITS float
#define AT_ONCE 4
#define ROW_LENGTH classes
#define CLASS_OF(first, i) ((first) + (i)*LANES)
#define STEP (AT_ONCE * LANES)
#define BEGIN_READING()
#define READ_LOGITS(x, first) \
  EACH(i, AT_ONCE) x[i] = CLASS_OF(first, i) < classes ? logits[CLASS_OF(first, i)] : -INFINITY
#define LOGIT(c) logits[c]
#endif

// e^x for x <= 0. Of 16-bit logits by an instruction of NVIDIA's GPUs, within 2^-21 of a term of the largest size.
#if defined(TOKENS) && defined(PTX)
#define TERM(x) power_of_two((x)*1.44269504f)
#else
#define TERM(x) exp(x)
#endif

// The terms so far, of which `ones` are 1, relative to a larger logit.
#define RELATIVE_TO(larger)                              \
  {                                                      \
    others = (others + ones) * TERM(largest - (larger));  \
    ones = 0.0f;                                         \
    largest = (larger);                                  \
  }

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void cross_entropy_forward(
    __global const LOGITS *restrict logits, ulong logits_offset, __global const target_t *restrict target,
    ulong target_offset, __global float *restrict loss, ulong loss_offset, __global float *restrict maxima,
    ulong maxima_offset, __global float *restrict sums, ulong sums_offset, ulong rows, ulong classes, float smoothing) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, of_row = min(row, rows - 1);
  logits += logits_offset + of_row * ROW_LENGTH;
  // Terms relative to the largest logit so far. The largest terms are 1. Counted apart they do not swallow the others,
  // which are all there is of a small loss.
  float largest = -INFINITY, others = 0.0f, ones = 0.0f;
  BEGIN_READING()
  for (ulong first = LANE; first < ROW_LENGTH; first += STEP) {
    float x[AT_ONCE], most = largest;
    READ_LOGITS(x, first);
    EACH(i, AT_ONCE) x[i] = CLASS_OF(first, i) < classes ? x[i] : -INFINITY;
    EACH(i, AT_ONCE) most = COMBINE_MAXIMUM(most, x[i]);
    if (most != largest) RELATIVE_TO(most);
    EACH(i, AT_ONCE) {
      const bool counts = CLASS_OF(first, i) < classes, is_one = x[i] == largest;
      others += counts && !is_one ? TERM(x[i] - largest) : 0.0f;
      ones += counts && is_one ? 1.0f : 0.0f;
    }
  }
  float largest_of_row = largest;
  LANES_REDUCE(largest_of_row, scratch, COMBINE_MAXIMUM);
  if (largest_of_row != largest) RELATIVE_TO(largest_of_row);
  LANES_REDUCE(others, scratch, COMBINE_SUM);
  LANES_REDUCE(ones, scratch, COMBINE_SUM);
  // exp(∞ − ∞)
  if (isinf(largest)) ones = NAN;
  const float log_sum = log1p(ones - 1.0f + others), each = smoothing / (float)classes;
#ifdef CLASS_INDEX
  const int chosen = target[target_offset + of_row];
  float value = 0.0f;
  if (smoothing != 0.0f) {
    for (ulong c = LANE; c < classes; c += LANES) value += each * (log_sum - (LOGIT(c) - largest));
    LANES_REDUCE(value, scratch, COMBINE_SUM);
  }
  const int known = chosen >= 0 && (ulong)chosen < classes;
  value += (1.0f - smoothing) * (log_sum - (LOGIT(known ? chosen : 0) - largest));
  if (!known) value = NAN;
#else
  target += target_offset + of_row * classes;
  float value = 0.0f;
  for (ulong c = LANE; c < classes; c += LANES) {
    const float weight = (1.0f - smoothing) * target[c] + each;
    // A class that cannot be (probability 0, logit -∞) adds nothing.
    value += weight != 0.0f ? weight * (log_sum - (LOGIT(c) - largest)) : 0.0f;
  }
  LANES_REDUCE(value, scratch, COMBINE_SUM);
#endif
  if (row >= rows || LANE != 0) return;
  loss[loss_offset + row] = value;
  maxima[maxima_offset + row] = largest;
  sums[sums_offset + row] = ones + others;
}
