// By a sorted copy: there are never many.
#include "concord/core/median.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace concord {

double median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

}  // namespace concord
