// Recurrent layers and cells against recorded PyTorch runs of every option, on every device.
#include "concord/nn/recurrent.hpp"

#include <cmath>

#include "concord/io/safetensors.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kInput = 3, kHidden = 4, kSteps = 5, kBatch = 3;

/// The operands of tests/goldens/recurrent.py.
Tensor wave(const Shape& shape, int seed) {
  Tensor tensor(DType::f32, shape);
  double i = 0;
  for (float& value : tensor.values<float>()) {
    value = static_cast<float>(0.5 * std::sin(seed + i + 0.37 * i * i));
    ++i;
  }
  return tensor;
}

struct Results {
  Value output;
  nn::RecurrentState last;
};
using Layer = std::function<Results(Value x, const nn::RecurrentState& first, Value lengths)>;

template <class T>
Layer sequence(T layer) {
  return [layer = std::make_shared<T>(layer)](Value x, const nn::RecurrentState& first, Value lengths) -> Results {
    const nn::RecurrentOutput result = (*layer)(x, first, lengths);
    return {result.output, result.last};
  };
}
template <class T>
Layer cell(T layer) {
  return [layer = std::make_shared<T>(layer)](Value x, const nn::RecurrentState& state, Value) -> Results {
    const nn::RecurrentState result = (*layer)(x, state);
    return {result.h, result};
  };
}

struct Case {
  const char* name;
  Layer layer;
  std::int64_t states = 0;  // layers·directions of the given first states
  bool has_c = false;
  std::vector<std::int32_t> lengths = {};
  bool batch_first = false;
};

/// Cells have no time: their x is (N, input), their states (N, hidden).
bool is_cell(const Case& c) { return std::string(c.name).find("cell") != std::string::npos; }

std::vector<Case> cases() {
  using namespace concord::nn;
  const RecurrentOptions deep{.num_layers = 2, .bidirectional = true};
  const RecurrentOptions deep_batch_first{.num_layers = 2, .batch_first = true, .bidirectional = true};
  return {
      {"rnn", sequence(RNN{kInput, kHidden})},
      {"rnn relu", sequence(RNN{kInput, kHidden, {.num_layers = 2, .nonlinearity = RnnNonlinearity::relu}}), 2},
      {"rnn lengths", sequence(RNN{kInput, kHidden, {.bidirectional = true}}), 2, false, {2, 5, 1}},
      {"lstm", sequence(LSTM{kInput, kHidden})},
      {"lstm deep", sequence(LSTM{kInput, kHidden, deep_batch_first}), 4, true, {}, true},
      {"lstm unbiased", sequence(LSTM{kInput, kHidden, {.bias = false}}), 1, true},
      {"lstm lengths", sequence(LSTM{kInput, kHidden, deep}), 4, true, {4, 2, 5}},
      {"gru", sequence(GRU{kInput, kHidden})},
      {"gru deep", sequence(GRU{kInput, kHidden, deep}), 4},
      {"gru unbiased", sequence(GRU{kInput, kHidden, {.bias = false, .batch_first = true}}), 1, false, {}, true},
      {"gru lengths", sequence(GRU{kInput, kHidden, deep_batch_first}), 0, false, {3, 3, 4}, true},
      {"rnn cell", cell(RNNCell{kInput, kHidden}), 1},
      {"rnn cell relu", cell(RNNCell{kInput, kHidden, {.bias = false, .nonlinearity = RnnNonlinearity::relu}}), 1},
      {"lstm cell", cell(LSTMCell{kInput, kHidden}), 1, true},
      {"lstm cell unbiased", cell(LSTMCell{kInput, kHidden, {.bias = false}})},
      {"gru cell", cell(GRUCell{kInput, kHidden}), 1},
      {"gru cell unbiased", cell(GRUCell{kInput, kHidden, {.bias = false}}), 1},
  };
}

