// The steps of recurrent layers and of their gradients, one after the other (ops/recurrent.hpp).
#include "concord/onnx/export/recurrent_steps.hpp"

#include <algorithm>

namespace concord::onnx {
namespace {

using ops::RecurrentCell;

/// Parts of a sequence: (T, N, width) by steps, (N, G·H) by gates.
struct StepNames {
  NodeExport& x;
  std::int64_t steps, hidden;
  bool reverse;

  [[nodiscard]] std::int64_t place(std::int64_t i) const { return reverse ? steps - 1 - i : i; }
  [[nodiscard]] std::string at(const std::string& sequence, std::int64_t t) const {
    return x.squeeze(x.slice(sequence, 0, t, t + 1), {0});
  }
  [[nodiscard]] std::string gate(const std::string& row, std::int64_t part) const {
    return x.slice(row, 1, part * hidden, (part + 1) * hidden);
  }
  /// The steps, which came in the order of the pass, as a sequence.
  [[nodiscard]] std::string sequence(Names rows) const {
    if (reverse) std::ranges::reverse(rows);
    for (std::string& row : rows) row = x.unsqueeze(row, {0});
    return x.concat(std::move(rows), 0);
  }
};

std::string one_minus(NodeExport& x, const std::string& name) { return x.subtract(x.writer().number(1), name); }
/// The slopes of a sigmoid and of tanh by their results.
std::string sigmoid_slope(NodeExport& x, const std::string& y) { return x.multiply(y, one_minus(x, y)); }
std::string tanh_slope(NodeExport& x, const std::string& y) { return one_minus(x, x.multiply(y, y)); }

void write_lstm_steps(NodeExport& x, const StepNames& s) {
  std::string h = x.in(2), c = x.in(3);
  Names outputs, gates, cells;
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const std::string sums = x.add("Gemm", {h, x.in(1), s.at(x.in(0), s.place(k))}, {whole("transB", 1)});
    const auto sigmoid = [&](std::int64_t part) { return x.add("Sigmoid", {s.gate(sums, part)}); };
    const std::string i = sigmoid(0), f = sigmoid(1), g = x.add("Tanh", {s.gate(sums, 2)}), o = sigmoid(3);
    c = x.add_to(x.multiply(f, c), x.multiply(i, g));
    h = x.multiply(o, x.add("Tanh", {c}));
    outputs.push_back(h);
    cells.push_back(c);
    gates.push_back(x.concat({i, f, g, o}, 1));
  }
  const std::string y = s.sequence(outputs), all_gates = s.sequence(gates), all_cells = s.sequence(cells);
  x.bind(1, x.add("Identity", {h}));
  x.bind(2, x.add("Identity", {c}));
  x.bind(0, y);
  x.bind(3, all_gates);
  x.bind(4, all_cells);
}

void write_gru_steps(NodeExport& x, const StepNames& s) {
  std::string h = x.in(2);
  Names outputs, gates;
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const std::string row = s.at(x.in(0), s.place(k));
    const std::string product = x.add("Gemm", {h, x.in(1), x.in(3)}, {whole("transB", 1)});
    const auto sigmoid = [&](std::int64_t part) {
      return x.add("Sigmoid", {x.add_to(s.gate(row, part), s.gate(product, part))});
    };
    const std::string r = sigmoid(0), z = sigmoid(1), hidden = s.gate(product, 2);
    const std::string n = x.add("Tanh", {x.add_to(s.gate(row, 2), x.multiply(r, hidden))});
    h = x.add_to(x.multiply(one_minus(x, z), n), x.multiply(z, h));
    outputs.push_back(h);
    gates.push_back(x.concat({r, z, n, hidden}, 1));
  }
  const std::string y = s.sequence(outputs), all_gates = s.sequence(gates);
  x.bind(1, x.add("Identity", {h}));
  x.bind(0, y);
  x.bind(2, all_gates);
}

/// One gradient of a step: of the sums of the gates, of what the product with the weights gives, and of the state
/// before where it passes no gate.
struct StepGradient {
  std::string sums, product, passed;
};

