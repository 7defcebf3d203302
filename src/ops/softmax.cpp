// Softmax and cross-entropy: shape rules and gradients.
#include "concord/ops/softmax.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/composed_gradient.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

void expect_axis(std::string_view op, const Shape& src, std::size_t axis) {
  CONCORD_CHECK(axis < src.rank(), ShapeError, "{}: axis {} is outside src {}", op, axis, src.str());
}

/// factor·diff·slope, where diff is input 0. Selected, not multiplied by 0: the logits of an ignored row, whose diff is
/// 0, may be NaN. The derivative by diff is factor·slope at a diff of 0, too, where it is finite.
Value weighted_slope(std::string label, std::vector<Value> inputs, const Scalar& slope, float factor = 1) {
  const Scalar diff = scalar::input(0), product = factor * diff * slope, is_zero = scalar::equal(diff, 0.0F);
  const Scalar is_ignored = scalar::select(scalar::is_finite(slope), 0.0F, is_zero);
  return pointwise_with_surrogate(std::move(label), std::move(inputs), scalar::select(is_zero, 0.0F, product),
                                  scalar::select(is_ignored, 0.0F, product));
}

/// d loss/d logits = diff·(p·Σt' − t'), t' the smoothed target. logits (N, C); diff, largest and total of the
/// exponentials (N, 1).
Value logits_gradient(Value diff, Value logits, Value largest, Value total, Value target, float smoothing) {
  const Scalar p = scalar::exp(scalar::input(1) - scalar::input(2)) / scalar::input(3);
  const Scalar t = scalar::input(4);
  const float spread = smoothing / static_cast<float>(logits.shape()[1]);
  const auto smoothed = [&](const Scalar& hard) { return (1.0F - smoothing) * hard + spread; };
  if (target.dtype() == DType::i32) {
    const Value column = reshape(target, Shape{target.shape()[0], 1});
    return weighted_slope("cross_entropy_backward", {diff, logits, largest, total, column},
                          p - smoothed(scalar::equal(scalar::coordinate(0), t)));
  }
  const Value whole = sum(target, {1}, true);  // 1 for true probabilities, but nothing forbids others
  const Scalar weight = (1.0F - smoothing) * scalar::input(5) + smoothing;
  return weighted_slope("cross_entropy_backward", {diff, logits, largest, total, target, whole},
                        p * weight - smoothed(t));
}

}  // namespace

std::vector<TensorSpec> Softmax::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  expect_axis(name(), inputs[0].shape, axis_);
  return {inputs[0]};
}

std::vector<Value> Softmax::gradient(const Node& node, std::span<const Value> diff_dst,
                                     const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  diffs[0] = diff_dst[0].graph().add(std::make_shared<SoftmaxBackward>(axis_, log_), {diff_dst[0], output_of(node, 0)});
  return diffs;
}

std::string Softmax::attributes() const { return fmt::format("axis {}", axis_); }

std::vector<TensorSpec> SoftmaxBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "dst", inputs[1], DType::f32);
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, inputs[1].shape);
  expect_axis(name(), inputs[1].shape, axis_);
  expect_not_empty(name(), "dst", inputs[1].shape);
  return {inputs[1]};
}

std::vector<Value> SoftmaxBackward::gradient(const Node& node, std::span<const Value> diff_dst,
                                             const std::vector<bool>& wanted) const {
  const auto axis = static_cast<std::int64_t>(axis_);
  return composed_gradient(node, diff_dst, wanted, [&](const std::vector<Value>& in) -> std::vector<Value> {
    const Value diff = in[0], dst = in[1];
    if (log_) return {diff - exp(dst) * sum(diff, {axis}, true)};
    return {dst * (diff - sum(diff * dst, {axis}, true))};
  });
}

std::string SoftmaxBackward::attributes() const { return fmt::format("axis {}", axis_); }

std::vector<TensorSpec> CrossEntropy::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  CONCORD_CHECK(label_smoothing_ >= 0 && label_smoothing_ <= 1, ArgumentError,
                "cross_entropy: label smoothing {} is outside [0, 1]", label_smoothing_);
  const TensorSpec& logits = inputs[0];
  const TensorSpec& target = inputs[1];
  expect_type(name(), "logits", logits, DType::f32);
  CONCORD_CHECK(logits.shape.rank() == 2, ShapeError, "cross_entropy: logits must be (N, C), got {}",
                logits.shape.str());
  expect_not_empty(name(), "logits", logits.shape);
  const Shape rows{logits.shape[0]};
  const bool is_index = target == TensorSpec{DType::i32, rows};
  CONCORD_CHECK(is_index || target == logits, ShapeError,
                "cross_entropy: for logits {} the target must be i32 {} (class indices) or f32 {} (probabilities), "
                "got {}",
                logits.shape.str(), rows.str(), logits.shape.str(), target.str());
  return {{DType::f32, rows}, {DType::f32, rows}, {DType::f32, rows}};
}

std::vector<Value> CrossEntropy::gradient(const Node& node, std::span<const Value> diff_dst,
                                          const std::vector<bool>& wanted) const {
  CONCORD_CHECK(diff_dst[0] || diff_dst[2], NotSupported, "{}: the largest logit of cross_entropy has no gradient",
                node.name);
  std::vector<Value> diffs = no_gradients(node);
  const Value logits = node.inputs[0];
  const Value target = node.inputs[1];
  const Shape column{logits.shape()[0], 1};
  const Value largest = reshape(output_of(node, 1), column), total = reshape(output_of(node, 2), column);
  // Of gradients of gradients. The largest logit has none: it cancels out of what is computed with it and the total.
  if (wanted[0] && diff_dst[2]) {
    diffs[0] = weighted_slope("cross_entropy_total_backward", {reshape(diff_dst[2], column), logits, largest},
                              scalar::exp(scalar::input(1) - scalar::input(2)));
  }
  if (!diff_dst[0]) return diffs;
  const Value diff = reshape(diff_dst[0], column);
  if (wanted[0]) {
    const Value slope = logits_gradient(diff, logits, largest, total, target, label_smoothing_);
    diffs[0] = diffs[0] ? diffs[0] + slope : slope;
  }
  if (wanted[1] && target.dtype() == DType::f32) {
    diffs[1] = weighted_slope("cross_entropy_backward", {diff, log_softmax(logits, 1)}, scalar::input(1),
                              label_smoothing_ - 1.0F);
  }
  return diffs;
}

std::string CrossEntropy::attributes() const { return fmt::format("label_smoothing {}", label_smoothing_); }

}  // namespace ops

Value softmax(Value x, std::int64_t axis) {
  return x.graph().add(std::make_shared<ops::Softmax>(x.shape().index_of(axis), false), {x});
}

Value log_softmax(Value x, std::int64_t axis) {
  return x.graph().add(std::make_shared<ops::Softmax>(x.shape().index_of(axis), true), {x});
}

Value cross_entropy_rows(Value logits, Value target, float label_smoothing) {
  return logits.graph().add(std::make_shared<ops::CrossEntropy>(label_smoothing), {logits, target});
}

}  // namespace concord
