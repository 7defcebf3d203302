// Recurrent: one layer of a recurrent network in one direction, over all time steps. nn/recurrent makes layers of it.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// The gates' rows of the weights stand in PyTorch's order: LSTM i, f, g, o; GRU r, z, n.
enum class RecurrentCell : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru };
[[nodiscard]] std::string_view name_of(RecurrentCell cell);
/// G: gates of a hidden unit.
[[nodiscard]] std::int64_t gates_of(RecurrentCell cell);

/// Sizes of one run.
struct RecurrentSizes {
  std::int64_t steps, batch, hidden, gates;  // T, N, H, G
  bool has_lengths;
};

/// What Recurrent and RecurrentBackward share: a step is h' = cell(gates_x[t] + h·weightsᵀ, h). With `reverse` the
/// steps run from the last to the first.
class RecurrentFamily : public Operator {
 public:
  RecurrentFamily(RecurrentCell cell, bool reverse) : cell_(cell), reverse_(reverse) {}
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] RecurrentCell cell() const { return cell_; }
  [[nodiscard]] bool reverse() const { return reverse_; }
  /// Of inputs that `infer` accepts.
  [[nodiscard]] virtual RecurrentSizes sizes(std::span<const TensorSpec> inputs) const = 0;

 private:
  RecurrentCell cell_;
  bool reverse_;
};

/// Inputs: gates_x (T, N, G·H), what the sequence and the biases add to the gates; weights (G·H, H); h0 (N, H);
/// LSTM: c0 (N, H); GRU: bias (3·H), added to the hidden part, since the reset gate acts on that alone
/// (n = tanh(x_n + r∘(W_n·h + b_n))); and, or not, lengths i32 (N).
/// Outputs: y (T, N, H), the state after each step; hn (N, H), the last state; LSTM: cn (N, H). For the gradient, LSTM:
/// activated gates (T, N, 4·H), cells (T, N, H); GRU: activated gates and the candidate's hidden part (T, N, 4·H).
///
/// A sequence n has lengths[n] steps: beyond them y is 0, its last state is that of its own last step, and with
/// `reverse` its own last step is its first. A length outside [1, T] gives NaN.
class Recurrent final : public RecurrentFamily {
 public:
  using RecurrentFamily::RecurrentFamily;
  [[nodiscard]] std::string_view name() const override { return "recurrent"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] RecurrentSizes sizes(std::span<const TensorSpec> inputs) const override;
  /// A sequence may lie where gates_x does: a step reads its own part before it writes the gates, or y, of that part.
  [[nodiscard]] bool in_place(std::size_t input, std::size_t output) const override;
};

/// Inputs: diff_y, diff_hn, weights, h0, y; LSTM: diff_cn, c0, gates, cells; GRU: gates; and, or not, lengths.
/// Outputs: diff_gates (T, N, G·H), the gradient of gates_x; diff_h0 (N, H); previous (T, N, H), the state before each
/// step: the gradient of the weights is diff_gatesᵀ·previous over all steps and sequences. LSTM: diff_c0 (N, H). GRU:
/// diff_hidden (T, N, 3·H), the gradient of h·weightsᵀ + bias, which takes the place of diff_gates in that product.
class RecurrentBackward final : public RecurrentFamily {
 public:
  using RecurrentFamily::RecurrentFamily;
  [[nodiscard]] std::string_view name() const override { return "recurrent_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] RecurrentSizes sizes(std::span<const TensorSpec> inputs) const override;
  /// A sequence may lie where diff_y, y, gates or cells do: a step reads its own part, and that of steps still to come,
  /// before it writes its own.
  [[nodiscard]] bool in_place(std::size_t input, std::size_t output) const override;
};

}  // namespace ops

struct RecurrentOperands {
  Value gates_x, weights, h0;
  Value c0 = {};       // LSTM only
  Value bias = {};     // GRU only
  Value lengths = {};  // may be empty: every sequence has T steps
};
struct RecurrentResult {
  Value y, hn, cn;  // cn of an LSTM only
};
/// See ops::Recurrent. Throws ArgumentError for an operand that the cell lacks or does not take.
RecurrentResult recurrent(ops::RecurrentCell cell, const RecurrentOperands& operands, bool reverse = false);

}  // namespace concord