StepGradient lstm_gradient(NodeExport& x, const StepNames& s, std::int64_t t, const std::string& diff_h,
                           const std::string& c_before, std::string& diff_c) {
  const std::string row = s.at(x.in(7), t), through = x.add("Tanh", {s.at(x.in(8), t)});
  const std::string i = s.gate(row, 0), f = s.gate(row, 1), g = s.gate(row, 2), o = s.gate(row, 3);
  const std::string inner = x.add_to(diff_c, x.multiply(x.multiply(diff_h, o), tanh_slope(x, through)));
  const std::string sums = x.concat(
      {x.multiply(x.multiply(inner, g), sigmoid_slope(x, i)),
       x.multiply(x.multiply(inner, c_before), sigmoid_slope(x, f)), x.multiply(x.multiply(inner, i), tanh_slope(x, g)),
       x.multiply(x.multiply(diff_h, through), sigmoid_slope(x, o))},
      1);
  diff_c = x.multiply(inner, f);
  return {sums, sums, {}};
}

StepGradient gru_gradient(NodeExport& x, const StepNames& s, std::int64_t t, const std::string& diff_h,
                          const std::string& h_before) {
  const std::string row = s.at(x.in(5), t);
  const std::string r = s.gate(row, 0), z = s.gate(row, 1), n = s.gate(row, 2), hidden = s.gate(row, 3);
  const std::string of_n = x.multiply(x.multiply(diff_h, one_minus(x, z)), tanh_slope(x, n));
  const std::string of_r = x.multiply(x.multiply(of_n, hidden), sigmoid_slope(x, r));
  const std::string of_z = x.multiply(x.multiply(diff_h, x.subtract(h_before, n)), sigmoid_slope(x, z));
  return {x.concat({of_r, of_z, of_n}, 1), x.concat({of_r, of_z, x.multiply(of_n, r)}, 1), x.multiply(diff_h, z)};
}

StepGradient rnn_gradient(NodeExport& x, const StepNames& s, std::int64_t t, const std::string& diff_h, bool is_relu) {
  const std::string y = s.at(x.in(4), t);
  std::string slope = tanh_slope(x, y);
  if (is_relu) slope = x.cast(x.add("Greater", {y, x.writer().number(0)}), ElementType::f32);
  const std::string sums = x.multiply(diff_h, slope);
  return {sums, sums, {}};
}

}  // namespace

void write_steps(NodeExport& x, const ops::Recurrent& op, const ops::RecurrentSizes& sizes) {
  const StepNames s{x, sizes.steps, sizes.hidden, op.reverse()};
  if (op.cell() == RecurrentCell::lstm) return write_lstm_steps(x, s);
  write_gru_steps(x, s);
}

void write_steps_back(NodeExport& x) {
  const auto& op = x.op<ops::RecurrentBackward>();
  std::vector<TensorSpec> specs;
  for (const Value& input : x.node().inputs) specs.push_back(input.spec());
  const ops::RecurrentSizes sizes = op.sizes(specs);
  if (sizes.has_lengths) NodeExport::refuse("training with lengths of sequences cannot be written");
  const StepNames s{x, sizes.steps, sizes.hidden, op.reverse()};
  const bool lstm = op.cell() == RecurrentCell::lstm, gru = op.cell() == RecurrentCell::gru;
  std::string diff_h = x.in(1), diff_c = lstm ? x.in(5) : std::string();
  Names diffs, products, previous;  // from the last step of the pass to the first
  for (std::int64_t k = s.steps - 1; k >= 0; --k) {
    const std::int64_t t = s.place(k);
    const auto before = [&](const std::string& sequence, const std::string& first) {
      return k == 0 ? first : s.at(sequence, s.place(k - 1));
    };
    const std::string h_before = before(x.in(4), x.in(3));
    const std::string diff = x.add_to(s.at(x.in(0), t), diff_h);
    const StepGradient one = lstm  ? lstm_gradient(x, s, t, diff, before(x.in(8), x.in(6)), diff_c)
                             : gru ? gru_gradient(x, s, t, diff, h_before)
                                   : rnn_gradient(x, s, t, diff, op.cell() == RecurrentCell::rnn_relu);
    diff_h = x.add("MatMul", {one.product, x.in(2)});
    if (!one.passed.empty()) diff_h = x.add_to(diff_h, one.passed);
    diffs.push_back(one.sums);
    products.push_back(one.product);
    previous.push_back(h_before);
  }
  for (Names* rows : {&diffs, &products, &previous}) std::ranges::reverse(*rows);
  if (x.is_used(2)) x.bind(2, s.sequence(previous));
  if (lstm && x.is_used(3)) x.bind(3, diff_c);
  if (gru && x.is_used(3)) x.bind(3, s.sequence(products));
  if (x.is_used(1)) x.bind(1, diff_h);
  if (x.is_used(0)) x.bind(0, s.sequence(diffs));
}

}  // namespace concord::onnx
