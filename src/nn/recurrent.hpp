// RNN, LSTM and GRU over whole sequences, and their cells for single steps. They have PyTorch's names and parameters
// (weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, weight_ih_l1, …). All initial values are
// uniform in ±1/√hidden.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/recurrent.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

enum class RnnNonlinearity : std::uint8_t { tanh, relu };

/// Options of LSTM and GRU.
struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;    // sequences are (N, T, …) instead of (T, N, …); states do not change
  float dropout = 0;           // on the output of each layer except the last, in training
  bool bidirectional = false;  // adds the reverse direction; its features follow the forward ones
};
struct RNNOptions {
  std::int64_t num_layers = 1;
  RnnNonlinearity nonlinearity = RnnNonlinearity::tanh;
  bool bias = true;
  bool batch_first = false;
  float dropout = 0;
  bool bidirectional = false;
};

/// The state h, and c for an LSTM. An empty value means zeros.
struct RecurrentState {
  Value h = {}, c = {};
};
struct RecurrentOutput {
  Value output;         // (T, N, directions·hidden)
  RecurrentState last;  // (layers·directions, N, hidden): layer by layer, forward before reverse
};

/// The base of RNN, LSTM and GRU. x is (T, N, input), or (N, T, input) with batch_first.
class RecurrentLayer : public Module {
 public:
  /// Returns the output sequence, with initial states of zero.
  [[nodiscard]] Value forward(Value x) override;
  using Module::operator();
  /// Starts from the states `first` (layers·directions, N, hidden). With `lengths` i32 (N), in any order, sequence n
  /// has lengths[n] steps: later outputs are 0, the last state is that after its own last step, and the reverse
  /// direction starts there. A length outside [1, T] gives NaN.
  [[nodiscard]] RecurrentOutput operator()(Value x, const RecurrentState& first, Value lengths = {});

 protected:
  /// Throws ArgumentError for sizes below 1, for dropout outside [0, 1], and for dropout with one layer.
  RecurrentLayer(std::string name, ops::RecurrentCell cell, std::int64_t input, std::int64_t hidden,
                 const RecurrentOptions& options);

 private:
  struct Weights {
    VariablePtr weight_ih, weight_hh, bias_ih, bias_hh;
  };
  [[nodiscard]] RecurrentOutput run(Value x, const RecurrentState& first, Value lengths) const;
  void expect(Value x, const RecurrentState& first, Value lengths) const;
  [[nodiscard]] std::int64_t directions() const { return options_.bidirectional ? 2 : 1; }

  std::string name_;
  ops::RecurrentCell cell_;
  std::int64_t input_, hidden_;
  RecurrentOptions options_;
  std::vector<Weights> weights_;  // layer by layer, forward before reverse
};

/// h' = tanh(W_ih·x + b_ih + W_hh·h + b_hh), or relu instead of tanh.
class RNN : public RecurrentLayer {
 public:
  RNN(std::int64_t input, std::int64_t hidden, const RNNOptions& options = {});
};

/// Long short-term memory (Hochreiter and Schmidhuber, 1997). The rows of the weights are the gates i, f, g, o.
class LSTM : public RecurrentLayer {
 public:
  LSTM(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});
};

/// Gated recurrent unit (Cho et al., 2014) with n = tanh(W_in·x + b_in + r∘(W_hn·h + b_hn)). The rows of the weights
/// are the gates r, z, n.
class GRU : public RecurrentLayer {
 public:
  GRU(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});
};

struct RNNCellOptions {
  bool bias = true;
  RnnNonlinearity nonlinearity = RnnNonlinearity::tanh;
};
struct RecurrentCellOptions {
  bool bias = true;
};

/// The base of RNNCell, LSTMCell and GRUCell: one step with x (N, input) and states (N, hidden). Parameters: weight_ih,
/// weight_hh, bias_ih, bias_hh.
class RecurrentCellLayer : public Module {
 public:
  /// Returns the new h, with initial states of zero.
  [[nodiscard]] Value forward(Value x) override;
  using Module::operator();
  [[nodiscard]] RecurrentState operator()(Value x, const RecurrentState& state);

 protected:
  /// Throws ArgumentError for sizes below 1.
  RecurrentCellLayer(std::string name, ops::RecurrentCell cell, std::int64_t input, std::int64_t hidden, bool bias);

 private:
  [[nodiscard]] RecurrentState run(Value x, const RecurrentState& state) const;

  std::string name_;
  ops::RecurrentCell cell_;
  std::int64_t input_, hidden_;
  VariablePtr weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

class RNNCell : public RecurrentCellLayer {
 public:
  RNNCell(std::int64_t input, std::int64_t hidden, const RNNCellOptions& options = {});
};
class LSTMCell : public RecurrentCellLayer {
 public:
  LSTMCell(std::int64_t input, std::int64_t hidden, const RecurrentCellOptions& options = {});
};
class GRUCell : public RecurrentCellLayer {
 public:
  GRUCell(std::int64_t input, std::int64_t hidden, const RecurrentCellOptions& options = {});
};

}  // namespace nn
}  // namespace concord
