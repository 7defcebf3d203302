// Recurrent layers as LSTM, GRU and RNN, whose gates ONNX orders otherwise: i, o, f, c and z, r, h. Our operator takes
// the product of the sequence with the input weights; where it is one, ONNX's operator takes sequence and weights, else
// the gates themselves with an identity for weights. recurrent_steps.cpp writes what training needs step by step.
#include "concord/ops/recurrent.hpp"

#include "concord/onnx/export/recurrent_steps.hpp"
#include "concord/onnx/export/rules.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::onnx {
namespace {

using ops::RecurrentCell;

/// What the operator of ONNX takes as X, W and the bias of W; an empty name is left out.
struct SequenceInput {
  std::string sequence, weights, bias_of_input, bias_of_state;
};

bool is_sum_of_two(const Value& value) {
  const auto* op = dynamic_cast<const ops::Pointwise*>(value.node().op.get());
  return op != nullptr && op->expression().str() == Expression({scalar::input(0) + scalar::input(1)}, 2).str();
}

/// Rows of the gates in ONNX's order.
std::vector<std::int64_t> rows_of(RecurrentCell cell, std::int64_t hidden) {
  std::vector<std::int64_t> parts{0};
  if (cell == RecurrentCell::lstm) parts = {0, 3, 1, 2};
  if (cell == RecurrentCell::gru) parts = {1, 0, 2};
  std::vector<std::int64_t> rows;
  for (const std::int64_t part : parts) {
    for (std::int64_t j = 0; j < hidden; ++j) rows.push_back(part * hidden + j);
  }
  return rows;
}

std::string reordered(NodeExport& x, const std::string& name, const std::vector<std::int64_t>& rows) {
  return x.add("Gather", {name, x.writer().integers(rows)}, {whole("axis", 0)});
}

/// x·Wᵀ + bias, if the gates are that.
bool take_product(NodeExport& x, RecurrentCell cell, SequenceInput& input) {
  Value product = x.node().inputs[0], bias;
  const auto is_product = [](const Value& value) {
    const auto* op = dynamic_cast<const ops::Matmul*>(value.node().op.get());
    return op != nullptr && !op->transpose_a() && op->transpose_b() && value.node().inputs[0].shape().rank() == 3 &&
           value.node().inputs[1].shape().rank() == 2;
  };
  if (is_sum_of_two(product)) {
    bias = product.node().inputs[1];
    product = product.node().inputs[0];
    if (bias.shape().rank() != 1) return false;
  }
  if (!is_product(product)) return false;
  input.sequence = x.name_of(product.node().inputs[0]);
  input.weights = x.name_of(product.node().inputs[1]);
  if (!bias) return true;
  if (cell != RecurrentCell::gru && is_sum_of_two(bias)) {
    input.bias_of_input = x.name_of(bias.node().inputs[0]);
    input.bias_of_state = x.name_of(bias.node().inputs[1]);
  } else {
    input.bias_of_input = x.name_of(bias);
  }
  return true;
}

SequenceInput sequence_of(NodeExport& x, RecurrentCell cell, std::int64_t rows) {
  SequenceInput input;
  if (!take_product(x, cell, input)) {
    std::vector<float> identity(static_cast<std::size_t>(rows * rows), 0.0F);
    for (std::int64_t i = 0; i < rows; ++i) identity[static_cast<std::size_t>(i * rows + i)] = 1;
    input.sequence = x.in(0);
    input.weights = x.writer().tensor(Shape{rows, rows}, identity);
  }
  if (cell == RecurrentCell::gru) input.bias_of_state = x.in(3);
  return input;
}

bool is_zero(const Value& value) {
  const auto* op = dynamic_cast<const ops::Pointwise*>(value.node().op.get());
  return op != nullptr && op->expression().str() == Expression({Scalar(0.0F)}, 0).str();
}

void write_recurrent(NodeExport& x) {
  const auto& op = x.op<ops::Recurrent>();
  const RecurrentCell cell = op.cell();
  const bool lstm = cell == RecurrentCell::lstm, gru = cell == RecurrentCell::gru;
  std::vector<TensorSpec> specs;
  for (const Value& input : x.node().inputs) specs.push_back(input.spec());
  const ops::RecurrentSizes s = op.sizes(specs);
  if ((lstm && (x.is_used(3) || x.is_used(4))) || (gru && x.is_used(2))) {
    if (s.has_lengths) NodeExport::refuse("training with lengths of sequences cannot be written");
    return write_steps(x, op, s);
  }
  const std::int64_t rows = s.gates * s.hidden;
  const std::vector<std::int64_t> order = rows_of(cell, s.hidden);
  const auto one_direction = [&](const std::string& name) { return x.unsqueeze(name, {0}); };
  const auto weights = [&](const std::string& name) {
    return one_direction(order.size() == static_cast<std::size_t>(s.hidden) ? name : reordered(x, name, order));
  };
  const SequenceInput input = sequence_of(x, cell, rows);
  std::string bias;
  if (!input.bias_of_input.empty() || !input.bias_of_state.empty()) {
    const auto half = [&](const std::string& name) {
      if (name.empty()) {
        return x.writer().tensor(Shape{rows}, std::vector<float>(static_cast<std::size_t>(rows), 0.0F));
      }
      return order.size() == static_cast<std::size_t>(s.hidden) ? name : reordered(x, name, order);
    };
    bias = one_direction(x.concat({half(input.bias_of_input), half(input.bias_of_state)}, 0));
  }
  const auto state = [&](std::size_t i) {
    return is_zero(x.node().inputs[i]) ? std::string() : one_direction(x.in(i));
  };
  Names inputs{input.sequence,
               weights(input.weights),
               weights(x.in(1)),
               bias,
               s.has_lengths ? x.in(x.node().inputs.size() - 1) : std::string(),
               state(2)};
  if (lstm) inputs.push_back(state(3));
  Attributes attributes{whole("hidden_size", s.hidden), text("direction", op.reverse() ? "reverse" : "forward")};
  if (gru) attributes.push_back(whole("linear_before_reset", 1));
  if (cell == RecurrentCell::rnn_relu) {
    Attribute activations;
    activations.name = "activations";
    activations.type = AttributeType::strings;
    activations.strings = {"Relu"};
    attributes.push_back(std::move(activations));
  }
  const Names results = x.add_many(lstm  ? "LSTM"
                                   : gru ? "GRU"
                                         : "RNN",
                                   std::move(inputs), std::move(attributes), lstm ? 3 : 2);
  if (x.is_used(1)) x.bind(1, x.squeeze(results[1], {0}));
  if (lstm && x.is_used(2)) x.bind(2, x.squeeze(results[2], {0}));
  if (x.is_used(0)) x.bind(0, x.squeeze(results[0], {1}));
}

}  // namespace

void add_recurrent_rules(Rules& rules) {
  rules[typeid(ops::Recurrent)] = write_recurrent;
  rules[typeid(ops::RecurrentBackward)] = write_steps_back;
}

}  // namespace concord::onnx
