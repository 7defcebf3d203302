// Recurrent: one layer of a recurrent network in one direction, over all time steps. The layers of nn/recurrent use it.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// The rows of the weights are the gates in PyTorch's order: LSTM i, f, g, o; GRU r, z, n.
enum class RecurrentCell : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru };
[[nodiscard]] std::string_view name_of(RecurrentCell cell);
/// The number of gates per hidden unit, G.
[[nodiscard]] std::int64_t gates_of(RecurrentCell cell);

/// Sizes of one run.
struct RecurrentSizes {
  std::int64_t steps, batch, hidden, gates;  // T, N, H, G
  bool has_lengths;
};

/// The base of Recurrent and RecurrentBackward. A step is h' = cell(gates_x[t] + h·weightsᵀ, h). With `reverse` the
/// steps run from the last to the first.
class RecurrentFamily : public Operator {
 public:
  RecurrentFamily(RecurrentCell cell, bool reverse) : cell_(cell), reverse_(reverse) {}
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] RecurrentCell cell() const { return cell_; }
  [[nodiscard]] bool reverse() const { return reverse_; }
  /// The sizes for inputs that `infer` accepts.
  [[nodiscard]] virtual RecurrentSizes sizes(std::span<const TensorSpec> inputs) const = 0;

 private:
  RecurrentCell cell_;
  bool reverse_;
};

/// Inputs: gates_x (T, N, G·H), the contribution of the sequence and the biases to the gates; weights (G·H, H); h0 (N,
/// H); LSTM: c0 (N, H); GRU: bias (3·H), added to the hidden part, on which the reset gate acts alone (n = tanh(x_n +
/// r∘(W_n·h + b_n))); optionally lengths i32 (N).
/// Outputs: y (T, N, H), the state after each step; hn (N, H), the last state; LSTM: cn (N, H). For the gradient also,
/// LSTM: activated gates (T, N, 4·H) and cells (T, N, H); GRU: activated gates and the hidden part of the candidate (T,
/// N, 4·H).
///
/// Sequence n has lengths[n] steps. Later values of y are 0, its last state is the state after its own last step, and
/// with `reverse` it starts at its own last step. A length outside [1, T] gives NaN.
class Recurrent final : public RecurrentFamily {
 public:
  using RecurrentFamily::RecurrentFamily;
  [[nodiscard]] std::string_view name() const override { return "recurrent"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] RecurrentSizes sizes(std::span<const TensorSpec> inputs) const override;
  /// An output may overwrite gates_x: a step reads its part of gates_x before it writes the gates, or y, of that part.
  [[nodiscard]] bool in_place(std::size_t input, std::size_t output) const override;
};

/// Inputs: diff_y, diff_hn, weights, h0, y; LSTM: diff_cn, c0, gates, cells; GRU: gates; optionally lengths.
/// Outputs: diff_gates (T, N, G·H), the gradient of gates_x; diff_h0 (N, H); previous (T, N, H), the state before each
/// step. The gradient of the weights is diff_gatesᵀ·previous, summed over all steps and sequences. LSTM: diff_c0 (N,
/// H). GRU: diff_hidden (T, N, 3·H), the gradient of h·weightsᵀ + bias, which replaces diff_gates in that product.
class RecurrentBackward final : public RecurrentFamily {
 public:
  using RecurrentFamily::RecurrentFamily;
  [[nodiscard]] std::string_view name() const override { return "recurrent_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] RecurrentSizes sizes(std::span<const TensorSpec> inputs) const override;
  /// An output may overwrite diff_y, y, gates or cells: a step reads its own part, and those of later steps, before it
  /// writes its own part.
  [[nodiscard]] bool in_place(std::size_t input, std::size_t output) const override;
};

}  // namespace ops

struct RecurrentOperands {
  Value gates_x, weights, h0;
  Value c0 = {};       // LSTM only
  Value bias = {};     // GRU only
  Value lengths = {};  // optional; empty: every sequence has T steps
};
struct RecurrentResult {
  Value y, hn, cn;  // cn only for an LSTM
};
/// See ops::Recurrent. Throws ArgumentError for a missing operand, and for one that the cell does not take.
RecurrentResult recurrent(ops::RecurrentCell cell, const RecurrentOperands& operands, bool reverse = false);

}  // namespace concord
