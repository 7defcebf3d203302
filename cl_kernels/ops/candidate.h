// A candidate for the largest of many values. Used by reduce.cl and pool_lanes.cl.
#ifndef CONCORD_CANDIDATE_H
#define CONCORD_CANDIDATE_H

typedef struct {
  float value;
  int place;  // -1: none yet
} candidate;

// The larger one; of equal ones the first in memory. NaN is larger than any number.
static inline candidate better(candidate a, candidate b) {
  const int a_nan = a.value != a.value, b_nan = b.value != b.value;
  const int tie = a.value == b.value || (a_nan && b_nan);
  const int b_wins = b.place >= 0 && (a.place < 0 || (tie ? b.place < a.place : b_nan || (!a_nan && b.value > a.value)));
  return b_wins ? b : a;
}

#endif
