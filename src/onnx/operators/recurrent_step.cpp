// One step of a recurrent cell: see recurrent_step.hpp.
#include "concord/onnx/operators/recurrent_step.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

Value gate_of(const Value& gates, std::int64_t hidden, std::int64_t gate) {
  return slice(gates, -1, gate * hidden, (gate + 1) * hidden);
}

Scalar clipped(const Scalar& x, float clip) { return clip == 0 ? x : scalar::max(scalar::min(x, clip), -clip); }

StepState rnn_step(const Value& gates, const StepState& state, const StepWeights& w) {
  Value sum = gates + matmul(state.h, w.recurrent, false, true);
  if (w.bias) sum = sum + w.bias;
  return {pointwise("rnn_step", {sum}, w.activations[0](clipped(scalar::input(0), w.clip))), {}};
}

StepState gru_step(const Value& gates, const StepState& state, const StepWeights& w) {
  const std::int64_t hidden = w.hidden;
  const auto part = [&](const Value& x, std::int64_t gate) { return gate_of(x, hidden, gate); };
  const auto rows = [&](std::int64_t gate) { return slice(w.recurrent, 0, gate * hidden, (gate + 1) * hidden); };
  const auto biased = [&](Value x, std::int64_t gate) { return w.bias ? x + part(w.bias, gate) : x; };
  const auto gate = [&](std::int64_t k) {
    const Value sum = part(gates, k) + biased(matmul(state.h, rows(k), false, true), k);
    return pointwise("gate", {sum}, w.activations[0](clipped(scalar::input(0), w.clip)));
  };
  const Value update = gate(0), reset = gate(1);
  const Value hidden_part = w.linear_before_reset ? reset * biased(matmul(state.h, rows(2), false, true), 2)
                                                  : biased(matmul(reset * state.h, rows(2), false, true), 2);
  const Scalar candidate = w.activations[1](clipped(scalar::input(0), w.clip));
  const Scalar z = scalar::input(1);
  return {pointwise("gru_step", {part(gates, 2) + hidden_part, update, state.h},
                    (1.0F - z) * candidate + z * scalar::input(2)),
          {}};
}

StepState lstm_step(const Value& gates, const StepState& state, const StepWeights& w) {
  const std::int64_t hidden = w.hidden;
  Value sums = gates + matmul(state.h, w.recurrent, false, true);
  if (w.bias) sums = sums + w.bias;
  // Gates i, o, f, c; peepholes i, o, f.
  const auto gate = [&](std::int64_t k, const Value& cell, std::int64_t peephole) {
    Value sum = gate_of(sums, hidden, k);
    if (w.peepholes && peephole >= 0) sum = sum + gate_of(w.peepholes, hidden, peephole) * cell;
    const StepActivation& f = w.activations[k == 3 ? 1 : 0];
    return pointwise("gate", {sum}, f(clipped(scalar::input(0), w.clip)));
  };
  const Value input = gate(0, state.c, 0), candidate = gate(3, state.c, -1);
  const Value forget = w.couples_gates ? 1.0F - input : gate(2, state.c, 2);
  const Value cell = forget * state.c + input * candidate;
  const Value output = gate(1, cell, 1);
  return {pointwise("lstm_step", {output, cell}, scalar::input(0) * w.activations[2](scalar::input(1))), cell};
}

}  // namespace

StepActivation step_activation(const std::string& name, const std::vector<float>& alphas, std::size_t& next_alpha,
                               const std::vector<float>& betas, std::size_t& next_beta) {
  const auto alpha = [&](float otherwise) { return next_alpha < alphas.size() ? alphas[next_alpha++] : otherwise; };
  const auto beta = [&](float otherwise) { return next_beta < betas.size() ? betas[next_beta++] : otherwise; };
  if (name == "Sigmoid") return [](const Scalar& x) { return scalar::sigmoid(x); };
  if (name == "Tanh") return [](const Scalar& x) { return scalar::tanh(x); };
  if (name == "Relu") return [](const Scalar& x) { return scalar::max(x, 0.0F); };
  if (name == "Softsign") return [](const Scalar& x) { return x / (1.0F + scalar::abs(x)); };
  if (name == "Softplus") return [](const Scalar& x) { return scalar::softplus(x); };
  if (name == "Affine") return [a = alpha(1), b = beta(0)](const Scalar& x) { return a * x + b; };
  if (name == "ScaledTanh") return [a = alpha(1), b = beta(1)](const Scalar& x) { return a * scalar::tanh(b * x); };
  if (name == "LeakyRelu") {
    return [a = alpha(0.01F)](const Scalar& x) { return scalar::select(scalar::less(x, 0.0F), a * x, x); };
  }
  if (name == "ThresholdedRelu") {
    return [a = alpha(1)](const Scalar& x) { return scalar::select(scalar::less(x, a), 0.0F, x); };
  }
  if (name == "Elu") {
    return [a = alpha(1)](const Scalar& x) { return scalar::select(scalar::less(x, 0.0F), a * scalar::expm1(x), x); };
  }
  if (name == "HardSigmoid") {
    return
        [a = alpha(0.2F), b = beta(0.5F)](const Scalar& x) { return scalar::max(0.0F, scalar::min(1.0F, a * x + b)); };
  }
  throw NotSupported(fmt::format("the activation '{}' is unknown", name));
}

StepState step_of(StepCell cell, const Value& gates, const StepState& state, const StepWeights& weights) {
  switch (cell) {
    case StepCell::rnn: return rnn_step(gates, state, weights);
    case StepCell::gru: return gru_step(gates, state, weights);
    default: return lstm_step(gates, state, weights);
  }
}

}  // namespace concord::onnx
