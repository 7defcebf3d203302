// cross_entropy_forward: logits (rows, classes) and a target give loss (rows) and probabilities (rows, classes). LANES items
// share a row (lanes.h) and read it three times, from memory once: 8 bytes an element.
// loss = Σ_c t'_c·(log Σ exp(x − max) − (x_c − max)), t' = (1 − smoothing)·t + smoothing / classes. With CLASS_INDEX t is
// 1 at the target's class (NaN loss outside [0, classes)); otherwise `target` holds probabilities (rows, classes).
#include "lanes.h"

#ifdef CLASS_INDEX
typedef int target_t;
#else
typedef float target_t;
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void cross_entropy_forward(
    __global const float *restrict logits, ulong logits_offset, __global const target_t *restrict target,
    ulong target_offset, __global float *restrict loss, ulong loss_offset, __global float *restrict probabilities,
    ulong probabilities_offset, ulong rows, ulong classes, float smoothing) {
  LANES_SCRATCH(float, scratch);
  const ulong row = get_group_id(0) * (ulong)ROWS + ROW, begin = min(row, rows - 1) * classes;
  logits += logits_offset + begin;
  probabilities += probabilities_offset + begin;
  float largest = -INFINITY;
  for (ulong c = LANE; c < classes; c += LANES) largest = COMBINE_MAXIMUM(largest, logits[c]);
  LANES_REDUCE(largest, scratch, COMBINE_MAXIMUM);
  // The largest terms are 1. Counted apart they do not swallow the others, which are all there is of a small loss.
  float others = 0.0f, ones = 0.0f;
  for (ulong c = LANE; c < classes; c += LANES) {
    const float difference = logits[c] - largest;
    others += difference == 0.0f ? 0.0f : exp(difference);
    ones += difference == 0.0f ? 1.0f : 0.0f;
  }
  LANES_REDUCE(others, scratch, COMBINE_SUM);
  LANES_REDUCE(ones, scratch, COMBINE_SUM);
  const float sum = ones + others, log_sum = log1p(ones - 1.0f + others), each = smoothing / (float)classes;
#ifdef CLASS_INDEX
  const int chosen = target[target_offset + min(row, rows - 1)];
  float value = 0.0f;
  if (smoothing != 0.0f) {
    for (ulong c = LANE; c < classes; c += LANES) value += each * (log_sum - (logits[c] - largest));
    LANES_REDUCE(value, scratch, COMBINE_SUM);
  }
  const int known = chosen >= 0 && (ulong)chosen < classes;
  value += (1.0f - smoothing) * (log_sum - (logits[known ? chosen : 0] - largest));
  if (!known) value = NAN;
#else
  target += target_offset + begin;
  float value = 0.0f;
  for (ulong c = LANE; c < classes; c += LANES) {
    value += ((1.0f - smoothing) * target[c] + each) * (log_sum - (logits[c] - largest));
  }
  LANES_REDUCE(value, scratch, COMBINE_SUM);
#endif
  if (row >= rows) return;
  if (LANE == 0) loss[loss_offset + row] = value;
  for (ulong c = LANE; c < classes; c += LANES) probabilities[c] = exp(logits[c] - largest) / sum;
}
