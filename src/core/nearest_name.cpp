// The distance of names.
#include "concord/core/nearest_name.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace concord {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> steps(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& here = steps[i][j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const bool is_same = a[i - 1] == b[j - 1];
      here = std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1, steps[i - 1][j - 1] + (is_same ? 0 : 1)});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) here = std::min(here, steps[i - 2][j - 2] + 1);
    }
  }
  return steps.back().back();
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view given, std::span<const std::string> names) {
  const auto far = [&](const std::string& name) { return distance(given, name); };
  const auto nearest = std::ranges::min_element(names, {}, far);
  if (nearest == names.end() || far(*nearest) > std::max<std::size_t>(1, given.size() / 4)) return std::nullopt;
  return *nearest;
}

}  // namespace concord
