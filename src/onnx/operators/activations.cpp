// Activations of ONNX. Those that Concord has as functions use them, so that their fused kernels are found.
#include "concord/ops/activations.hpp"

#include <algorithm>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

using Terms = std::vector<Scalar>;

template <Value (*function)(Value)>
void activation(Call& call) {
  if (call.is_empty(0)) return call.set_empty(0, call.type(0), call.dims(0));
  call.set(0, function(call.number_value(0)), call.type(0));
}

void leaky_relu_of(Call& call) {
  call.set(0, leaky_relu(call.number_value(0), call.number("alpha", 0.01F)), call.type(0));
}

void elu_of(Call& call) { call.set(0, elu(call.number_value(0), call.number("alpha", 1)), call.type(0)); }

void celu_of(Call& call) { call.set(0, celu(call.number_value(0), call.number("alpha", 1)), call.type(0)); }

void selu_of(Call& call) {
  // Before version 6 the constants had three digits.
  const bool is_old = call.opset() < 6;
  const float alpha = call.number("alpha", is_old ? 1.6732F : 1.67326319F);
  const float gamma = call.number("gamma", is_old ? 1.0507F : 1.05070102F);
  if (!is_old && alpha == 1.67326319F && gamma == 1.05070102F) return activation<selu>(call);
  const auto formula = [&](const Terms& x) {
    return gamma * scalar::select(scalar::less(0.0F, x[0]), x[0], alpha * scalar::expm1(x[0]));
  };
  set_pointwise(call, "selu", {0}, formula, call.type(0));
}

void hard_sigmoid_of(Call& call) {
  const float alpha = call.number("alpha", 0.2F), beta = call.number("beta", 0.5F);
  if (alpha == 1.0F / 6 && beta == 0.5F) return activation<hard_sigmoid>(call);
  const auto formula = [&](const Terms& x) { return scalar::max(0.0F, scalar::min(1.0F, alpha * x[0] + beta)); };
  set_pointwise(call, "hard_sigmoid", {0}, formula, call.type(0));
}

void thresholded_relu(Call& call) {
  const float alpha = call.number("alpha", 1);
  const auto formula = [&](const Terms& x) { return scalar::select(scalar::less(alpha, x[0]), x[0], 0.0F); };
  set_pointwise(call, "thresholded_relu", {0}, formula, call.type(0));
}

void shrink(Call& call) {
  const float lambda = call.number("lambd", 0.5F), bias = call.number("bias", 0);
  const auto formula = [&](const Terms& x) {
    return scalar::select(scalar::less(x[0], -lambda), x[0] + bias,
                          scalar::select(scalar::less(lambda, x[0]), x[0] - bias, 0.0F));
  };
  set_pointwise(call, "shrink", {0}, formula, call.type(0));
}

void gelu_of(Call& call) {
  const std::string approximation = call.text("approximate", "none");
  CONCORD_CHECK(approximation == "none" || approximation == "tanh", NotSupported, "the approximation '{}' is unknown",
                approximation);
  const Value x = call.number_value(0);
  call.set(0, approximation == "tanh" ? gelu_tanh(x) : gelu(x), call.type(0));
}

// The slope broadcasts to x alone; before version 7 one of (C) belongs to the channels.
void prelu_of(Call& call) {
  if (call.opset() < 7 && call.rank(1) == 1 && call.rank(0) > 2 && call.dims(1)[0] != 1) {
    Dims dims(call.rank(0) - 1, 1);
    dims[0] = call.dims(1)[0];
    call.reshape_operand(1, std::move(dims));
  }
  const auto formula = [](const Terms& x) { return scalar::select(scalar::less(x[0], 0.0F), x[0] * x[1], x[0]); };
  CONCORD_CHECK(pointwise_dims(call, {0, 1}) == call.dims(0), ShapeError, "the slope does not broadcast to the input");
  set_pointwise(call, "prelu", {0, 1}, formula, call.type(0));
}

void clip_on_host(Call& call) {
  HostTensor y = call.host(0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(y.elements()); ++i) {
    if (y.floating()) {
      if (call.has(1)) y.set(i, std::max(y.number(i), call.number(1)));
      if (call.has(2)) y.set(i, std::min(y.number(i), call.number(2)));
    } else {
      if (call.has(1)) y.set(i, std::max(y.integer(i), call.integer(1)));
      if (call.has(2)) y.set(i, std::min(y.integer(i), call.integer(2)));
    }
  }
  call.set(0, std::move(y));
}

void clip(Call& call) {
  const ElementType type = call.type(0);
  const auto is_single = [&](std::size_t i) { return !call.has(i) || elements_of(call.dims(i)) == 1; };
  if (call.on_host() && is_single(1) && is_single(2)) return clip_on_host(call);
  if (call.opset() < 11) {
    constexpr float kMost = std::numeric_limits<float>::max();
    const float low = call.number("min", -kMost), high = call.number("max", kMost);
    if (low == 0 && high == kMost) return call.set(0, relu(call.value(0)), type);
    return set_pointwise(
        call, "clip", {0}, [&](const Terms& x) { return scalar::min(scalar::max(x[0], low), high); }, type);
  }
  std::vector<std::size_t> operands{0};
  if (call.has(1)) operands.push_back(1);
  if (call.has(2)) operands.push_back(2);
  const auto formula = [&](const Terms& x) {
    Scalar y = x[0];
    std::size_t next = 1;
    if (call.has(1)) y = scalar::max(y, x[next++]);
    if (call.has(2)) y = scalar::min(y, x[next]);
    return y;
  };
  set_pointwise(call, "clip", operands, formula, type);
}

}  // namespace

void add_activations(Table& table) {
  table.add("Relu", {.run = activation<relu>});
  table.add("Sigmoid", {.run = activation<sigmoid>});
  table.add("Softplus", {.run = activation<softplus>});
  table.add("Softsign", {.run = activation<softsign>});
  table.add("HardSwish", {.since = 14, .run = activation<hard_swish>});
  table.add("Mish", {.since = 18, .run = activation<mish>});
  table.add("Gelu", {.since = 20, .run = gelu_of});
  table.add("LeakyRelu", {.run = leaky_relu_of});
  table.add("Elu", {.run = elu_of});
  table.add("Celu", {.since = 12, .run = celu_of});
  table.add("Selu", {.run = selu_of});
  table.add("HardSigmoid", {.run = hard_sigmoid_of});
  table.add("ThresholdedRelu", {.since = 10, .run = thresholded_relu});
  table.add("Shrink", {.since = 9, .run = shrink});
  table.add("PRelu", {.run = prelu_of});
  table.add("Clip", {.run = clip});
  table.add("Clip", {.since = 11, .run = clip, .host = true});
}

}  // namespace concord::onnx
