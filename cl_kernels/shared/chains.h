// Reductions of one work-item, as CPUs run them: 16 chains side by side in a vector, joined at the end as a tree. Through
// an array: Oclgrind 21.10 takes the upper half of a sum of a vector's halves for uninitialised.
#ifndef CONCORD_CHAINS_H
#define CONCORD_CHAINS_H

// value = the reduction of `chains`, a float16.
#define JOIN_CHAINS(value, chains, COMBINE)                                                    \
  do {                                                                                         \
    float parts_[16];                                                                          \
    vstore16(chains, 0, parts_);                                                               \
    for (int step_ = 8; step_ > 0; step_ /= 2) {                                               \
      for (int p_ = 0; p_ < step_; ++p_) parts_[p_] = COMBINE(parts_[p_], parts_[p_ + step_]); \
    }                                                                                          \
    value = parts_[0];                                                                         \
  } while (0)

// Adds `value` to the sum `high` and its rounding to `low`, whichever of the two is larger (Knuth's TwoSum).
#define ADD_EXACTLY(type, high, low, value)                           \
  do {                                                                \
    const type next_ = (high) + (value), part_ = next_ - (high);      \
    low += ((high) - (next_ - part_)) + ((value) - part_);            \
    high = next_;                                                     \
  } while (0)
// The sum with what its roundings have left, which is nothing to add where the sum is infinite.
#define WITH_LOW(value, low) ((low) == (low) ? (value) + (low) : (value))

#endif
