// Recurrent layers: the products of a whole sequence with the input weights, then one operator a layer and direction.
#include "concord/nn/recurrent.hpp"

#include <cmath>

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/random.hpp"

namespace concord::nn {
namespace {

using ops::RecurrentCell;

/// The parameters of one layer in one direction; biases may be empty.
struct Parameters {
  Value weight_ih, weight_hh, bias_ih, bias_hh;
};

Initializer first_values(std::int64_t hidden) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  return init::uniform(-bound, bound);
}

void expect_sizes(std::string_view layer, std::int64_t input, std::int64_t hidden) {
  CONCORD_CHECK(input > 0 && hidden > 0, ArgumentError, "{}: sizes must be positive, got input {} and hidden {}", layer,
                input, hidden);
}

void expect_state(const std::string& path, std::string_view role, Value state, const Shape& shape) {
  const TensorSpec wanted{DType::f32, shape};
  CONCORD_CHECK(!state || state.spec() == wanted, ShapeError, "{}: the first {} must be {}, got {}", path, role,
                wanted.str(), state.spec().str());
}

void expect_no_cell_state(const std::string& path, RecurrentCell cell, const RecurrentState& state) {
  CONCORD_CHECK(!state.c || cell == RecurrentCell::lstm, ArgumentError, "{}: only an LSTM has a cell state c", path);
}

/// x (T, N, input), states (N, H).
RecurrentResult run_direction(RecurrentCell cell, Value x, const Parameters& p, const RecurrentState& first,
                              Value lengths, bool reverse) {
  Graph& graph = x.graph();
  const Value product = matmul(x, p.weight_ih, false, true);
  RecurrentOperands operands{.gates_x = product, .weights = p.weight_hh, .h0 = first.h, .lengths = lengths};
  if (cell == RecurrentCell::lstm) operands.c0 = first.c;
  if (cell == RecurrentCell::gru) {
    if (p.bias_ih) operands.gates_x = product + p.bias_ih;
    operands.bias = p.bias_hh ? p.bias_hh : full(graph, Shape{p.weight_hh.shape()[0]}, 0);
  } else if (p.bias_ih) {
    operands.gates_x = product + (p.bias_ih + p.bias_hh);
  }
  return recurrent(cell, operands, reverse);
}

RecurrentCell rnn_cell(RnnNonlinearity nonlinearity) {
  return nonlinearity == RnnNonlinearity::tanh ? RecurrentCell::rnn_tanh : RecurrentCell::rnn_relu;
}

/// x (T, N, input) with zeros beyond the lengths i32 (N): the gradient of the weights multiplies what stands there by
/// 0.
Value without_padding(Value x, Value lengths) {
  const Scalar is_step = scalar::less(scalar::coordinate(2), scalar::input(1));
  return pointwise("without_padding", {x, reshape(lengths, Shape{1, x.shape()[1], 1})},
                   scalar::select(is_step, scalar::input(0), 0.0F));
}

}  // namespace

RecurrentLayer::RecurrentLayer(std::string name, RecurrentCell cell, std::int64_t input, std::int64_t hidden,
                               const RecurrentOptions& options)
    : name_(std::move(name)), cell_(cell), input_(input), hidden_(hidden), options_(options) {
  expect_sizes(name_, input, hidden);
  CONCORD_CHECK(options.num_layers > 0, ArgumentError, "{}: num_layers must be positive, got {}", name_,
                options.num_layers);
  CONCORD_CHECK(options.dropout >= 0 && options.dropout <= 1, ArgumentError, "{}: dropout {} is outside [0, 1]", name_,
                options.dropout);
  CONCORD_CHECK(options.dropout == 0 || options.num_layers > 1, ArgumentError,
                "{}: dropout {} acts between layers, and there is one layer; set num_layers, or put a Dropout after it",
                name_, options.dropout);
  const Initializer init = first_values(hidden);
  const std::int64_t rows = ops::gates_of(cell) * hidden;
  for (std::int64_t i = 0; i < options.num_layers * directions(); ++i) {
    const std::int64_t width = i < directions() ? input : directions() * hidden;
    Weights w{make_parameter(Shape{rows, width}, init), make_parameter(Shape{rows, hidden}, init), nullptr, nullptr};
    if (options.bias) {
      w.bias_ih = make_parameter(Shape{rows}, init);
      w.bias_hh = make_parameter(Shape{rows}, init);
    }
    weights_.push_back(std::move(w));
  }
}

