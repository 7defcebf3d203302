// CTC (Graves et al., 2006) in the log domain. log_p (steps, samples, classes); labels (samples, most_labels). A target
// with blanks around its labels has places = 2·length + 1 places: a blank at even ones.
// ctc_paths: a work-group of ITEMS items a sample. Leaves in the first halves of `places_of` (samples, steps,
// 2·most_labels + 1) the log probability of being at a place at a time, given the target; `ahead` (samples, 2,
// 2·most_labels + 1) is scratch.
// ctc_occupancy: an item a (time, sample) sums the places of each class in order.
// The log of a path's probability grows with its length to thousands, where the last place of an f32 is 2e-4, and what
// is wanted is a difference of such sums: both recursions carry what rounding cut off (Knuth's two-sum) in a second f32.
#define IMPOSSIBLE ((float2)(-INFINITY, 0.0f))

static inline int is_impossible(float2 log) { return log.x == -INFINITY; }

// The value of a pair is the sum of its halves.
static inline float2 plus(float2 a, float b) {
  const float sum = a.x + b, of_b = sum - a.x;
  const float cut_off = (a.x - (sum - of_b)) + (b - of_b);
  return (float2)(sum, isfinite(sum) ? a.y + cut_off : 0.0f);
}

static inline float2 plus_pair(float2 a, float2 b) {
  const float2 sum = plus(a, b.x);
  return (float2)(sum.x, sum.y + b.y);
}

static inline float2 log_add(float2 a, float2 b) {
  if (is_impossible(a)) return b;
  if (is_impossible(b)) return a;
  const float further = (b.x - a.x) + (b.y - a.y);
  return plus(further > 0.0f ? b : a, log1p(exp(-fabs(further))));
}

static inline int label_at(__global const int *labels, int place, int blank) {
  return place % 2 == 0 ? blank : labels[place / 2];
}

// Whether a path may go from place − 2 to place.
static inline int skips_to(__global const int *labels, int place) {
  return place >= 2 && place % 2 == 1 && labels[place / 2] != labels[place / 2 - 1];
}

static int is_valid(__global const int *labels, int input, int length, int steps, int classes, int most_labels,
                    int blank) {
  if (input < 0 || input > steps || length < 0 || length > most_labels) return 0;
  int valid = 1;
  for (int i = 0; i < length; ++i) valid &= labels[i] >= 0 && labels[i] < classes && labels[i] != blank;
  return valid;
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void ctc_paths(
    __global const float *restrict log_p, ulong log_p_offset, __global const int *restrict labels, ulong labels_offset,
    __global const int *restrict input_lengths, ulong input_lengths_offset, __global const int *restrict target_lengths,
    ulong target_lengths_offset, __global float *restrict loss, ulong loss_offset, __global float2 *places_of,
    ulong places_of_offset, __global float2 *ahead, ulong ahead_offset, int steps, int samples, int classes,
    int most_labels, int blank) {
  const int n = (int)get_group_id(0), item = (int)get_local_id(0);
  const int input = input_lengths[input_lengths_offset + n], length = target_lengths[target_lengths_offset + n];
  labels += labels_offset + (ulong)n * most_labels;
  if (!is_valid(labels, input, length, steps, classes, most_labels, blank)) {  // the same for the whole group
    if (item == 0) loss[loss_offset + n] = NAN;
    return;
  }
  const int width = 2 * most_labels + 1, places = 2 * length + 1;
  const ulong stride = (ulong)samples * classes;
  log_p += log_p_offset + (ulong)n * classes;
  places_of += places_of_offset + (ulong)n * steps * width;
  ahead += ahead_offset + (ulong)n * 2 * width;

  for (int t = 0; t < input; ++t) {
    __global float2 *now = places_of + (ulong)t * width;
    for (int s = item; s < places; s += ITEMS) {
      float2 sum = t == 0 && s < 2 ? (float2)(0.0f) : IMPOSSIBLE;
      if (t > 0) {
        __global const float2 *before = now - width;
        sum = before[s];
        if (s >= 1) sum = log_add(sum, before[s - 1]);
        if (skips_to(labels, s)) sum = log_add(sum, before[s - 2]);
      }
      now[s] = plus(sum, log_p[t * stride + label_at(labels, s, blank)]);
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  float2 total = places == 1 ? (float2)(0.0f) : IMPOSSIBLE;
  if (input > 0) {
    __global const float2 *last = places_of + (ulong)(input - 1) * width + places - 1;
    total = places == 1 ? last[0] : log_add(last[0], last[-1]);
  }
  if (item == 0) loss[loss_offset + n] = -(total.x + total.y);
  barrier(CLK_GLOBAL_MEM_FENCE);  // the last time's places are read before they change
  if (is_impossible(total)) return;

  for (int t = input - 1; t >= 0; --t) {
    __global float2 *now = ahead + (t % 2) * width;
    __global const float2 *after = ahead + ((t + 1) % 2) * width;
    __global const float *next_p = log_p + (t + 1) * stride;
    for (int s = item; s < places; s += ITEMS) {
      float2 sum = s + 2 >= places ? (float2)(0.0f) : IMPOSSIBLE;
      if (t + 1 < input) {
        sum = plus(after[s], next_p[label_at(labels, s, blank)]);
        if (s + 1 < places) sum = log_add(sum, plus(after[s + 1], next_p[label_at(labels, s + 1, blank)]));
        if (s + 2 < places && skips_to(labels, s + 2)) {
          sum = log_add(sum, plus(after[s + 2], next_p[label_at(labels, s + 2, blank)]));
        }
      }
      now[s] = sum;
      __global float2 *place = places_of + (ulong)t * width + s;
      const float2 given_target = plus_pair(plus_pair(*place, -total), sum);
      (*place).x = given_target.x + given_target.y;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
}

// ctc_drop_infinity: runs last, with zero_infinity only.
__kernel void ctc_occupancy(__global const int *restrict labels, ulong labels_offset,
                            __global const int *restrict input_lengths, ulong input_lengths_offset,
                            __global const int *restrict target_lengths, ulong target_lengths_offset,
                            __global const float2 *restrict places_of, ulong places_of_offset,
                            __global const float *restrict loss, ulong loss_offset, __global float *restrict occupancy,
                            ulong occupancy_offset, int steps, int samples, int classes, int most_labels, int blank,
                            int zero_infinity) {
  const ulong item = get_global_id(0);
  if (item >= (ulong)steps * samples) return;
  const int n = (int)(item % samples), t = (int)(item / samples);
  const float value = loss[loss_offset + n];
  occupancy += occupancy_offset + item * classes;
  const int input = input_lengths[input_lengths_offset + n];
  const bool beyond = input >= 0 && input <= steps && t >= input, is_zero = value == INFINITY && zero_infinity;
  const float empty = isfinite(value) || is_zero || beyond ? 0.0f : NAN;
  for (int c = 0; c < classes; ++c) occupancy[c] = empty;
  if (!isfinite(value) || beyond) return;
  const int places = 2 * target_lengths[target_lengths_offset + n] + 1, width = 2 * most_labels + 1;
  labels += labels_offset + (ulong)n * most_labels;
  places_of += places_of_offset + ((ulong)n * steps + t) * width;
  for (int s = 0; s < places; ++s) occupancy[label_at(labels, s, blank)] += exp(places_of[s].x);
}

__kernel void ctc_drop_infinity(__global float *loss, ulong loss_offset, int samples) {
  const int n = (int)get_global_id(0);
  if (n < samples && loss[loss_offset + n] == INFINITY) loss[loss_offset + n] = 0.0f;
}
