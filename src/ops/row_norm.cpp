// Normalisation of rows: shape rules, gradient, cost.
#include "concord/ops/row_norm.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/composed_gradient.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

/// The spec of one number a row. Throws ShapeError unless src is f32, `axis` is one of its own, and a row has values.
TensorSpec statistics_of(std::string_view op, const TensorSpec& src, std::size_t axis) {
  expect_type(op, "src", src, DType::f32);
  CONCORD_CHECK(axis < src.shape.rank(), ShapeError, "{}: axis {} is outside src {}", op, axis, src.shape.str());
  CONCORD_CHECK(row_sizes(src.shape, axis).length >= 1, ShapeError, "{}: the rows of src {} from axis {} on are empty",
                op, src.shape.str(), axis);
  const auto rows = src.shape.dims().first(axis);
  return {DType::f32, Shape(std::vector<std::int64_t>(rows.begin(), rows.end()))};
}

/// (R…) as a shape that broadcasts to src.
Value by_row(Value x, const Shape& src) {
  std::vector<std::int64_t> dims(src.rank(), 1);
  std::ranges::copy(x.shape().dims(), dims.begin());
  return reshape(x, Shape(std::move(dims)));
}

Cost cost_of(const Cost& base, const TensorSpec& src, double operations) {
  return {operations * static_cast<double>(src.shape.elements()), base.bytes};
}

}  // namespace

RowSizes row_sizes(const Shape& src, std::size_t axis) {
  RowSizes sizes{1, 1};
  for (std::size_t i = 0; i < src.rank(); ++i) (i < axis ? sizes.rows : sizes.length) *= src.dims()[i];
  return sizes;
}

std::vector<TensorSpec> RowNorm::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  const TensorSpec statistics = statistics_of(name(), inputs[0], axis_);
  CONCORD_CHECK(epsilon_ >= 0, ArgumentError, "{}: epsilon {} is negative", name(), epsilon_);
  std::vector<TensorSpec> outputs{inputs[0], statistics};
  if (centred_) outputs.push_back(statistics);
  return outputs;
}

std::vector<Value> RowNorm::gradient(const Node& node, std::span<const Value> diff_dst,
                                     const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!wanted[0]) return diffs;
  const auto add = [&](Value diff) { diffs[0] = diffs[0] ? diffs[0] + diff : diff; };
  const Shape& src = node.inputs[0].shape();
  const auto length = static_cast<float>(row_sizes(src, axis_).length);
  const Value dst = output_of(node, 0), rstd = output_of(node, 1);
  if (diff_dst[0]) {
    add(diff_dst[0].graph().add(std::make_shared<RowNormBackward>(axis_, centred_), {diff_dst[0], dst, rstd}));
  }
  if (diff_dst[1]) {  // rstd = (variance + ε)^(−1/2)
    const Scalar r = scalar::input(1), slope = scalar::input(0) * r * r * scalar::input(2) * (-1 / length);
    add(pointwise("rstd_backward", {dst, by_row(rstd, src), by_row(diff_dst[1], src)}, slope));
  }
  if (centred_ && diff_dst[2]) add(broadcast_to(by_row(diff_dst[2], src) / length, src));
  return diffs;
}

// Mean 1, squared deviation 3, result 2; of squares 2, result 1.
Cost RowNorm::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_of(Operator::cost(inputs, outputs), inputs[0], centred_ ? 6 : 3);
}

std::string RowNorm::attributes() const { return fmt::format("axis {} epsilon {}", axis_, epsilon_); }

std::vector<TensorSpec> RowNormBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 3);
  const TensorSpec statistics = statistics_of(name(), inputs[1], axis_);
  expect_not_empty(name(), "dst", inputs[1].shape);
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, inputs[1].shape);
  expect_spec(name(), "rstd", inputs[2], DType::f32, statistics.shape);
  return {inputs[1]};
}

std::vector<Value> RowNormBackward::gradient(const Node& node, std::span<const Value> diff_dst,
                                             const std::vector<bool>& wanted) const {
  const Shape src = node.inputs[1].shape();
  return composed_gradient(node, diff_dst, wanted, [&](const std::vector<Value>& in) -> std::vector<Value> {
    std::vector<std::int64_t> axes;
    for (std::size_t axis = axis_; axis < src.rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    const Value diff = in[0], dst = in[1];
    const Value rest = diff - dst * mean(diff * dst, axes, true);
    return {by_row(in[2], src) * (centred_ ? rest - mean(diff, axes, true) : rest)};
  });
}

// Two sums 3, result 4; one sum 2, result 3.
Cost RowNormBackward::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_of(Operator::cost(inputs, outputs), inputs[1], centred_ ? 7 : 5);
}

std::string RowNormBackward::attributes() const { return fmt::format("axis {}", axis_); }

}  // namespace ops

namespace {

RowNormResult normalised(Value x, std::int64_t axis, bool centred, float epsilon) {
  Graph& graph = x.graph();
  const Value dst = graph.add(std::make_shared<ops::RowNorm>(x.shape().index_of(axis), centred, epsilon), {x});
  RowNormResult result{dst, Value(&graph, dst.node_id(), 1), {}};
  if (centred) result.mean = Value(&graph, dst.node_id(), 2);
  return result;
}

}  // namespace

RowNormResult row_norm(Value x, std::int64_t axis, float epsilon) { return normalised(x, axis, true, epsilon); }

RowNormResult row_norm_rms(Value x, std::int64_t axis, float epsilon) { return normalised(x, axis, false, epsilon); }

}  // namespace concord