/// A case with the gradients of Σ output·wave + Σ last states·waves.
struct Traced {
  explicit Traced(const Case& c) {
    const bool one_step = is_cell(c);
    const Shape steps = c.batch_first ? Shape{kBatch, kSteps, kInput} : Shape{kSteps, kBatch, kInput};
    const auto operand = [&](const std::string& name, const Shape& shape) {
      operands.push_back(graph.input(name, {DType::f32, shape}));
      return operands.back();
    };
    const Value x = operand("x", one_step ? Shape{kBatch, kInput} : steps);
    const Shape state = one_step ? Shape{kBatch, kHidden} : Shape{c.states, kBatch, kHidden};
    nn::RecurrentState first;
    if (c.states > 0) first.h = operand("h", state);
    if (c.has_c) first.c = operand("c", state);
    Value lengths;
    if (!c.lengths.empty()) lengths = graph.input("lengths", {DType::i32, Shape{kBatch}});
    const Results traced = c.layer(x, first, lengths);
    results = {traced.output, traced.last.h};
    if (traced.last.c) results.push_back(traced.last.c);

    Value loss;
    for (const Value& result : results) {
      const Value weights = graph.input("wave of " + result.name() + std::to_string(waves.size()), result.spec());
      waves.push_back(weights);
      const Value term = sum(result * weights);
      loss = loss ? loss + term : term;
    }
    for (const VariablePtr& variable : graph.variables()) parameters.push_back(graph.variable(variable));
    std::vector<Value> wanted = operands;
    wanted.insert(wanted.end(), parameters.begin(), parameters.end());
    gradients = gradient(loss, wanted);
  }

  Graph graph;
  std::vector<Value> operands, results, waves, parameters, gradients;
};

std::vector<std::string> parameter_names(const Layer& layer) {
  Graph graph;
  layer(graph.input("x", {DType::f32, Shape{2, 2, kInput}}), {}, {});
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) names.push_back(variable->name);
  return names;
}

}  // namespace

TEST_CASE("recurrent layers and cells equal PyTorch's", "[nn][recurrent]") {
  const io::TensorMap recorded = io::read_safetensors(golden_path("recurrent.safetensors")).tensors;
  std::size_t compared = 0;
  for (const Case& c : cases()) {
    Traced traced(c);
    const auto expected = [&](const std::string& key) {
      return recorded.at(std::string(c.name) + "." + key).values<float>();
    };
    for (const DevicePtr& device : devices()) {
      INFO(c.name << " on " << device->info().id);
      const auto variables = std::make_shared<Variables>(device, 0);
      std::vector<Value> outputs = traced.results;
      outputs.insert(outputs.end(), traced.gradients.begin(), traced.gradients.end());
      Program program = compile(traced.graph, outputs, variables);
      for (std::size_t i = 0; i < traced.operands.size(); ++i) {
        program.write(traced.operands[i].name(), wave(traced.operands[i].shape(), static_cast<int>(i) + 1));
      }
      if (!c.lengths.empty()) program.write("lengths", Tensor::of<std::int32_t>(Shape{kBatch}, c.lengths));
      for (std::size_t i = 0; i < traced.waves.size(); ++i) {
        program.write(traced.waves[i].name(), wave(traced.waves[i].shape(), 101 + static_cast<int>(i)));
      }
      for (std::size_t i = 0; i < traced.parameters.size(); ++i) {
        variables->write(traced.parameters[i].name(), wave(traced.parameters[i].shape(), 10 + static_cast<int>(i)));
      }
      program.run();
      const char* const names[] = {"output", "h", "c"};
      for (std::size_t i = 0; i < traced.results.size(); ++i) {
        INFO(names[i]);
        CHECK(difference(program.read(traced.results[i]).values<float>(), expected(names[i])) < 2e-6);
      }
      for (std::size_t i = 0; i < traced.gradients.size(); ++i) {
        const std::string name = i < traced.operands.size() ? traced.operands[i].name()
                                                            : traced.parameters[i - traced.operands.size()].name();
        INFO("gradient of " << name);
        CHECK(difference(program.read(traced.gradients[i]).values<float>(), expected("gradient." + name)) < 1e-5);
      }
    }
    compared += traced.results.size() + traced.gradients.size();
  }
  CHECK(compared == recorded.size());
}

