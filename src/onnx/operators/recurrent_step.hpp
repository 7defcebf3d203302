// One step of a recurrent cell of ONNX with any activations, for cells that are unrolled. Internal to the room.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "concord/graph/expression.hpp"
#include "concord/graph/graph.hpp"

namespace concord::onnx {

enum class StepCell : std::uint8_t { rnn, gru, lstm };
using StepActivation = std::function<Scalar(const Scalar&)>;

/// The activation of this name. It takes its parameters from the lists, at the next places. Throws NotSupported.
[[nodiscard]] StepActivation step_activation(const std::string& name, const std::vector<float>& alphas,
                                             std::size_t& next_alpha, const std::vector<float>& betas,
                                             std::size_t& next_beta);

struct StepWeights {
  std::int64_t hidden;
  Value recurrent;       // (G·H, H)
  Value bias = {};       // (G·H) of the hidden part, or empty
  Value peepholes = {};  // (3·H) for the gates i, o, f of an LSTM, or empty
  std::vector<StepActivation> activations;
  float clip = 0;  // 0: the gates are not clipped
  bool linear_before_reset = false;
  bool couples_gates = false;  // an LSTM whose forget gate is 1 − the input gate
};

struct StepState {
  Value h, c;  // (N, H); c only of an LSTM
};

/// `gates` (N, G·H): what the input and its bias give, in ONNX's order of gates.
[[nodiscard]] StepState step_of(StepCell cell, const Value& gates, const StepState& state, const StepWeights& weights);

}  // namespace concord::onnx
