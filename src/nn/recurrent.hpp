// RNN, LSTM and GRU over whole sequences, and their cells for single steps: PyTorch's layers of these names, with its
// parameters (weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, weight_ih_l1, …). All first
// values are U(−1/√hidden, 1/√hidden).
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/recurrent.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

enum class RnnNonlinearity : std::uint8_t { tanh, relu };

/// Of LSTM and GRU.
struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;    // sequences are (N, T, …) instead of (T, N, …); states are not
  float dropout = 0;           // on what each layer but the last gives, in training
  bool bidirectional = false;  // a second direction from the end; its features follow the first's
};
struct RNNOptions {
  std::int64_t num_layers = 1;
  RnnNonlinearity nonlinearity = RnnNonlinearity::tanh;
  bool bias = true;
  bool batch_first = false;
  float dropout = 0;
  bool bidirectional = false;
};

/// h and, of an LSTM, c. What is empty counts as zero.
struct RecurrentState {
  Value h = {}, c = {};
};
struct RecurrentOutput {
  Value output;         // (T, N, directions·hidden)
  RecurrentState last;  // (layers·directions, N, hidden), layer by layer
};

/// Base of RNN, LSTM and GRU: x (T, N, input), or (N, T, input) with batch_first.
class RecurrentLayer : public Module {
 public:
  /// The output sequence, from states of zero.
  [[nodiscard]] Value forward(Value x) override;
  using Module::operator();
  /// From the states `first` (layers·directions, N, hidden). With `lengths` i32 (N), in any order, sequence n ends
  /// after lengths[n] steps: the output beyond is 0, the last states are those of its own end, where the second
  /// direction begins; a length outside [1, T] gives NaN.
  [[nodiscard]] RecurrentOutput operator()(Value x, const RecurrentState& first, Value lengths = {});

 protected:
  /// Throws ArgumentError for sizes below 1, and for dropout outside [0, 1] or without a second layer.
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

/// h' = tanh(W_ih·x + b_ih + W_hh·h + b_hh), or the rectifier instead of tanh.
class RNN : public RecurrentLayer {
 public:
  RNN(std::int64_t input, std::int64_t hidden, const RNNOptions& options = {});
};

/// Long short-term memory; rows of the weights are the gates i, f, g, o.
class LSTM : public RecurrentLayer {
 public:
  LSTM(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});
};

/// Gated recurrent unit, n = tanh(W_in·x + b_in + r∘(W_hn·h + b_hn)); rows of the weights are the gates r, z, n.
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

/// Base of RNNCell, LSTMCell and GRUCell: one step, x (N, input), states (N, hidden); parameters weight_ih, weight_hh,
/// bias_ih, bias_hh.
class RecurrentCellLayer : public Module {
 public:
  /// The new h, from states of zero.
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
