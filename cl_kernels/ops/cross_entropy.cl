// cross_entropy_forward: logits (rows, classes) and a target give loss, largest logit and Σ exp(x − max) of each row. LANES
// items share a row (shared/lanes.h) and read it once, 4 bytes an element; with smoothing or probabilities once more.
// loss = Σ_c t'_c·(log Σ exp(x − max) − (x_c − max)), t' = (1 − smoothing)·t + smoothing / classes. With CLASS_INDEX t is
// 1 at the target's class (NaN loss outside [0, classes)); otherwise `target` holds probabilities (rows, classes).
// With TOKENS logits lie in 16 bits, each row padded to whole blocks of 8 (shared/channels_last.h), 2 bytes an element.
// With WITH_GRADIENT the row is read again, from the cache, and the gradient of its logits is written, perhaps over them. The
// text in front gives
//   SLOPE(x, c, place)  the gradient for logit x of class `place`; c is the class as a float
//   SLOPE_OF_ROW        statements that read the operands of a row
//   SLOPE_MEMORIES      the memories, and SLOPE_NUMBERS their offsets
#include "shared/lanes.h"
#include "shared/numbers.h"
#ifdef TOKENS
#include "shared/channels_last.h"
#ifdef PTX
#include "shared/nvidia/ptx.h"
#endif
#endif

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

#ifdef WITH_GRADIENT
#define READ_ONLY
#define GRADIENT_MEMORIES(MEMORY) MEMORY(LOGITS *, gradient) SLOPE_MEMORIES(MEMORY)
#define GRADIENT_NUMBERS(NUMBER) NUMBER(ulong, gradient_offset) SLOPE_NUMBERS(NUMBER)
#else
#define READ_ONLY restrict
#define GRADIENT_MEMORIES(MEMORY)
#define GRADIENT_NUMBERS(NUMBER)
#endif

#ifdef CLASS_INDEX
typedef int target_t;
#else
typedef float target_t;
#endif

#ifdef TOKENS
#define LOGITS uint4
#define AT_ONCE 8
#define ROW_LENGTH ((classes + 7) / 8)
#define WHOLE_READS (classes / 8)
#define CLASS_OF(first, i) (8 * (first) + (i))
#define STEP LANES
// A block is read while the one before is worked on.
#define BEGIN_READING() uint4 next = logits[min((uint)LANE, ROW_LENGTH - 1)];
#define READ_LOGITS(x, first) \
  read_block(x, next);        \
  next = logits[min((first) + LANES, ROW_LENGTH - 1)]
#define LOGIT(c) floats_of(((__global const ushort *)logits)[c]).x
#else
#define LOGITS float
#define AT_ONCE 4
#define ROW_LENGTH classes
#define WHOLE_READS 0u
#define CLASS_OF(first, i) ((first) + (i)*LANES)
#define STEP (AT_ONCE * LANES)
#define BEGIN_READING()
#define READ_LOGITS(x, first) EACH(i, AT_ONCE) x[i] = logits[min(CLASS_OF(first, i), classes - 1)]
#define LOGIT(c) logits[c]
#endif
// NaN if either is NaN.
#if defined(TOKENS) && defined(PTX)
static inline float larger_of(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}
#else
#define larger_of(a, b) COMBINE_MAXIMUM(a, b)
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
// The terms of AT_ONCE logits, of which those of a condition count.
#define ADD_TERMS(x, COUNTS)                                        \
  {                                                                 \
    float most = largest;                                           \
    EACH(i, AT_ONCE) x[i] = COUNTS(i) ? x[i] : -INFINITY;           \
    EACH(i, AT_ONCE) most = larger_of(most, x[i]);                  \
    if (most != largest) RELATIVE_TO(most);                         \
    EACH(i, AT_ONCE) {                                              \
      const bool is_one = x[i] == largest;                          \
      others += COUNTS(i) && !is_one ? TERM(x[i] - largest) : 0.0f; \
      ones += COUNTS(i) && is_one ? 1.0f : 0.0f;                    \
    }                                                               \
  }
#define ALWAYS(i) true
#define IS_CLASS(i) (CLASS_OF(first, i) < classes)

#define LOSS_MEMORIES(MEMORY)                                                                                          \
  MEMORY(const LOGITS *READ_ONLY, logits) MEMORY(const target_t *restrict, target) MEMORY(float *restrict, loss)       \
  MEMORY(float *restrict, maxima) MEMORY(float *restrict, sums) GRADIENT_MEMORIES(MEMORY)
#define LOSS_NUMBERS(NUMBER)                                                                          \
  NUMBER(ulong, logits_offset) NUMBER(ulong, target_offset) NUMBER(ulong, loss_offset)                \
  NUMBER(ulong, maxima_offset) NUMBER(ulong, sums_offset) NUMBER(ulong, rows) NUMBER(uint, classes)   \
  NUMBER(float, smoothing) GRADIENT_NUMBERS(NUMBER)