TEST_CASE("parameters of recurrent layers have PyTorch's names and first values", "[nn][recurrent]") {
  CHECK(parameter_names(sequence(nn::GRU{kInput, 2, {.num_layers = 2, .bias = false, .bidirectional = true}})) ==
        std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse",
                                 "weight_ih_l1", "weight_hh_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse"});
  struct Tagger : nn::Module {
    nn::LSTM lstm{kInput, 16};
    Value forward(Value x) override { return lstm(x, nn::RecurrentState{}).last.h; }
    Children children() override { return {{"lstm", &lstm}}; }
  } net;
  Graph graph;
  net(graph.input("x", {DType::f32, Shape{2, 2, kInput}}));
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) {
    names.push_back(variable->name);
    CHECK(variable->trainable);
    CHECK(variable->init.kind == Initializer::Kind::uniform);
    CHECK(variable->init.a == -0.25F);
    CHECK(variable->init.b == 0.25F);
  }
  CHECK(names ==
        std::vector<std::string>{"lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l0", "lstm.bias_hh_l0"});
}

TEST_CASE("dropout acts between recurrent layers, in training only", "[nn][recurrent]") {
  const auto masks = [](bool training) {
    nn::LSTM layer{kInput, kHidden, {.num_layers = 3, .dropout = 0.5F}};
    Graph graph;
    graph.set_training(training);
    const Value last = layer(graph.input("x", {DType::f32, Shape{kSteps, kBatch, kInput}}));
    int count = 0;
    for (std::int32_t id = 0; id < graph.size(); ++id) {
      if (graph.node(id).op && graph.node(id).op->name() == "random_bernoulli") ++count;
    }
    CHECK(last.node().op->name() == "recurrent");  // nothing is dropped of the last layer
    return count;
  };
  CHECK(masks(true) == 2);
  CHECK(masks(false) == 0);
}

TEST_CASE("recurrent layers refuse what does not fit, by name", "[nn][recurrent]") {
  CHECK_THROWS_AS(nn::LSTM(0, 4), ArgumentError);
  CHECK_THROWS_AS(nn::GRUCell(3, 0), ArgumentError);
  CHECK_THROWS_AS(nn::RNN(3, 4, {.num_layers = 0}), ArgumentError);
  CHECK_THROWS_WITH(nn::GRU(3, 4, {.dropout = 0.5F}), contains("gru") && contains("one layer"));
  CHECK_THROWS_AS(nn::GRU(3, 4, {.num_layers = 2, .dropout = 1.5F}), ArgumentError);

  Graph graph;
  const auto value = [&](DType type, const Shape& shape) {
    return graph.input("v" + std::to_string(graph.size()), {type, shape});
  };
  const nn::Scope scope(graph, "encoder");
  nn::LSTM lstm{3, 4, {.num_layers = 2}};
  const Value x = value(DType::f32, Shape{5, 2, 3});
  CHECK_THROWS_WITH(lstm(value(DType::f32, Shape{5, 2, 4})), contains("encoder/lstm") && contains("[5, 2, 4]"));
  CHECK_THROWS_WITH(lstm(value(DType::f32, Shape{2, 3})), contains("[time, batch, 3]") && contains("[2, 3]"));
  CHECK_THROWS_WITH(lstm(value(DType::f32, Shape{0, 2, 3})), contains("0 steps of 2 sequences"));
  CHECK_THROWS_WITH(lstm(x, {.h = value(DType::f32, Shape{1, 2, 4})}),
                    contains("encoder/lstm") && contains("h must be f32 [2, 2, 4]") && contains("[1, 2, 4]"));
  CHECK_THROWS_WITH(lstm(x, {.c = value(DType::f32, Shape{2, 2, 5})}), contains("c must be") && contains("[2, 2, 5]"));
  CHECK_THROWS_WITH(lstm(x, {}, value(DType::i32, Shape{3})), contains("lengths must be i32 [2]"));
  CHECK_THROWS_WITH(lstm(x, {}, value(DType::f32, Shape{2})), contains("lengths must be i32 [2]"));
  nn::GRU gru{3, 4};
  CHECK_THROWS_AS(gru(x, {.c = value(DType::f32, Shape{1, 2, 4})}), ArgumentError);
  nn::GRU batch_first{3, 4, {.batch_first = true}};
  CHECK_THROWS_WITH(batch_first(x, {.h = value(DType::f32, Shape{1, 2, 4})}), contains("h must be f32 [1, 5, 4]"));
  nn::LSTMCell cell{3, 4};
  CHECK_THROWS_WITH(cell(x), contains("lstm_cell") && contains("[batch, 3]"));
  CHECK_THROWS_WITH(cell(value(DType::f32, Shape{2, 3}), {.h = value(DType::f32, Shape{3, 4})}),
                    contains("h must be f32 [2, 4]"));
}
