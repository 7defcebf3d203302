// Attention and transformer layers against recorded PyTorch layers: parameter names, outputs, gradients.
#include "concord/nn/transformer.hpp"

#include <map>

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The values that tests/goldens/attention.py gives a tensor of this name.
Tensor filled(const std::string& name, const Shape& shape, float scale = 1) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const double angle = 1 + 0.7 * static_cast<double>(i) + static_cast<double>(name.size());
    values.push_back(static_cast<float>(0.3 * std::sin(angle)) * scale);
  }
  return Tensor::of(shape, values);
}

struct Case {
  std::string name;
  std::vector<Shape> inputs;
  std::function<Value(Graph&, const std::vector<Value>&)> call;  // makes the layer anew
};

Value lengths_of(Graph& graph) {
  const Tensor lengths = Tensor::of<std::int32_t>(Shape{2}, std::vector<std::int32_t>{7, 3});
  return graph.variable(std::make_shared<Variable>(Variable{"test.lengths", lengths.spec(), {}, false, lengths}));
}

Value mask_of(Graph& graph) {
  const Tensor mask = filled("mask", Shape{5, 5});
  return graph.variable(std::make_shared<Variable>(Variable{"test.mask", mask.spec(), {}, false, mask}));
}

const nn::AttentionMask kCausal{.causal = ops::Causal::first};

nn::TransformerOptions small() { return {.feed_forward = 20, .dropout = 0}; }

const std::vector<Case>& cases() {
  const Shape x{2, 5, 12}, memory{2, 7, 12};
  using Values = std::vector<Value>;
  static const std::vector<Case> all{
      {"self", {x}, [](Graph&, const Values& v) { return nn::MultiheadAttention(12, 3)(v[0]); }},
      {"self causal", {x}, [](Graph&, const Values& v) { return nn::MultiheadAttention(12, 3)(v[0], kCausal); }},
      {"self added mask",
       {x},
       [](Graph& g, const Values& v) {
         return nn::MultiheadAttention(12, 3, {.bias = false})(v[0], nn::AttentionMask{.mask = mask_of(g)});
       }},
      {"cross padded",
       {x, memory},
       [](Graph& g, const Values& v) {
         return nn::MultiheadAttention(12, 3)(v[0], v[1], v[1], {.lengths = lengths_of(g)});
       }},
      {"other widths",
       {x, {2, 7, 8}, {2, 7, 6}},
       [](Graph&, const Values& v) {
         return nn::MultiheadAttention(12, 3, {.key_width = 8, .value_width = 6})(v[0], v[1], v[2]);
       }},
      {"encoder layer", {x}, [](Graph&, const Values& v) { return nn::TransformerEncoderLayer(12, 3, small())(v[0]); }},
      {"encoder layer norm_first gelu",
       {x},
       [](Graph&, const Values& v) {
         nn::TransformerOptions options = small();
         options.activation = gelu;
         options.norm_first = true;
         options.epsilon = 1e-3F;
         return nn::TransformerEncoderLayer(12, 3, options)(v[0], kCausal);
       }},
      {"encoder layer without bias",
       {x},
       [](Graph&, const Values& v) {
         nn::TransformerOptions options = small();
         options.bias = false;
         return nn::TransformerEncoderLayer(12, 3, options)(v[0]);
       }},
      {"decoder layer",
       {x, memory},
       [](Graph& g, const Values& v) {
         return nn::TransformerDecoderLayer(12, 3, small())(v[0], v[1], kCausal, {.lengths = lengths_of(g)});
       }},
      {"encoder", {x}, [](Graph&, const Values& v) { return nn::TransformerEncoder(2, 12, 3, small(), true)(v[0]); }},
      {"decoder",
       {x, memory},
       [](Graph&, const Values& v) {
         nn::TransformerOptions options = small();
         options.norm_first = true;
         return nn::TransformerDecoder(2, 12, 3, options)(v[0], v[1]);
       }},
  };
  return all;
}

std::map<std::string, Shape> recorded_names(const nlohmann::json& expected) {
  std::map<std::string, Shape> names;
  for (const auto& [name, dims] : expected.at("names").items()) {
    names.emplace(name, Shape(dims.get<std::vector<std::int64_t>>()));
  }
  return names;
}

}  // namespace

