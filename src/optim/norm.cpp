// Norms: tensor by tensor, then of the few norms in operators of bounded size.
#include "concord/optim/norm.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::optim {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
/// Norms joined by one operator: few enough for the argument limits of any device.
constexpr std::size_t kAddends = 8;

/// The norm of norms: in parts of the largest, whose squares stay within fp32.
Scalar joined(std::size_t count) {
  Scalar largest = scalar::input(0), squares = 0.0F;
  for (std::size_t k = 1; k < count; ++k) largest = scalar::max(largest, scalar::input(static_cast<int>(k)));
  for (std::size_t k = 0; k < count; ++k) {
    const Scalar part = scalar::input(static_cast<int>(k)) / largest;
    squares = squares + part * part;
  }
  // The result is NaN if the norm is not finite, because the largest element divided by itself is then NaN.
  const Scalar norm = scalar::min(largest * scalar::sqrt(squares), scalar::max(largest, kLargest));
  return scalar::select(scalar::equal(largest, 0.0F), 0.0F, norm);
}

}  // namespace

Value norm_of_norms(std::vector<Value> norms) {
  while (norms.size() > 1) {
    std::vector<Value> joint;
    for (std::size_t i = 0; i < norms.size(); i += kAddends) {
      const std::size_t n = std::min(kAddends, norms.size() - i);
      const auto first = norms.begin() + static_cast<std::ptrdiff_t>(i);
      joint.push_back(pointwise("norm", std::vector<Value>(first, first + static_cast<std::ptrdiff_t>(n)), joined(n)));
    }
    norms = std::move(joint);
  }
  return norms.front();
}

Value global_norm(std::span<const Value> values) {
  CONCORD_CHECK(!values.empty(), ArgumentError, "the norm needs at least one value");
  std::vector<Value> norms;
  for (const Value& value : values) norms.push_back(norm(value));
  return norm_of_norms(std::move(norms));
}

}  // namespace concord::optim
