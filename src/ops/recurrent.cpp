// Recurrent: shape rules, gradient, cost.
#include "concord/ops/recurrent.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

bool is_lstm(RecurrentCell cell) { return cell == RecurrentCell::lstm; }
bool is_gru(RecurrentCell cell) { return cell == RecurrentCell::gru; }

/// Operands without lengths.
std::size_t forward_inputs(RecurrentCell cell) { return is_lstm(cell) || is_gru(cell) ? 4 : 3; }
std::size_t backward_inputs(RecurrentCell cell) { return is_lstm(cell) ? 9 : is_gru(cell) ? 6 : 5; }

void expect_count(std::string_view op, std::span<const TensorSpec> inputs, std::size_t count) {
  expect_inputs(op, inputs, inputs.size() == count + 1 ? count + 1 : count);
}

void expect_lengths(std::string_view op, std::span<const TensorSpec> inputs, const RecurrentSizes& s) {
  if (s.has_lengths) expect_spec(op, "lengths", inputs.back(), DType::i32, Shape{s.batch});
}

TensorSpec state(const RecurrentSizes& s) { return {DType::f32, Shape{s.batch, s.hidden}}; }
TensorSpec sequence(const RecurrentSizes& s, std::int64_t units) {
  return {DType::f32, Shape{s.steps, s.batch, units * s.hidden}};
}

/// (T, N, U) as (T·N, U).
Value as_rows(Value x) { return reshape(x, {-1, x.shape()[-1]}); }

}  // namespace

std::string_view name_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::rnn_tanh: return "rnn_tanh";
    case RecurrentCell::rnn_relu: return "rnn_relu";
    case RecurrentCell::lstm: return "lstm";
    case RecurrentCell::gru: return "gru";
  }
  throw ArgumentError("unknown recurrent cell");
}

std::int64_t gates_of(RecurrentCell cell) { return is_lstm(cell) ? 4 : is_gru(cell) ? 3 : 1; }

std::string RecurrentFamily::attributes() const {
  return fmt::format("{}{}", ops::name_of(cell_), reverse_ ? " reverse" : "");
}

Cost RecurrentFamily::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  const RecurrentSizes s = sizes(inputs);
  cost.flops = 2.0 * static_cast<double>(s.steps * s.batch) * static_cast<double>(s.gates * s.hidden * s.hidden);
  return cost;
}

RecurrentSizes Recurrent::sizes(std::span<const TensorSpec> inputs) const {
  const Shape& gates = inputs[0].shape;
  const std::int64_t count = gates_of(cell());
  return {gates[0], gates[1], gates[2] / count, count, inputs.size() > forward_inputs(cell())};
}

std::vector<TensorSpec> Recurrent::infer(std::span<const TensorSpec> inputs) const {
  expect_count(name(), inputs, forward_inputs(cell()));
  expect_type(name(), "gates_x", inputs[0], DType::f32);
  const Shape& gates = inputs[0].shape;
  CONCORD_CHECK(gates.rank() == 3 && gates[2] % gates_of(cell()) == 0, ShapeError,
                "recurrent: gates_x of {} must be (steps, batch, {} x hidden), got {}", ops::name_of(cell()),
                gates_of(cell()), gates.str());
  CONCORD_CHECK(gates[0] > 0 && gates[2] > 0, ShapeError, "recurrent: gates_x {} needs at least one step and unit",
                gates.str());
  const RecurrentSizes s = sizes(inputs);
  expect_spec(name(), "weights", inputs[1], DType::f32, Shape{s.gates * s.hidden, s.hidden});
  expect_spec(name(), "h0", inputs[2], DType::f32, state(s).shape);
  if (is_lstm(cell())) expect_spec(name(), "c0", inputs[3], DType::f32, state(s).shape);
  if (is_gru(cell())) expect_spec(name(), "bias", inputs[3], DType::f32, Shape{s.gates * s.hidden});
  expect_lengths(name(), inputs, s);
  std::vector<TensorSpec> outputs{sequence(s, 1), state(s)};
  if (is_lstm(cell())) outputs.insert(outputs.end(), {state(s), sequence(s, 4), sequence(s, 1)});
  if (is_gru(cell())) outputs.push_back(sequence(s, 4));
  return outputs;
}

