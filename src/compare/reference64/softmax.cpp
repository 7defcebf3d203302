// Softmax over an axis, its gradient, and cross-entropy with logits (see ops/softmax.hpp, ops/loss_gradient.hpp).
#include "concord/ops/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "concord/compare/reference64/families.hpp"
#include "concord/ops/loss_gradient.hpp"

namespace concord::float64 {
namespace {

/// A tensor as (outer, length, inner) around an axis: line(r, i) for row r in [0, rows).
struct Lines {
  std::size_t rows, length, inner = 1;
  Lines(const Shape& shape, std::size_t axis) : length(static_cast<std::size_t>(shape.dims()[axis])) {
    for (std::size_t d = axis + 1; d < shape.rank(); ++d) inner *= static_cast<std::size_t>(shape.dims()[d]);
    rows = static_cast<std::size_t>(shape.elements()) / std::max<std::size_t>(length, 1);
  }
  [[nodiscard]] std::size_t element(std::size_t row, std::size_t i) const {
    return (row / inner * length + i) * inner + row % inner;
  }
};

struct Exponentials {
  double largest = -INFINITY, sum = 0;
};
/// Σ exp(value(i) − largest). A NaN makes both NaN.
Exponentials exponentials_of(std::size_t length, auto&& value) {
  Exponentials e;
  for (std::size_t i = 0; i < length; ++i)
    e.largest = value(i) > e.largest || std::isnan(value(i)) ? value(i) : e.largest;
  for (std::size_t i = 0; i < length; ++i) e.sum += std::exp(value(i) - e.largest);
  return e;
}

Values forward(const ops::Softmax& op, const Tensor& src, const Tensor& dst) {
  const Values from = doubles(src);
  const Lines lines(src.shape(), op.axis());
  Values result = zeros(dst);
  for (std::size_t row = 0; row < lines.rows; ++row) {
    const auto value = [&](std::size_t i) { return from[lines.element(row, i)]; };
    const Exponentials e = exponentials_of(lines.length, value);
    for (std::size_t i = 0; i < lines.length; ++i) {
      const double difference = value(i) - e.largest;
      result[lines.element(row, i)] = op.log() ? difference - std::log(e.sum) : std::exp(difference) / e.sum;
    }
  }
  return result;
}

/// dst·(diff − Σ diff·dst); of the logarithm diff − exp(dst)·Σ diff, 0 where both are 0.
Values backward(const ops::SoftmaxBackward& op, const ReplayedNode& node) {
  const Values diff = doubles(node.inputs[0]), dst = doubles(node.inputs[1]);
  const Lines lines(node.inputs[0].shape(), op.axis());
  Values result = zeros(node.results[0]);
  for (std::size_t row = 0; row < lines.rows; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < lines.length; ++i) {
      const std::size_t at = lines.element(row, i);
      sum += op.log() ? diff[at] : diff[at] * dst[at];
    }
    for (std::size_t i = 0; i < lines.length; ++i) {
      const std::size_t at = lines.element(row, i);
      if (!op.log()) {
        result[at] = dst[at] * (diff[at] - sum);
      } else if (diff[at] != 0 || sum != 0) {
        result[at] = diff[at] - std::exp(dst[at]) * sum;
      }
    }
  }
  return result;
}

Results cross_entropy(const ops::CrossEntropy& op, const ReplayedNode& node) {
  const Values logits = doubles(node.inputs[0]), target = doubles(node.inputs[1]);
  const bool by_index = node.inputs[1].dtype() == DType::i32;
  const Lines lines(node.inputs[0].shape(), 1);
  const auto classes = static_cast<double>(lines.length);
  const double smoothing = op.label_smoothing();
  Values loss = zeros(node.results[0]), largest = zeros(node.results[1]), sums = zeros(node.results[2]);
  for (std::size_t row = 0; row < lines.rows; ++row) {
    const auto value = [&](std::size_t i) { return logits[row * lines.length + i]; };
    const Exponentials e = exponentials_of(lines.length, value);
    const bool known = !by_index || (target[row] >= 0 && target[row] < classes);
    double sum = known ? 0 : NAN;
    for (std::size_t i = 0; i < lines.length; ++i) {
      const double hard = by_index ? (static_cast<double>(i) == target[row] ? 1 : 0) : target[row * lines.length + i];
      const double weight = (1 - smoothing) * hard + smoothing / classes;
      if (weight != 0) sum += weight * (std::log(e.sum) - (value(i) - e.largest));
    }
    loss[row] = sum;
    largest[row] = e.largest;
    sums[row] = e.sum;
  }
  return {{std::move(loss), std::move(largest), std::move(sums)}};
}

Results with_gradient(const ops::CrossEntropyWithGradient& op, const ReplayedNode& node) {
  Results results = cross_entropy(op.base(), node);
  const Shape& logits = node.inputs[0].shape();
  const Shape column{logits[0], 1};
  std::vector<Numbers> operands{{doubles(node.inputs[0]), logits}, {(*results)[1], column}, {(*results)[2], column}};
  for (const Tensor& other : std::span(node.inputs).subspan(ops::CrossEntropyWithGradient::kBaseInputs)) {
    operands.push_back({doubles(other), other.shape()});
  }
  results->push_back(std::move(values_of(op.slope(), operands, logits).front()));
  return results;
}

}  // namespace

Results softmax(const ReplayedNode& node) {
  if (const auto* op = dynamic_cast<const ops::Softmax*>(node.op)) {
    return {{forward(*op, node.inputs[0], node.results[0])}};
  }
  if (const auto* op = dynamic_cast<const ops::SoftmaxBackward*>(node.op)) return {{backward(*op, node)}};
  if (const auto* op = dynamic_cast<const ops::CrossEntropy*>(node.op)) return cross_entropy(*op, node);
  if (const auto* op = dynamic_cast<const ops::CrossEntropyWithGradient*>(node.op)) return with_gradient(*op, node);
  return {};
}

}  // namespace concord::float64
