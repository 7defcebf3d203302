// Norms: squares summed tensor by tensor, then the few sums in operators of bounded size.
#include "concord/optim/norm.hpp"

#include <algorithm>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::optim {
namespace {

/// Values added by one operator: few enough for the argument limits of any device.
constexpr std::size_t kAddends = 8;

Value sum_of(std::vector<Value> scalars) {
  while (scalars.size() > 1) {
    std::vector<Value> sums;
    for (std::size_t i = 0; i < scalars.size(); i += kAddends) {
      const std::size_t n = std::min(kAddends, scalars.size() - i);
      Scalar total = scalar::input(0);
      for (std::size_t k = 1; k < n; ++k) total = total + scalar::input(static_cast<int>(k));
      const auto first = scalars.begin() + static_cast<std::ptrdiff_t>(i);
      sums.push_back(pointwise("sum", std::vector<Value>(first, first + static_cast<std::ptrdiff_t>(n)), total));
    }
    scalars = std::move(sums);
  }
  return scalars.front();
}

}  // namespace

Value global_norm(std::span<const Value> values) {
  CONCORD_CHECK(!values.empty(), ArgumentError, "the norm of no values was asked for");
  std::vector<Value> squares;
  for (const Value& value : values) squares.push_back(sum(square(value)));
  return sqrt(sum_of(std::move(squares)));
}

}  // namespace concord::optim