TEST_CASE("attention and transformer layers equal PyTorch's, with their gradients", "[nn][attention]") {
  const nlohmann::json recorded = golden("attention.json").at("cases");
  for (const DevicePtr& device : devices()) {
    for (const Case& c : cases()) {
      INFO(c.name << " on " << device->info().id);
      const nlohmann::json& expected = recorded.at(c.name);
      Graph graph;
      std::vector<Value> inputs;
      for (std::size_t i = 0; i < c.inputs.size(); ++i) {
        inputs.push_back(graph.input("input" + std::to_string(i), {DType::f32, c.inputs[i]}));
      }
      const Value out = c.call(graph, inputs);
      std::map<std::string, Shape> names;
      std::vector<Value> wanted = inputs;
      for (const VariablePtr& variable : graph.variables()) {
        if (!variable->trainable) continue;
        names.emplace(variable->name, variable->spec.shape);
        wanted.push_back(graph.variable(variable));
      }
      CHECK(names == recorded_names(expected));
      const Value seed = graph.input("seed", out.spec());
      const std::vector<Value> diffs = gradient(sum(out * seed), wanted);
      std::vector<Value> outputs{out};
      outputs.insert(outputs.end(), diffs.begin(), diffs.end());
      const auto variables = std::make_shared<Variables>(device, 0);
      Program program = compile(graph, outputs, variables);
      for (const auto& [name, shape] : names) variables->write(name, filled(name, shape));
      for (std::size_t i = 0; i < inputs.size(); ++i) program.write(inputs[i].name(), filled("input", c.inputs[i], 3));
      program.write("seed", filled("seed", out.shape()));
      program.run();
      CHECK(difference(program.read(out), expected.at("output")) < 1e-5);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        CHECK(difference(program.read(diffs[i]), expected.at("input_gradients").at(i)) < 2e-5);
      }
      std::size_t checked = 0;
      for (std::size_t i = inputs.size(); i < wanted.size(); ++i) {
        const auto& gradients = expected.at("gradients");
        const std::string name = wanted[i].name();
        if (!gradients.contains(name)) continue;
        INFO(name);
        ++checked;
        CHECK(difference(program.read(diffs[i]), gradients.at(name)) < 5e-5);
      }
      CHECK(checked == expected.at("gradients").size());
    }
  }
}

TEST_CASE("a transformer drops in training, and every branch by itself", "[nn][attention]") {
  const auto draws = [](bool training) {
    Graph graph;
    graph.set_training(training);
    nn::TransformerEncoder encoder(2, 12, 3, {.feed_forward = 20, .dropout = 0.1F});
    static_cast<void>(encoder(graph.input("x", {DType::f32, Shape{2, 5, 12}})));
    std::vector<std::uint32_t> purposes;
    for (std::int32_t id = 0; id < graph.size(); ++id) {
      const Operator* op = graph.node(id).op.get();
      if (const auto* random = dynamic_cast<const ops::Random*>(op)) purposes.push_back(random->purpose());
      const auto* attention = dynamic_cast<const ops::Attention*>(op);
      if (attention != nullptr && attention->form().dropout > 0) purposes.push_back(attention->form().purpose);
    }
    return purposes;
  };
  CHECK(draws(false).empty());
  std::vector<std::uint32_t> purposes = draws(true);
  CHECK(purposes.size() == 8);  // weights, two branches and the activation of each layer
  std::ranges::sort(purposes);
  CHECK(std::ranges::adjacent_find(purposes) == purposes.end());
}

TEST_CASE("transformers refuse what does not fit", "[nn][attention]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{2, 5, 12}});
  const Value narrow = graph.input("narrow", {DType::f32, Shape{2, 5, 10}});
  nn::TransformerDecoder decoder(1, 12, 3);
  CHECK_THROWS_AS(decoder(x), ArgumentError);
  CHECK_THROWS_AS(nn::TransformerEncoder(0, 12, 3), ArgumentError);
  nn::TransformerEncoder encoder(1, 12, 3);
  CHECK_THROWS_WITH(encoder(narrow), contains("layers.0/self_attn") && contains("12") && contains("[2, 5, 10]"));
  std::vector<nn::KeyValueCache> none;
  CHECK_THROWS_AS(encoder(x, none), ArgumentError);
}
