// Weights of the triangle filter, as PIL's precompute_coeffs makes them.
#include "concord/data/image/resample_taps.hpp"

#include <algorithm>
#include <cmath>

namespace concord::data {

void FilterTaps::set(double begin, double length, std::int64_t count) {
  // The filter is as wide as two pixels of the source, or of the result if those are wider.
  const double scale = length / static_cast<double>(count);
  const double support = std::max(scale, 1.0);
  begin_ = static_cast<std::size_t>(std::floor(begin));
  end_ = std::max(begin_ + 1, static_cast<std::size_t>(std::ceil(begin + length)));
  pairs_each_ = static_cast<std::size_t>(std::ceil(support)) + 1;
  const auto pixels = static_cast<std::size_t>(count);
  first_.resize(pixels);
  pairs_.resize(pixels);
  weights_.resize(pixels * pairs_each_);
  exact_.resize(2 * pairs_each_);
  const auto least = static_cast<std::int64_t>(begin_), most = static_cast<std::int64_t>(end_);
  for (std::size_t i = 0; i < pixels; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::clamp(static_cast<std::int64_t>(std::floor(centre - support + 0.5)), least, most - 1);
    const auto last = std::clamp(static_cast<std::int64_t>(std::floor(centre + support + 0.5)), first + 1, most);
    const auto taps = std::min(static_cast<std::size_t>(last - first), 2 * pairs_each_);
    double sum = 0;
    for (std::size_t k = 0; k < taps; ++k) {
      const double distance = (static_cast<double>(first) + static_cast<double>(k) + 0.5 - centre) / support;
      exact_[k] = std::max(0.0, 1 - std::abs(distance));
      sum += exact_[k];
    }
    // What rounding leaves goes to the next weight, so that their sum is exact.
    std::int32_t* const weights = &weights_[i * pairs_each_];
    double reached = 0;
    std::int32_t given = 0;
    for (std::size_t k = 0; k < taps; ++k) {
      reached += exact_[k];
      const auto up_to = static_cast<std::int32_t>(std::lround(reached / sum * (1 << kWeightBits)));
      const std::int32_t weight = up_to - given;
      weights[k / 2] = k % 2 == 0 ? weight : weights[k / 2] | weight << 16;
      given = up_to;
    }
    first_[i] = static_cast<std::size_t>(first);
    pairs_[i] = (taps + 1) / 2;
  }
}

}  // namespace concord::data
