// RNN, GRU and LSTM of ONNX. The usual forms are Concord's recurrent operator; others are unrolled step by step.
#include "concord/ops/recurrent.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/recurrent_step.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/rearrange.hpp"

namespace concord::onnx {
namespace {

// x (D, …): the part of one direction.
Value of_direction(const Value& x, std::int64_t direction) { return squeeze(slice(x, 0, direction, direction + 1), 0); }

// The rows of x (G·H, …), gate by gate, in another order.
Value reordered(const Value& x, std::int64_t hidden, const std::vector<std::int64_t>& order) {
  std::vector<Value> gates;
  for (const std::int64_t gate : order) gates.push_back(slice(x, 0, gate * hidden, (gate + 1) * hidden));
  return concat(std::move(gates), 0);
}

struct Sequence {
  Value x = {};        // (T, N, I)
  Value lengths = {};  // (N), or empty
  std::int64_t steps = 0, batch = 0, hidden = 0, directions = 0;
  bool batch_first = false;
};

Value initial_state(const Call& call, std::size_t input, const Sequence& s, std::int64_t direction) {
  if (!call.has(input)) return full(call.graph(), Shape{s.batch, s.hidden}, 0);
  const Value all = call.number_value(input);
  return of_direction(s.batch_first ? transpose(all, {1, 0, 2}) : all, direction);
}

// One direction through Concord's operator.
RecurrentResult fused_direction(const Call& call, ops::RecurrentCell cell, const Sequence& s, std::int64_t direction,
                                bool reverse) {
  // ONNX's gates are i, o, f, c and z, r, h; ours i, f, g, o and r, z, n.
  const std::vector<std::int64_t> order = cell == ops::RecurrentCell::lstm  ? std::vector<std::int64_t>{0, 2, 3, 1}
                                          : cell == ops::RecurrentCell::gru ? std::vector<std::int64_t>{1, 0, 2}
                                                                            : std::vector<std::int64_t>{0};
  const auto rows = static_cast<std::int64_t>(order.size()) * s.hidden;
  const auto ordered = [&](const Value& x) { return order.size() == 1 ? x : reordered(x, s.hidden, order); };
  const Value weights = ordered(of_direction(call.number_value(1), direction));
  Value gates = matmul(s.x, weights, false, true);
  RecurrentOperands operands{
      {}, ordered(of_direction(call.number_value(2), direction)), initial_state(call, 5, s, direction)};
  Value hidden_bias;
  if (call.has(3)) {
    const Value bias = of_direction(call.number_value(3), direction);
    const Value of_input = ordered(slice(bias, 0, 0, rows)), of_hidden = ordered(slice(bias, 0, rows, 2 * rows));
    // Of two biases that are added, the sum is made once.
    const bool has_own = cell == ops::RecurrentCell::gru;
    gates = gates + (has_own ? of_input : of_input + of_hidden);
    if (has_own) hidden_bias = of_hidden;
  }
  operands.gates_x = gates;
  if (cell == ops::RecurrentCell::gru) operands.bias = hidden_bias ? hidden_bias : full(call.graph(), Shape{rows}, 0);
  if (cell == ops::RecurrentCell::lstm) operands.c0 = initial_state(call, 6, s, direction);
  operands.lengths = s.lengths;
  return recurrent(cell, operands, reverse);
}

// One direction, step by step, for what the operator lacks.
RecurrentResult unrolled_direction(const Call& call, StepCell cell, const Sequence& s, std::int64_t direction,
                                   bool reverse, const std::vector<StepActivation>& activations) {
  constexpr std::int64_t kMostSteps = 512;
  CONCORD_CHECK(s.steps <= kMostSteps, NotSupported, "{} steps of a cell that is unrolled; at most {} are", s.steps,
                kMostSteps);
  StepWeights weights{.hidden = s.hidden,
                      .recurrent = of_direction(call.number_value(2), direction),
                      .activations = activations,
                      .clip = call.number("clip", 0),
                      .linear_before_reset = call.integer("linear_before_reset", 0) != 0,
                      .couples_gates = call.integer("input_forget", 0) != 0};
  Value gates = matmul(s.x, of_direction(call.number_value(1), direction), false, true);
  if (call.has(3)) {
    const Value bias = of_direction(call.number_value(3), direction);
    const std::int64_t rows = bias.shape()[0] / 2;
    gates = gates + slice(bias, 0, 0, rows);
    weights.bias = slice(bias, 0, rows, 2 * rows);
  }
  if (call.has(7)) weights.peepholes = of_direction(call.number_value(7), direction);
  StepState state{initial_state(call, 5, s, direction), {}};
  if (cell == StepCell::lstm) state.c = initial_state(call, 6, s, direction);
  std::vector<Value> outputs(static_cast<std::size_t>(s.steps));
  for (std::int64_t i = 0; i < s.steps; ++i) {
    const std::int64_t t = reverse ? s.steps - 1 - i : i;
    const Value now = squeeze(slice(gates, 0, t, t + 1), 0);
    const StepState next = step_of(cell, now, state, weights);
    Value y = next.h;
    if (s.lengths) {  // a sequence that has ended keeps its state
      const Value length = unsqueeze(s.lengths, 1);
      const Scalar runs = scalar::less(static_cast<float>(t), scalar::input(0));
      const auto chosen = [&](const Value& moved, const Value& kept) {
        return pointwise("chosen", {length, moved, kept}, scalar::select(runs, scalar::input(1), scalar::input(2)));
      };
      y = pointwise("output", {length, next.h}, scalar::select(runs, scalar::input(1), 0.0F));
      state.h = chosen(next.h, state.h);
      if (state.c) state.c = chosen(next.c, state.c);
    } else {
      state = next;
    }
    outputs[static_cast<std::size_t>(t)] = y;
  }
  return {stack(outputs, 0), state.h, state.c};
}

void run_recurrent(Call& call, StepCell cell, const std::vector<std::string>& defaults) {
  const std::string direction = call.text("direction", "forward");
  CONCORD_CHECK(direction == "forward" || direction == "reverse" || direction == "bidirectional", NotSupported,
                "the direction '{}' is unknown", direction);
  CONCORD_CHECK(call.rank(0) == 3 && call.rank(2) == 3, ShapeError,
                "x and the recurrent weights need three dimensions");
  Sequence s{.hidden = call.dims(2)[2], .directions = call.dims(2)[0], .batch_first = call.integer("layout", 0) != 0};
  CONCORD_CHECK(s.directions == (direction == "bidirectional" ? 2 : 1), ShapeError, "weights of {} directions",
                s.directions);
  s.x = call.number_value(0);
  if (s.batch_first) s.x = transpose(s.x, {1, 0, 2});
  s.steps = s.x.shape()[0];
  s.batch = s.x.shape()[1];
  if (call.has(4)) {
    const bool all_whole =
        call.is_known(4) && std::ranges::all_of(call.integers(4), [&](std::int64_t n) { return n == s.steps; });
    if (!all_whole) s.lengths = call.value(4);
  }
  const std::vector<std::string> names = call.texts("activations");
  const auto alphas = call.numbers("activation_alpha").value_or(std::vector<float>()),
             betas = call.numbers("activation_beta").value_or(std::vector<float>());
  const bool is_usual = call.number("clip", 0) == 0 && !call.has(7) && call.integer("input_forget", 0) == 0 &&
                        (cell != StepCell::gru || call.integer("linear_before_reset", 0) != 0);
  Value y;
  std::array<std::vector<Value>, 2> last;
  std::size_t next_alpha = 0, next_beta = 0;
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const bool reverse = direction == "reverse" || d == 1;
    std::vector<std::string> own = defaults;
    if (!names.empty()) {
      const auto first = static_cast<std::size_t>(d) * defaults.size();
      CONCORD_CHECK(names.size() >= first + defaults.size(), ShapeError, "{} activations", names.size());
      own.assign(names.begin() + static_cast<std::ptrdiff_t>(first),
                 names.begin() + static_cast<std::ptrdiff_t>(first + defaults.size()));
    }
    std::vector<StepActivation> activations;
    for (const std::string& name : own)
      activations.push_back(step_activation(name, alphas, next_alpha, betas, next_beta));
    const bool is_rectified = cell == StepCell::rnn && own[0] == "Relu";
    RecurrentResult result;
    if (is_usual && (own == defaults || is_rectified)) {
      const auto fused = cell == StepCell::lstm  ? ops::RecurrentCell::lstm
                         : cell == StepCell::gru ? ops::RecurrentCell::gru
                         : is_rectified          ? ops::RecurrentCell::rnn_relu
                                                 : ops::RecurrentCell::rnn_tanh;
      result = fused_direction(call, fused, s, d, reverse);
    } else {
      result = unrolled_direction(call, cell, s, d, reverse, activations);
    }
    const Value own_y = unsqueeze(result.y, 1);  // (T, 1, N, H)
    y = y ? concat({y, own_y}, 1) : own_y;
    last[0].push_back(result.hn);
    last[1].push_back(result.cn);
  }
  if (call.wants(0)) call.set(0, s.batch_first ? transpose(y, {2, 0, 1, 3}) : y, call.type(0));
  for (std::size_t k = 0; k < 2; ++k) {
    if (!call.wants(k + 1)) continue;
    const Value state = stack(last[k], 0);  // (D, N, H)
    call.set(k + 1, s.batch_first ? transpose(state, {1, 0, 2}) : state, call.type(0));
  }
}

void rnn_of(Call& call) { run_recurrent(call, StepCell::rnn, {"Tanh"}); }
void gru_of(Call& call) { run_recurrent(call, StepCell::gru, {"Sigmoid", "Tanh"}); }
void lstm_of(Call& call) { run_recurrent(call, StepCell::lstm, {"Sigmoid", "Tanh", "Tanh"}); }

}  // namespace

void add_recurrent(Table& table) {
  table.add("RNN", {.run = rnn_of});
  table.add("GRU", {.run = gru_of});
  table.add("LSTM", {.run = lstm_of});
}

}  // namespace concord::onnx
