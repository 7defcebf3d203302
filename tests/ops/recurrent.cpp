// Recurrent layers against plain loops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/recurrent_layer.hpp"

namespace concord::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One hidden unit: x and p are the parts of its gates from the sequence and from the state, h and c its states.
double unit(Cell cell, const std::vector<double>& x, const std::vector<double>& p, double h, double& c) {
  switch (cell) {
    case Cell::rnn_tanh: return std::tanh(x[0] + p[0]);
    case Cell::rnn_relu: return std::max(x[0] + p[0], 0.0);
    case Cell::lstm:
      c = sigmoid(x[1] + p[1]) * c + sigmoid(x[0] + p[0]) * std::tanh(x[2] + p[2]);
      return sigmoid(x[3] + p[3]) * std::tanh(c);
    case Cell::gru: break;
  }
  const double z = sigmoid(x[1] + p[1]);
  return (1 - z) * std::tanh(x[2] + sigmoid(x[0] + p[0]) * p[2]) + z * h;
}

/// Operands in the order of the operator; y, hn and an LSTM's cn, sequence by sequence.
std::vector<Array> recurrent_of(const Form& form, const std::vector<Array>& in) {
  const Array &gates = in[0], &weights = in[1];
  const std::int64_t steps = gates.shape[0], batch = gates.shape[1], size = weights.shape[1];
  const std::int64_t count = ops::gates_of(form.cell);
  Array y(Shape{steps, batch, size}), h = in[2], c = is_lstm(form.cell) ? in[3] : Array(h.shape);
  for (std::int64_t n = 0; n < batch; ++n) {
    const auto length =
        form.has_lengths ? static_cast<std::int64_t>(in.back().values[static_cast<std::size_t>(n)]) : steps;
    for (std::int64_t k = 0; k < length; ++k) {
      const std::int64_t t = form.reverse ? length - 1 - k : k;
      for (std::int64_t j = 0; j < size; ++j) {
        std::vector<double> x, p;
        for (std::int64_t g = 0; g < count; ++g) {
          const std::int64_t row = g * size + j;
          double sum = is_gru(form.cell) ? in[3].at({row}) : 0;
          for (std::int64_t i = 0; i < size; ++i) sum += weights.at({row, i}) * h.at({n, i});
          x.push_back(gates.at({t, n, row}));
          p.push_back(sum);
        }
        y.at({t, n, j}) = unit(form.cell, x, p, h.at({n, j}), c.at({n, j}));
      }
      for (std::int64_t j = 0; j < size; ++j) h.at({n, j}) = y.at({t, n, j});
    }
  }
  std::vector<Array> results{y, h};
  if (is_lstm(form.cell)) results.push_back(c);
  return results;
}

void check_form(const Form& form, std::int64_t steps, std::int64_t batch, std::int64_t size,
                const std::vector<double>& lengths = {}) {
  check({.name = fmt::format("{}{} T {} N {} H {} lengths {}", ops::name_of(form.cell), form.reverse ? " reverse" : "",
                             steps, batch, size, fmt::join(lengths, " ")),
         .inputs = inputs_of(form, steps, batch, size, lengths),
         .build = [form](const std::vector<Value>& in) { return build(form, in); },
         .reference = [form](const std::vector<Array>& in) { return recurrent_of(form, in); },
         .tolerance = 2e-6});
}

TEST_CASE("recurrent layers equal plain loops in both directions", "[ops][recurrent]") {
  for (const Cell cell : kCells) {
    for (const bool reverse : {false, true}) {
      check_form({cell, reverse}, 5, 3, 7);
      check_form({cell, reverse}, 1, 2, 3);
      check_form({cell, reverse}, 4, 1, 1);
    }
  }
}

/// Forward alone: finite differences of so many numbers take minutes.
void check_forward(const Form& form, std::int64_t steps, std::int64_t batch, std::int64_t size,
                   const std::vector<double>& lengths = {}) {
  const std::vector<Input> inputs = inputs_of(form, steps, batch, size, lengths);
  std::vector<Array> values;
  for (const Input& input : inputs) values.push_back(input.value);
  const std::vector<Array> expected = recurrent_of(form, values);
  for (const DevicePtr& device : devices()) {
    INFO(ops::name_of(form.cell) << " T " << steps << " N " << batch << " H " << size << " on " << device->info().id);
    const auto results = run(device, inputs, [&](const std::vector<Value>& in) { return build(form, in); });
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const Array got = to_array(results[k]);
      double most = 0;
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        most = std::max(most, std::abs(got.values[i] - expected[k].values[i]));
      }
      INFO("result " << k);
      CHECK(most < 2e-5);
    }
  }
}

// What the kernels that take a step in one launch cut: several groups of sequences, chunks of k, a first step that is
// the last; and units enough for the CPU's threads to have unequal parts of them.
TEST_CASE("recurrent layers of many sequences or units equal plain loops", "[ops][recurrent]") {
  for (const Cell cell : kCells) {
    check_forward({cell}, 3, 66, 8);
    check_forward({cell, true, true}, 3, 2, 68, {3, 1});
    check_forward({cell}, 2, 1, 132);
    check_forward({cell}, 1, 2, 4);
    check_forward({cell, true, true}, 4, 3, 212, {4, 2, 3});
    check_forward({cell}, 5, 3, 212);
  }
}

TEST_CASE("sequences of different lengths in one batch", "[ops][recurrent]") {
  for (const Cell cell : kCells) {
    for (const bool reverse : {false, true}) {
      check_form({cell, reverse, true}, 5, 4, 7, {3, 5, 1, 4});
      check_form({cell, reverse, true}, 4, 2, 3, {2, 1});  // none reaches the end
    }
  }
}

