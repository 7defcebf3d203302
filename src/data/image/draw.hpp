// Draws: the random numbers of one purpose for one sample, in the order in which they are asked for. Internal to the
// module; augmentation takes one for each operation, so that what one of them draws moves no other.
#pragma once

#include <cstdint>
#include <string_view>

#include "concord/data/samples.hpp"

namespace concord::data {

class Draws {
 public:
  Draws(const SampleRandom& random, std::string_view purpose) : random_(random), purpose_(purpose) {}

  /// In [least, most), or `least` where they are equal.
  [[nodiscard]] double between(double least, double most) { return least + (most - least) * uniform(); }
  /// 0 … bound − 1; bound > 0. The bias is below bound/2^32.
  [[nodiscard]] std::int64_t below(std::int64_t bound) {
    const std::uint64_t product = std::uint64_t{random_.word(purpose_, index_++)} * static_cast<std::uint64_t>(bound);
    return static_cast<std::int64_t>(product >> 32);
  }
  [[nodiscard]] bool happens(double p) { return p > 0 && uniform() < p; }

 private:
  double uniform() { return static_cast<double>(random_.uniform(purpose_, index_++)); }

  const SampleRandom& random_;
  std::string_view purpose_;
  std::uint64_t index_ = 0;
};

}  // namespace concord::data
