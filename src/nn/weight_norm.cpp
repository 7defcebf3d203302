// The weights of weight and spectral normalisation.
#include "concord/nn/weight_norm.hpp"

#include <cmath>

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/stop_gradient.hpp"

namespace concord::nn {
namespace {

/// (out, 1, …) for weights (out, …).
Shape rows_of(const Shape& weight) {
  std::vector<std::int64_t> dims(weight.rank(), 1);
  dims[0] = weight[0];
  return Shape(std::move(dims));
}

std::int64_t row_length(const Shape& weight) { return weight.elements() / weight[0]; }

double mean_square(const Initializer& init) {
  const auto a = static_cast<double>(init.a), b = static_cast<double>(init.b);
  switch (init.kind) {
    case Initializer::Kind::uniform: return (a * a + a * b + b * b) / 3;
    case Initializer::Kind::normal: return a * a + b * b;
    default: return a * a;
  }
}

Tensor lengths_of(const Tensor& weight) {
  Tensor lengths(DType::f32, rows_of(weight.shape()));
  const auto values = weight.values<float>();
  const auto length = static_cast<std::size_t>(row_length(weight.shape()));
  for (std::size_t row = 0; row < lengths.values<float>().size(); ++row) {
    double squares = 0;
    for (const float value : values.subspan(row * length, length)) squares += static_cast<double>(value) * value;
    lengths.values<float>()[row] = static_cast<float>(std::sqrt(squares));
  }
  return lengths;
}

Value normalised(Value vector, float epsilon) {
  return pointwise("normalise", {vector, norm(vector, {}, true)},
                   scalar::input(0) / scalar::max(scalar::input(1), epsilon));
}

}  // namespace

WeightNormalisation::WeightNormalisation(const VariablePtr& weight) {
  const Shape& shape = weight->spec.shape;
  const double length = std::sqrt(mean_square(weight->init) * static_cast<double>(row_length(shape)));
  length_ = make_parameter(rows_of(shape), init::constant(length));
  if (weight->value.elements() > 0) length_->value = lengths_of(weight->value);
}

Value WeightNormalisation::weight(Graph& graph, const VariablePtr& direction) const {
  const Value g = parameter(graph, length_, "parametrizations.weight.original0");
  const Value v = parameter(graph, direction, "parametrizations.weight.original1");
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 1; axis < v.shape().rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return v * (g / norm(v, axes, true));
}

SpectralNormalisation::SpectralNormalisation(const VariablePtr& weight, const SpectralNormOptions& options)
    : options_(options) {
  CONCORD_CHECK(options.power_iterations >= 1 && options.epsilon >= 0, ArgumentError,
                "SpectralNorm: at least one power iteration and no negative epsilon needed, got {} and {}",
                options.power_iterations, options.epsilon);
  const Shape& shape = weight->spec.shape;
  const auto vector = [](std::int64_t size) {
    return make_parameter(Shape{size}, init::normal(0, 1 / std::sqrt(static_cast<double>(size))), false);
  };
  u_ = vector(shape[0]);
  v_ = vector(row_length(shape));
}

Value SpectralNormalisation::weight(Graph& graph, const VariablePtr& original) const {
  const Value w = parameter(graph, original, "parametrizations.weight.original");
  const Value u_state = parameter(graph, u_, "parametrizations.weight.0._u");
  const Value v_state = parameter(graph, v_, "parametrizations.weight.0._v");
  const Value matrix = reshape(w, {w.shape()[0], -1});  // (out, in)
  Value u = reshape(latest(u_state), {-1, 1}), v = reshape(latest(v_state), {-1, 1});
  if (graph.training()) {
    const Value fixed = stop_gradient(matrix);
    for (int i = 0; i < options_.power_iterations; ++i) {
      u = normalised(matmul(fixed, v), options_.epsilon);
      v = normalised(matmul(fixed, u, true, false), options_.epsilon);
    }
    graph.assign(u_state, reshape(u, u_state.shape()));
    graph.assign(v_state, reshape(v, v_state.shape()));
  }
  const Value sigma = sum(u * matmul(matrix, v));
  return w / sigma;
}

}  // namespace concord::nn