std::vector<Value> Recurrent::gradient(const Node& node, std::span<const Value> diff_dst,
                                       const std::vector<bool>& wanted) const {
  const std::size_t results = is_lstm(cell()) ? 3 : 2;
  for (std::size_t k = results; k < diff_dst.size(); ++k) {
    CONCORD_CHECK(!diff_dst[k], NotSupported, "{}: no gradient through the saved gates of a recurrent layer",
                  node.name);
  }
  Graph& graph = node.inputs[0].graph();
  const auto diff = [&](std::size_t k) { return diff_dst[k] ? diff_dst[k] : full(graph, node.outputs[k].shape, 0); };
  std::vector<Value> inputs{diff(0), diff(1), node.inputs[1], node.inputs[2], output_of(node, 0)};
  if (is_lstm(cell())) {
    inputs.insert(inputs.end(), {diff(2), node.inputs[3], output_of(node, 3), output_of(node, 4)});
  }
  if (is_gru(cell())) inputs.push_back(output_of(node, 2));
  if (node.inputs.size() > forward_inputs(cell())) inputs.push_back(node.inputs.back());
  const Value first = graph.add(std::make_shared<RecurrentBackward>(cell(), reverse()), std::move(inputs));
  const auto result = [&](std::int32_t k) { return Value(&graph, first.node_id(), k); };

  std::vector<Value> diffs = no_gradients(node);
  const Value hidden = is_gru(cell()) ? result(3) : first;  // gradient of the hidden part of the gates
  if (wanted[0]) diffs[0] = first;
  if (wanted[1]) diffs[1] = matmul(as_rows(hidden), as_rows(result(2)), true, false);
  if (wanted[2]) diffs[2] = result(1);
  if (is_lstm(cell()) && wanted[3]) diffs[3] = result(3);
  if (is_gru(cell()) && wanted[3]) diffs[3] = sum(hidden, {0, 1});
  return diffs;
}

bool Recurrent::in_place(std::size_t input, std::size_t output) const {
  const bool is_sequence = output != 1 && !(is_lstm(cell()) && output == 2);
  return is_sequence && input == 0;
}

RecurrentSizes RecurrentBackward::sizes(std::span<const TensorSpec> inputs) const {
  const Shape& y = inputs[0].shape;
  return {y[0], y[1], y[2], gates_of(cell()), inputs.size() > backward_inputs(cell())};
}

std::vector<TensorSpec> RecurrentBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_count(name(), inputs, backward_inputs(cell()));
  CONCORD_CHECK(inputs[0].shape.rank() == 3, ShapeError,
                "recurrent_backward: diff_y must be (steps, batch, hidden), got {}", inputs[0].shape.str());
  expect_not_empty(name(), "diff_y", inputs[0].shape);
  const RecurrentSizes s = sizes(inputs);
  const auto expect = [&](std::size_t i, std::string_view role, const TensorSpec& spec) {
    expect_spec(name(), role, inputs[i], spec.dtype, spec.shape);
  };
  expect(0, "diff_y", sequence(s, 1));
  expect(1, "diff_hn", state(s));
  expect(2, "weights", {DType::f32, Shape{s.gates * s.hidden, s.hidden}});
  expect(3, "h0", state(s));
  expect(4, "y", sequence(s, 1));
  if (is_lstm(cell())) {
    expect(5, "diff_cn", state(s));
    expect(6, "c0", state(s));
    expect(7, "gates", sequence(s, 4));
    expect(8, "cells", sequence(s, 1));
  }
  if (is_gru(cell())) expect(5, "gates", sequence(s, 4));
  expect_lengths(name(), inputs, s);
  std::vector<TensorSpec> outputs{sequence(s, s.gates), state(s), sequence(s, 1)};
  if (is_lstm(cell())) outputs.push_back(state(s));
  if (is_gru(cell())) outputs.push_back(sequence(s, s.gates));
  return outputs;
}

bool RecurrentBackward::in_place(std::size_t input, std::size_t output) const {
  const bool is_sequence = output != 1 && !(is_lstm(cell()) && output == 3);
  return is_sequence && (input == 0 || input == 4 || (is_lstm(cell()) && (input == 7 || input == 8)));
}

}  // namespace ops

RecurrentResult recurrent(ops::RecurrentCell cell, const RecurrentOperands& operands, bool reverse) {
  const bool lstm = cell == ops::RecurrentCell::lstm, gru = cell == ops::RecurrentCell::gru;
  CONCORD_CHECK(static_cast<bool>(operands.c0) == lstm, ArgumentError, "recurrent: {} {} a cell state",
                ops::name_of(cell), lstm ? "needs" : "does not have");
  CONCORD_CHECK(static_cast<bool>(operands.bias) == gru, ArgumentError, "recurrent: {} {} a bias of its hidden part",
                ops::name_of(cell), gru ? "needs" : "does not have");
  std::vector<Value> inputs{operands.gates_x, operands.weights, operands.h0};
  if (lstm) inputs.push_back(operands.c0);
  if (gru) inputs.push_back(operands.bias);
  if (operands.lengths) inputs.push_back(operands.lengths);
  Graph& graph = operands.gates_x.graph();
  const Value y = graph.add(std::make_shared<ops::Recurrent>(cell, reverse), std::move(inputs));
  return {y, Value(&graph, y.node_id(), 1), lstm ? Value(&graph, y.node_id(), 2) : Value{}};
}

}  // namespace concord