Value RecurrentLayer::forward(Value x) { return run(x, {}, {}).output; }

RecurrentOutput RecurrentLayer::operator()(Value x, const RecurrentState& first, Value lengths) {
  CONCORD_CHECK(x, ArgumentError, "{} was called with an empty value", name_);
  const Tracing tracing(x.graph(), *this);
  return run(x, first, lengths);
}

void RecurrentLayer::expect(Value x, const RecurrentState& first, Value lengths) const {
  const std::string path = x.graph().scoped(name_, '/');
  CONCORD_CHECK(x.shape().rank() == 3 && x.shape()[2] == input_, ShapeError, "{}: expected [{}, {}], got {}", path,
                options_.batch_first ? "batch, time" : "time, batch", input_, x.shape().str());
  const std::int64_t steps = x.shape()[options_.batch_first ? 1 : 0], batch = x.shape()[options_.batch_first ? 0 : 1];
  CONCORD_CHECK(steps > 0, ShapeError, "{}: expected at least one step, got {} steps of {} sequences", path, steps,
                batch);
  expect_no_cell_state(path, cell_, first);
  const Shape shape{options_.num_layers * directions(), batch, hidden_};
  expect_state(path, "h", first.h, shape);
  expect_state(path, "c", first.c, shape);
  const TensorSpec wanted{DType::i32, Shape{batch}};
  CONCORD_CHECK(!lengths || lengths.spec() == wanted, ShapeError, "{}: lengths must be {}, got {}", path, wanted.str(),
                lengths.spec().str());
}

RecurrentOutput RecurrentLayer::run(Value x, const RecurrentState& first, Value lengths) const {
  expect(x, first, lengths);
  Graph& graph = x.graph();
  Value y = options_.batch_first ? transpose(x, {1, 0, 2}) : x;
  if (lengths) y = without_padding(y, lengths);
  const Shape state{y.shape()[1], hidden_}, one_of_many{1, y.shape()[1], hidden_};
  const auto state_of = [&](Value all, std::int64_t i) {
    return all ? reshape(slice(all, 0, i, i + 1), state) : full(graph, state, 0);
  };
  std::vector<Value> last_h, last_c;
  CONCORD_CHECK(!weights_.empty(), ArgumentError,
                "a recurrent layer is used after it was moved from: its weights are in the layer that it was moved to");
  std::int64_t i = 0;  // of layers·directions
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    std::vector<Value> outputs;
    for (std::int64_t direction = 0; direction < directions(); ++direction, ++i) {
      const Weights& w = weights_[static_cast<std::size_t>(i)];
      const std::string suffix = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
      Parameters p{parameter(graph, w.weight_ih, "weight_ih" + suffix),
                   parameter(graph, w.weight_hh, "weight_hh" + suffix),
                   {},
                   {}};
      if (options_.bias) {
        p.bias_ih = parameter(graph, w.bias_ih, "bias_ih" + suffix);
        p.bias_hh = parameter(graph, w.bias_hh, "bias_hh" + suffix);
      }
      RecurrentState begin{state_of(first.h, i), {}};
      if (cell_ == RecurrentCell::lstm) begin.c = state_of(first.c, i);
      const RecurrentResult result = run_direction(cell_, y, p, begin, lengths, direction == 1);
      outputs.push_back(result.y);
      last_h.push_back(reshape(result.hn, one_of_many));
      if (result.cn) last_c.push_back(reshape(result.cn, one_of_many));
    }
    y = concat(outputs, 2);
    if (options_.dropout > 0 && layer + 1 < options_.num_layers) {
      const OwnRandomNumbers own(y);
      y = dropout(y, options_.dropout);
    }
  }
  return {options_.batch_first ? transpose(y, {1, 0, 2}) : y,
          {concat(last_h, 0), last_c.empty() ? Value{} : concat(last_c, 0)}};
}

