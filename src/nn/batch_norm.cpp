// BatchNorm2d: the operator in training, two pointwise operators in evaluation.
#include "concord/nn/batch_norm.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {
namespace {

/// What `variable` will hold after the assignments made so far: a layer called twice moves its statistics twice.
Value latest(Value variable) {
  for (const Assignment& assignment : variable.graph().assignments()) {
    if (assignment.variable == variable) return assignment.value;
  }
  return variable;
}

}  // namespace

BatchNorm2d::BatchNorm2d(std::int64_t channels, const BatchNorm2dOptions& options)
    : channels_(channels), options_(options) {
  CONCORD_CHECK(channels > 0, ArgumentError, "BatchNorm2d: channels must be positive, got {}", channels);
  if (options.affine) {
    weight_ = make_parameter(Shape{channels}, init::constant(1));
    bias_ = make_parameter(Shape{channels}, init::constant(0));
  }
  running_mean_ = make_parameter(Shape{channels}, init::constant(0), false);
  running_var_ = make_parameter(Shape{channels}, init::constant(1), false);
}

Value BatchNorm2d::forward(Value x) {
  Graph& graph = x.graph();
  CONCORD_CHECK(x.shape().rank() == 4 && x.shape()[1] == channels_, ShapeError,
                "{}: expected [batch, {}, rows, columns], got {}", graph.scoped("batch_norm", '/'), channels_,
                x.shape().str());
  const Value scale = weight_ ? parameter(graph, weight_, "weight") : full(graph, Shape{channels_}, 1);
  const Value shift = bias_ ? parameter(graph, bias_, "bias") : full(graph, Shape{channels_}, 0);
  return graph.training() ? train(x, scale, shift) : evaluate(x, scale, shift);
}

Value BatchNorm2d::train(Value x, Value scale, Value shift) {
  Graph& graph = x.graph();
  const std::int64_t values = x.shape().elements() / channels_;  // per channel
  CONCORD_CHECK(values > 1, ShapeError, "{}: training needs more than one value a channel, got {}",
                graph.scoped("batch_norm", '/'), x.shape().str());
  const BatchNormResult result = batch_norm(x, scale, shift, options_.epsilon);
  const Value mean = parameter(graph, running_mean_, "running_mean");
  const Value variance = parameter(graph, running_var_, "running_var");
  const auto moved = [&](int running, int batch, float factor) {
    return (1 - options_.momentum) * scalar::input(running) + options_.momentum * factor * scalar::input(batch);
  };
  const auto count = static_cast<double>(values);
  const auto unbiased = static_cast<float>(count / (count - 1));
  const auto running = pointwise("running_statistics", {latest(mean), latest(variance), result.mean, result.variance},
                                 {moved(0, 2, 1), moved(1, 3, unbiased)}, {DType::f32, DType::f32});
  graph.assign(mean, running[0]);
  graph.assign(variance, running[1]);
  return result.dst;
}

Value BatchNorm2d::evaluate(Value x, Value scale, Value shift) {
  Graph& graph = x.graph();
  const Scalar weight = scalar::input(0), bias = scalar::input(1), mean = scalar::input(2), variance = scalar::input(3);
  const Scalar factor = weight * scalar::rsqrt(variance + options_.epsilon);
  const auto affine = pointwise(
      "batch_norm_factors",
      {scale, shift, parameter(graph, running_mean_, "running_mean"), parameter(graph, running_var_, "running_var")},
      {factor, bias - mean * factor}, {DType::f32, DType::f32});
  const Shape per_channel{channels_, 1, 1};
  return x * reshape(affine[0], per_channel) + reshape(affine[1], per_channel);
}

}  // namespace concord::nn