typedef struct { LOSS_NUMBERS(NUMBER_MEMBER) } loss_numbers;

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void cross_entropy_forward(
    MEMORY_PARAMETERS(LOSS_MEMORIES) const loss_numbers numbers) {
  LOSS_NUMBERS(NUMBER_CONSTANT)
  DECLARE_MEMORIES(LOSS_MEMORIES)
  LANES_SCRATCH(float, scratch);
  LANES_SCRATCH(float2, pairs);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, of_row = min(row, rows - 1);
  logits += logits_offset + of_row * ROW_LENGTH;
  // Terms relative to the largest logit so far. The largest terms are 1. Counted apart they do not swallow the others,
  // which are all there is of a small loss.
  float largest = -INFINITY, others = 0.0f, ones = 0.0f;
  BEGIN_READING()
  uint first = LANE;
  for (; first < WHOLE_READS; first += STEP) {
    float x[AT_ONCE];
    READ_LOGITS(x, first);
    ADD_TERMS(x, ALWAYS)
  }
  for (; first < ROW_LENGTH; first += STEP) {
    float x[AT_ONCE];
    READ_LOGITS(x, first);
    ADD_TERMS(x, IS_CLASS)
  }
  float largest_of_row = largest;
  LANES_REDUCE(largest_of_row, scratch, larger_of);
  if (largest_of_row != largest) RELATIVE_TO(largest_of_row);
  float2 both = (float2)(others, ones);
  LANES_REDUCE(both, pairs, COMBINE_SUM);
  others = both.x;
  ones = both.y;
  // exp(∞ − ∞)
  if (isinf(largest)) ones = NAN;
  const float log_sum = log1p(ones - 1.0f + others), each = smoothing / (float)classes;
#ifdef CLASS_INDEX
  const int chosen = target[target_offset + of_row];
  float value = 0.0f;
  if (smoothing != 0.0f) {
    for (uint c = LANE; c < classes; c += LANES) value += each * (log_sum - (LOGIT(c) - largest));
    LANES_REDUCE(value, scratch, COMBINE_SUM);
  }
  const int known = chosen >= 0 && (uint)chosen < classes;
  value += (1.0f - smoothing) * (log_sum - (LOGIT(known ? chosen : 0) - largest));
  if (!known) value = NAN;
#else
  target += target_offset + of_row * (ulong)classes;
  float value = 0.0f;
  for (uint c = LANE; c < classes; c += LANES) {
    const float weight = (1.0f - smoothing) * target[c] + each;
    // A class that cannot be (probability 0, logit -∞) adds nothing.
    value += weight != 0.0f ? weight * (log_sum - (LOGIT(c) - largest)) : 0.0f;
  }
  LANES_REDUCE(value, scratch, COMBINE_SUM);
#endif
  const float total = ones + others;
#ifdef WITH_GRADIENT
  barrier(CLK_GLOBAL_MEM_FENCE);  // all have read what is overwritten
#endif
  if (row >= rows) return;
  if (LANE == 0) {
    loss[loss_offset + row] = value;
    maxima[maxima_offset + row] = largest;
    sums[sums_offset + row] = total;
  }
#ifdef WITH_GRADIENT
  gradient += gradient_offset + row * ROW_LENGTH;
  SLOPE_OF_ROW
  first = LANE;
#ifdef TOKENS
  for (; first + LANES < WHOLE_READS; first += 2 * LANES) {
    const uint4 blocks[2] = {logits[first], logits[first + LANES]};
    EACH(b, 2) {
      float x[AT_ONCE];
      read_block(x, blocks[b]);
      const float c = (float)CLASS_OF(first + b * LANES, 0);
      EACH(i, AT_ONCE) x[i] = SLOPE(x[i], c + (float)i, CLASS_OF(first + b * LANES, i));
      gradient[first + b * LANES] = block_of(x);
    }
  }
  for (; first < WHOLE_READS; first += LANES) {
    float x[AT_ONCE];
    read_block(x, logits[first]);
    const float c = (float)CLASS_OF(first, 0);
    EACH(i, AT_ONCE) x[i] = SLOPE(x[i], c + (float)i, CLASS_OF(first, i));
    gradient[first] = block_of(x);
  }
  if (first < ROW_LENGTH) {
    float x[AT_ONCE];
    read_block(x, logits[first]);
    EACH(i, AT_ONCE) x[i] = IS_CLASS(i) ? SLOPE(x[i], (float)CLASS_OF(first, i), CLASS_OF(first, i)) : 0.0f;
    gradient[first] = block_of(x);
  }
#else
  for (; first < ROW_LENGTH; first += LANES) gradient[first] = SLOPE(logits[first], (float)first, first);
#endif
#endif
}