RNN::RNN(std::int64_t input, std::int64_t hidden, const RNNOptions& options)
    : RecurrentLayer("rnn", rnn_cell(options.nonlinearity), input, hidden,
                     {options.num_layers, options.bias, options.batch_first, options.dropout, options.bidirectional}) {}
LSTM::LSTM(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options)
    : RecurrentLayer("lstm", RecurrentCell::lstm, input, hidden, options) {}
GRU::GRU(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options)
    : RecurrentLayer("gru", RecurrentCell::gru, input, hidden, options) {}

RecurrentCellLayer::RecurrentCellLayer(std::string name, RecurrentCell cell, std::int64_t input, std::int64_t hidden,
                                       bool bias)
    : name_(std::move(name)), cell_(cell), input_(input), hidden_(hidden) {
  expect_sizes(name_, input, hidden);
  const Initializer init = first_values(hidden);
  const std::int64_t rows = ops::gates_of(cell) * hidden;
  weight_ih_ = make_parameter(Shape{rows, input}, init);
  weight_hh_ = make_parameter(Shape{rows, hidden}, init);
  if (!bias) return;
  bias_ih_ = make_parameter(Shape{rows}, init);
  bias_hh_ = make_parameter(Shape{rows}, init);
}

Value RecurrentCellLayer::forward(Value x) { return run(x, {}).h; }

RecurrentState RecurrentCellLayer::operator()(Value x, const RecurrentState& state) {
  CONCORD_CHECK(x, ArgumentError, "{} was called with an empty value", name_);
  const Tracing tracing(x.graph(), *this);
  return run(x, state);
}

RecurrentState RecurrentCellLayer::run(Value x, const RecurrentState& state) const {
  Graph& graph = x.graph();
  const std::string path = graph.scoped(name_, '/');
  CONCORD_CHECK(x.shape().rank() == 2 && x.shape()[1] == input_ && x.shape()[0] > 0, ShapeError,
                "{}: expected [batch, {}] of at least one row, got {}", path, input_, x.shape().str());
  expect_no_cell_state(path, cell_, state);
  const Shape shape{x.shape()[0], hidden_};
  expect_state(path, "h", state.h, shape);
  expect_state(path, "c", state.c, shape);
  Parameters p{parameter(graph, weight_ih_, "weight_ih"), parameter(graph, weight_hh_, "weight_hh"), {}, {}};
  if (bias_ih_) {
    p.bias_ih = parameter(graph, bias_ih_, "bias_ih");
    p.bias_hh = parameter(graph, bias_hh_, "bias_hh");
  }
  RecurrentState begin{state.h ? state.h : full(graph, shape, 0), state.c};
  if (cell_ == RecurrentCell::lstm && !begin.c) begin.c = full(graph, shape, 0);
  const RecurrentResult result = run_direction(cell_, reshape(x, {1, x.shape()[0], input_}), p, begin, Value{}, false);
  return {result.hn, result.cn};
}

RNNCell::RNNCell(std::int64_t input, std::int64_t hidden, const RNNCellOptions& options)
    : RecurrentCellLayer("rnn_cell", rnn_cell(options.nonlinearity), input, hidden, options.bias) {}
LSTMCell::LSTMCell(std::int64_t input, std::int64_t hidden, const RecurrentCellOptions& options)
    : RecurrentCellLayer("lstm_cell", RecurrentCell::lstm, input, hidden, options.bias) {}
GRUCell::GRUCell(std::int64_t input, std::int64_t hidden, const RecurrentCellOptions& options)
    : RecurrentCellLayer("gru_cell", RecurrentCell::gru, input, hidden, options.bias) {}

}  // namespace concord::nn