TEST_CASE("only what the loss needs of a recurrent layer is asked for", "[ops][recurrent]") {
  const Form form{Cell::lstm, false, true};
  check({.name = "last cell state",
         .inputs = inputs_of(form, 5, 4, 7, {3, 5, 1, 4}),
         .build = [form](const std::vector<Value>& in) { return std::vector{build(form, in)[2]}; },
         .reference = [form](const std::vector<Array>& in) { return std::vector{recurrent_of(form, in)[2]}; },
         .tolerance = 2e-6});
}

TEST_CASE("a length that no sequence can have gives NaN, and leaves the others alone", "[ops][recurrent]") {
  for (const Cell cell : kCells) {
    const Form form{cell, true, true};
    for (const DevicePtr& device : devices()) {
      INFO(ops::name_of(cell) << " on " << device->info().id);
      const auto results = run(device, inputs_of(form, 4, 4, 3, {2, 0, 5, -1}), [&](const std::vector<Value>& in) {
        std::vector<Value> all = build(form, in);
        all.push_back(gradient(sum(all[0]), std::vector{in[0]})[0]);
        return all;
      });
      for (const Tensor& result : results) {
        const Array values = to_array(result);
        const auto batch_axis = static_cast<std::int64_t>(values.shape.rank()) - 2, width = values.shape[-1];
        for (std::int64_t i = 0; i < values.shape.elements(); ++i) {
          const std::int64_t sequence = i / width % values.shape[batch_axis];
          CHECK(std::isnan(values.values[static_cast<std::size_t>(i)]) == (sequence != 0));
        }
      }
    }
  }
}

std::size_t memory_of(const DevicePtr& device, std::int64_t steps) {
  Graph graph;
  std::vector<Value> in;
  for (const Input& input : inputs_of({Cell::lstm}, steps, 4, 16, {})) {
    in.push_back(graph.input(fmt::format("input{}", in.size()), {input.dtype, input.value.shape}));
  }
  const std::vector<Value> outputs = gradient(sum(build({Cell::lstm}, in)[0]), in);
  return compile(graph, outputs, std::make_shared<Variables>(device, 0)).memory();
}

TEST_CASE("the memory of a recurrent layer grows with its steps, not faster", "[ops][recurrent]") {
  for (const DevicePtr& device : devices()) {
    const std::size_t few = memory_of(device, 50), some = memory_of(device, 100), many = memory_of(device, 200);
    CHECK(some > few);
    CHECK(many - some <= 2 * (some - few) + 65536);
  }
}

TEST_CASE("recurrent layers refuse what does not fit", "[ops][recurrent]") {
  const auto error_of = [](Cell cell, std::vector<TensorSpec> specs, bool has_lengths = false) {
    return shape_error(specs, [&](const std::vector<Value>& in) { return build({cell, false, has_lengths}, in); });
  };
  const auto f32 = [](std::initializer_list<std::int64_t> dims) { return TensorSpec{DType::f32, Shape(dims)}; };
  CHECK_THAT(error_of(Cell::rnn_tanh, {f32({5, 3}), f32({3, 3}), f32({1, 3})}), contains("[5, 3]"));
  CHECK_THAT(error_of(Cell::lstm, {f32({5, 2, 10}), f32({8, 2}), f32({2, 2}), f32({2, 2})}), contains("[5, 2, 10]"));
  CHECK_THAT(error_of(Cell::rnn_relu, {f32({0, 2, 4}), f32({4, 4}), f32({2, 4})}), contains("[0, 2, 4]"));
  CHECK_THAT(error_of(Cell::gru, {f32({5, 2, 12}), f32({12, 3}), f32({2, 4}), f32({12})}),
             contains("weights") && contains("[12, 4]") && contains("[12, 3]"));
  CHECK_THAT(error_of(Cell::gru, {f32({5, 2, 12}), f32({12, 4}), f32({3, 4}), f32({12})}),
             contains("h0") && contains("[2, 4]") && contains("[3, 4]"));
  CHECK_THAT(error_of(Cell::lstm, {f32({5, 2, 16}), f32({16, 4}), f32({2, 4}), f32({2, 5})}),
             contains("c0") && contains("[2, 4]") && contains("[2, 5]"));
  CHECK_THAT(error_of(Cell::gru, {f32({5, 2, 12}), f32({12, 4}), f32({2, 4}), f32({4})}),
             contains("bias") && contains("[12]"));
  CHECK_THAT(error_of(Cell::rnn_tanh, {f32({5, 2, 4}), f32({4, 4}), f32({2, 4}), {DType::i32, Shape{3}}}, true),
             contains("lengths") && contains("i32 [2]") && contains("i32 [3]"));
  Graph graph;
  const Value gates = graph.input("gates", f32({5, 2, 12})), weights = graph.input("weights", f32({12, 4}));
  const Value h0 = graph.input("h0", f32({2, 4})), bias = graph.input("bias", f32({12}));
  CHECK_THROWS_AS(recurrent(Cell::gru, {gates, weights, h0}), ArgumentError);
  CHECK_THROWS_AS(recurrent(Cell::gru, {.gates_x = gates, .weights = weights, .h0 = h0, .c0 = h0, .bias = bias}),
                  ArgumentError);
  const Value y = recurrent(Cell::gru, {.gates_x = gates, .weights = weights, .h0 = h0, .bias = bias}).y;
  const Value saved(&graph, y.node_id(), 2);
  CHECK_THROWS_AS(gradient(sum(saved), std::vector{weights}), NotSupported);
}

}  // namespace
}  // namespace concord::test
