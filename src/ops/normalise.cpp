// Batch normalisation: shape rules, gradient, cost.
#include "concord/ops/normalise.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/composed_gradient.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/elementary.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

/// Throws ShapeError unless src is f32 (N, C, …) with two values a channel or more; gives (C).
Shape channels_of(std::string_view op, const TensorSpec& src) {
  expect_type(op, "src", src, DType::f32);
  CONCORD_CHECK(src.shape.rank() >= 2, ShapeError, "{}: src must be (N, C, ...), got {}", op, src.shape.str());
  expect_not_empty(op, "src", src.shape);
  const std::int64_t channels = src.shape[1];
  CONCORD_CHECK(src.shape.elements() / channels >= 2, ShapeError,
                "{}: src {} has one value per channel; statistics need at least two", op, src.shape.str());
  return {channels};
}

/// (C) as a shape that broadcasts to src (N, C, …).
Value by_channel(Value x, const Shape& src) {
  std::vector<std::int64_t> dims(src.rank(), 1);
  dims[1] = src[1];
  return reshape(x, Shape(std::move(dims)));
}

/// The axes of src (N, C, …) that the statistics of a channel are taken over.
std::vector<std::int64_t> statistics_axes(const Shape& src) {
  std::vector<std::int64_t> axes{0};
  for (std::size_t axis = 2; axis < src.rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return axes;
}

float values_per_channel(const Shape& src) { return static_cast<float>(src.elements() / src[1]); }

/// Through the mean and the variance, of which at least one has a gradient.
Value statistics_gradient(const Node& node, Value diff_mean, Value diff_variance) {
  const Value src = node.inputs[0];
  const Shape& shape = src.shape();
  const float count = values_per_channel(shape);
  Value diff;
  if (diff_variance) {
    const Value mean = by_channel(output_of(node, 1), shape);
    diff = pointwise("batch_norm_variance_backward", {src, mean, by_channel(diff_variance, shape)},
                     (scalar::input(0) - scalar::input(1)) * scalar::input(2) * (2.0F / count));
  }
  if (!diff_mean) return diff;
  const Value part = broadcast_to(by_channel(diff_mean, shape) / count, shape);
  return diff ? diff + part : part;
}

}  // namespace

std::vector<TensorSpec> BatchNorm::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 3);
  const Shape channels = channels_of(name(), inputs[0]);
  expect_spec(name(), fmt::format("scale for src {}", inputs[0].shape.str()), inputs[1], DType::f32, channels);
  expect_spec(name(), fmt::format("shift for src {}", inputs[0].shape.str()), inputs[2], DType::f32, channels);
  CONCORD_CHECK(epsilon_ >= 0, ArgumentError, "batch_norm: epsilon {} is negative", epsilon_);
  return {inputs[0], inputs[1], inputs[1]};
}

std::vector<Value> BatchNorm::gradient(const Node& node, std::span<const Value> diff_dst,
                                       const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (wanted[0] && (diff_dst[1] || diff_dst[2])) diffs[0] = statistics_gradient(node, diff_dst[1], diff_dst[2]);
  if (!diff_dst[0]) return diffs;
  Graph& graph = diff_dst[0].graph();
  const Value first = graph.add(std::make_shared<BatchNormBackward>(epsilon_),
                                {node.inputs[0], diff_dst[0], node.inputs[1], output_of(node, 1), output_of(node, 2)});
  for (std::size_t i = 0; i < 3; ++i) {
    if (!wanted[i]) continue;
    const Value diff(&graph, first.node_id(), static_cast<std::int32_t>(i));
    diffs[i] = diffs[i] ? diffs[i] + diff : diff;
  }
  return diffs;
}

Cost BatchNorm::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  // mean 1, squared deviation 3, normalise 2
  cost.flops = 6.0 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string BatchNorm::attributes() const { return fmt::format("epsilon {}", epsilon_); }

std::vector<TensorSpec> BatchNormBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 5);
  const Shape channels = channels_of(name(), inputs[0]);
  expect_spec(name(), "diff_dst", inputs[1], DType::f32, inputs[0].shape);
  expect_spec(name(), "scale", inputs[2], DType::f32, channels);
  expect_spec(name(), "mean", inputs[3], DType::f32, channels);
  expect_spec(name(), "variance", inputs[4], DType::f32, channels);
  return {inputs[0], inputs[2], inputs[2]};
}

std::vector<Value> BatchNormBackward::gradient(const Node& node, std::span<const Value> diff_dst,
                                               const std::vector<bool>& wanted) const {
  const Shape shape = node.inputs[0].shape();
  return composed_gradient(node, diff_dst, wanted, [&](const std::vector<Value>& in) -> std::vector<Value> {
    const std::vector<std::int64_t> axes = statistics_axes(shape);
    const Value rstd = by_channel(rsqrt(in[4] + epsilon_), shape), diff = in[1];
    const Value normalised = (in[0] - by_channel(in[3], shape)) * rstd;
    const Value shift = sum(diff, axes), scale = sum(diff * normalised, axes);
    const float count = values_per_channel(shape);
    const Value rest = diff - by_channel(shift, shape) / count - normalised * (by_channel(scale, shape) / count);
    return {by_channel(in[2], shape) * rstd * rest, scale, shift};
  });
}

Cost BatchNormBackward::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  // normalised value 2, two sums 3, diff_src 5
  cost.flops = 10.0 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string BatchNormBackward::attributes() const { return fmt::format("epsilon {}", epsilon_); }

}  // namespace ops

BatchNormResult batch_norm(Value x, Value scale, Value shift, float epsilon) {
  Graph& graph = x.graph();
  const Value dst = graph.add(std::make_shared<ops::BatchNorm>(epsilon), {x, scale, shift});
  return {dst, Value(&graph, dst.node_id(), 1), Value(&graph, dst.node_id(), 2)};
}

}  // namespace concord
