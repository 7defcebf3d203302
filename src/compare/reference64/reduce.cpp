// Sums, products, extremes and their places over axes (ops/reduce.hpp).
#include "concord/ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/compare/reference64/families.hpp"
#include "concord/ops/axis.hpp"

namespace concord::float64 {
namespace {

double combined(ops::ReduceKind kind, double a, double b) {
  if (kind == ops::ReduceKind::sum) return a + b;
  if (kind == ops::ReduceKind::product) return a * b;
  if (kind == ops::ReduceKind::norm) return a + b * b;
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return kind == ops::ReduceKind::maximum ? std::max(a, b) : std::min(a, b);
}

double neutral(ops::ReduceKind kind) {
  if (kind == ops::ReduceKind::sum || kind == ops::ReduceKind::norm) return 0;
  if (kind == ops::ReduceKind::product) return 1;
  return kind == ops::ReduceKind::maximum ? -INFINITY : INFINITY;
}

/// Of equal values the first, and the first NaN.
Values places_of_largest(const ops::Reduce& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  if (holds_subnormals(src)) return {};
  const ops::AxisSizes s = ops::axis_sizes(node.inputs[0].shape(), op.axes()[0]);
  Values places;
  for (std::int64_t line = 0; line < s.outer * s.inner; ++line) {
    const auto value = [&](std::int64_t i) {
      return src[static_cast<std::size_t>((line / s.inner * s.length + i) * s.inner + line % s.inner)];
    };
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < s.length; ++i) {
      if (value(i) > value(best) || (std::isnan(value(i)) && !std::isnan(value(best)))) best = i;
    }
    places.push_back(static_cast<double>(best));
  }
  return places;
}

}  // namespace

Results reduce(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Reduce*>(node.op);
  if (op == nullptr) return {};
  if (op->kind() == ops::ReduceKind::argmax) return {{places_of_largest(*op, node)}};
  const auto dims = node.inputs[0].shape().dims();
  std::vector<std::int64_t> strides = node.results[0].shape().strides();
  for (const std::size_t axis : op->axes()) strides[axis] = 0;
  const Values src = doubles(node.inputs[0]);
  Values result(static_cast<std::size_t>(node.results[0].elements()), neutral(op->kind()));
  for (std::size_t i = 0; i < src.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), place = 0;
    for (std::size_t d = dims.size(); d-- > 0;) {
      place += rest % dims[d] * strides[d];
      rest /= dims[d];
    }
    double& to = result[static_cast<std::size_t>(place)];
    to = combined(op->kind(), to, src[i]);
  }
  if (op->kind() == ops::ReduceKind::norm) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    for (double& value : result) value = std::isinf(value) ? value : std::min(std::sqrt(value), kLargest);
  }
  return {{std::move(result)}};
}

}  // namespace concord::float64
