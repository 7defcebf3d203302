// Attention that a file writes as products and a softmax becomes Concord's operator where it is the same, and stays
// what it is elsewhere. The same file with the weights as an output, which keeps the composition, is the reference.
#include <cmath>
#include <functional>
#include <limits>

#include "onnx/exported.hpp"
#include "onnx/model_builder.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

namespace {

constexpr std::int64_t kBatch = 2, kTokens = 5, kHeads = 3, kWidth = 4;

/// q, k, v (B, T, H, D) → y (B, T, H, D); spellings differ in some nodes.
struct Spelling {
  std::string name;
  std::vector<onnx::NodeDef> scores;   // "q4", "k4" (B, H, T, D) → "s"
  std::vector<onnx::NodeDef> weights;  // "s" → "w"
  std::vector<onnx::TensorProto> numbers = {};
  bool is_attention = true;
};

onnx::Attribute order(std::vector<std::int64_t> axes) { return attribute("perm", std::move(axes)); }

onnx::Model model_of(const Spelling& spelling, bool keeps_weights) {
  onnx::Model model = empty_model();
  onnx::GraphDef& graph = model.graph;
  for (const std::string name : {"q", "k", "v"}) {
    graph.inputs.push_back(declared(name, ElementType::f32, {kBatch, kTokens, kHeads, kWidth}));
    graph.nodes.push_back(node("Transpose", {name}, {name + "4"}, {order({0, 2, 1, 3})}));
  }
  graph.inputs.push_back(declared("mask", ElementType::f32, {kBatch, 1, 1, kTokens}));
  graph.initializers = spelling.numbers;
  graph.nodes.insert(graph.nodes.end(), spelling.scores.begin(), spelling.scores.end());
  graph.nodes.insert(graph.nodes.end(), spelling.weights.begin(), spelling.weights.end());
  graph.nodes.push_back(node("MatMul", {"w", "v4"}, {"y4"}));
  graph.nodes.push_back(node("Transpose", {"y4"}, {"y"}, {order({0, 2, 1, 3})}));
  graph.outputs = {declared("y", ElementType::f32, {kBatch, kTokens, kHeads, kWidth})};
  if (keeps_weights) graph.outputs.push_back(declared("w", ElementType::f32, {kBatch, kHeads, kTokens, kTokens}));
  return model;
}

std::vector<onnx::NodeDef> scaled_scores() {
  return {node("Transpose", {"k4"}, {"kt"}, {order({0, 1, 3, 2})}), node("MatMul", {"q4", "kt"}, {"p"}),
          node("Mul", {"p", "half"}, {"s"})};
}
std::vector<onnx::NodeDef> softmax_of(const std::string& scores) { return {node("Softmax", {scores}, {"w"})}; }

onnx::TensorProto causal_matrix(float hidden, std::int64_t last = 0) {
  std::vector<float> matrix;
  for (std::int64_t i = 0; i < kTokens; ++i) {
    for (std::int64_t j = 0; j < kTokens; ++j) matrix.push_back(j <= i + last ? 0 : hidden);
  }
  return float_proto("matrix", {1, 1, kTokens, kTokens}, matrix);
}

onnx::TensorProto visible_matrix() {
  std::vector<std::uint8_t> matrix;
  for (std::int64_t i = 0; i < kTokens; ++i) {
    for (std::int64_t j = 0; j < kTokens; ++j) matrix.push_back(j <= i ? 1 : 0);
  }
  return {"visible", {kTokens, kTokens}, ElementType::boolean, onnx::bytes_of(std::as_bytes(std::span(matrix))), {}};
}

std::vector<Spelling> spellings() {
  const auto half = float_proto("half", {}, {0.5F});
  const float hidden = -std::numeric_limits<float>::infinity();
  const auto number = [](const std::string& name, float value) { return float_proto(name, {}, {value}); };
  const auto masked = [&](std::vector<onnx::NodeDef> mask) {
    std::vector<onnx::NodeDef> nodes = scaled_scores();
    nodes.insert(nodes.end(), mask.begin(), mask.end());
    return nodes;
  };
  // Finite numbers, and in each sample one that hides more than the causal matrix does.
  const auto masked_twice = [&](std::vector<onnx::NodeDef> causal, bool is_first) {
    std::vector<onnx::NodeDef> nodes{node("Add", {"mask", "one"}, {"more"}), node("Mul", {"more", "much"}, {"pad"})};
    if (is_first) nodes.push_back(node("Add", {"s", "pad"}, {"t"}));
    nodes.insert(nodes.end(), causal.begin(), causal.end());
    if (!is_first) nodes.push_back(node("Add", {"c", "pad"}, {"m"}));
    return masked(nodes);
  };
  return {
      {"plain", scaled_scores(), softmax_of("s"), {half}},
      {"a divisor, and keys in one transposition",
       {node("Transpose", {"k"}, {"kt"}, {order({0, 2, 3, 1})}), node("MatMul", {"q4", "kt"}, {"p"}),
        node("Div", {"p", "two"}, {"s"})},
       softmax_of("s"),
       {number("two", 2)}},
      {"the root of the scale at queries and keys",
       {node("Mul", {"q4", "root"}, {"qs"}), node("Transpose", {"k4"}, {"kt"}, {order({0, 1, 3, 2})}),
        node("Mul", {"kt", "root"}, {"ks"}), node("MatMul", {"qs", "ks"}, {"s"})},
       softmax_of("s"),
       {number("root", std::sqrt(0.5F))}},
      {"a scale that is a parameter, and keys that are swapped as matrices",
       {node("Mul", {"q4", "root"}, {"qs"}), node("Reshape", {"k4", "joined"}, {"k3"}),
        node("Transpose", {"k3"}, {"kt3"}, {order({0, 2, 1})}), node("Reshape", {"kt3", "apart"}, {"kt"}),
        node("Mul", {"kt", "root"}, {"ks"}), node("MatMul", {"qs", "ks"}, {"s"})},
       softmax_of("s"),
       {float_proto("root", {1}, {std::sqrt(0.5F)}), integer_proto("joined", {3}, {-1, kTokens, kWidth}),
        integer_proto("apart", {4}, {kBatch, kHeads, kWidth, kTokens})}},
      {"a causal matrix of formulas",
       masked({node("Trilu", {"ones"}, {"lower"}, {attribute("upper", std::int64_t{0})}),
               node("Equal", {"lower", "zero"}, {"upper"}), node("Where", {"upper", "hidden", "s"}, {"m"})}),
       softmax_of("m"),
       {half, number("hidden", hidden), number("zero", 0),
        float_proto("ones", {kTokens, kTokens}, std::vector(25, 1.0F))}},
      {"no scale",
       {node("Transpose", {"k4"}, {"kt"}, {order({0, 1, 3, 2})}), node("MatMul", {"q4", "kt"}, {"s"})},
       softmax_of("s")},
      {"a mask that is an input", masked({node("Add", {"mask", "s"}, {"m"})}), softmax_of("m"), {half}},
      {"a causal matrix",
       masked({node("Add", {"s", "matrix"}, {"m"})}),
       softmax_of("m"),
       {half, causal_matrix(hidden)}},
      {"a causal matrix of finite numbers",
       masked({node("Add", {"s", "matrix"}, {"m"})}),
       softmax_of("m"),
       {half, causal_matrix(-1e9F)}},
      {"a causal condition",
       masked({node("Where", {"visible", "s", "hidden"}, {"m"})}),
       softmax_of("m"),
       {half, visible_matrix(), number("hidden", -1e4F)}},
      {"a negated condition and a mask",
       masked({node("Not", {"visible"}, {"not"}), node("Where", {"not", "hidden", "s"}, {"c"}),
               node("Add", {"c", "mask"}, {"m"})}),
       softmax_of("m"),
       {half, visible_matrix(), number("hidden", hidden)}},
      {"an infinite causal matrix and a finite mask",
       masked_twice({node("Add", {"s", "matrix"}, {"c"})}, false),
       softmax_of("m"),
       {half, causal_matrix(hidden), number("one", 1), number("much", -1e9F)}},
      {"a finite causal matrix and a finite mask",
       masked_twice({node("Add", {"s", "matrix"}, {"c"})}, false),
       softmax_of("m"),
       {half, causal_matrix(-1e9F), number("one", 1), number("much", -1e9F)},
       false},
      {"a finite mask and a finite causal matrix",
       masked_twice({node("Add", {"t", "matrix"}, {"m"})}, true),
       softmax_of("m"),
       {half, causal_matrix(-1e9F), number("one", 1), number("much", -1e9F)},
       false},
      {"a finite causal condition and a finite mask",
       masked_twice({node("Where", {"visible", "s", "hidden"}, {"c"})}, false),
       softmax_of("m"),
       {half, visible_matrix(), number("hidden", -1e9F), number("one", 1), number("much", -1e9F)},
       false},
      {"a condition of data",
       masked({node("Cast", {"mask"}, {"c"}, {attribute("to", std::int64_t{9})}),
               node("Where", {"c", "hidden", "s"}, {"m"})}),
       softmax_of("m"),
       {half, number("hidden", std::numeric_limits<float>::lowest())}},
      {"cleared where scores are hidden",
       masked({node("Add", {"s", "matrix"}, {"m"})}),
       {node("Softmax", {"m"}, {"n"}), node("Equal", {"m", "hidden"}, {"h"}), node("Where", {"h", "zero", "n"}, {"w"})},
       {half, causal_matrix(hidden), number("hidden", hidden), number("zero", 0)}},
      {"cleared where it is NaN",
       masked({node("Add", {"s", "mask"}, {"m"})}),
       {node("Softmax", {"m"}, {"n"}), node("IsNaN", {"n"}, {"h"}), node("Where", {"h", "zero", "n"}, {"w"})},
       {half, number("zero", 0)}},
      {"another axis",
       scaled_scores(),
       {node("Softmax", {"s"}, {"w"}, {attribute("axis", std::int64_t{2})})},
       {half},
       false},
      {"a mask before the scale",
       {node("Transpose", {"k4"}, {"kt"}, {order({0, 1, 3, 2})}), node("MatMul", {"q4", "kt"}, {"p"}),
        node("Add", {"p", "mask"}, {"m"}), node("Mul", {"m", "half"}, {"s"})},
       softmax_of("s"),
       {half},
       false},
      {"a trained mask",
       masked({node("Add", {"s", "matrix"}, {"m"})}),
       softmax_of("m"),
       {half, causal_matrix(-0.5F)},
       false},
      {"a weak number of a condition of data",
       masked({node("Cast", {"mask"}, {"c"}, {attribute("to", std::int64_t{9})}),
               node("Where", {"c", "hidden", "s"}, {"m"})}),
       softmax_of("m"),
       {half, number("hidden", -1e4F)},
       false},
      {"scores that are read elsewhere",
       scaled_scores(),
       {node("Softmax", {"s"}, {"n"}), node("Mul", {"n", "s"}, {"w"})},
       {half},
       false},
  };
}

Values inputs_of(const onnx::Network& net, Graph& graph) {
  Values inputs;
  for (const onnx::Declaration& input : net.inputs()) {
    std::vector<std::int64_t> dims;
    for (const auto& size : *input.shape) dims.push_back(size.size);
    inputs.add(input.name, graph.input(input.name, {DType::f32, Shape(dims)}));
  }
  return inputs;
}

int operators_named(onnx::Network& net, const std::string& name) {
  Graph graph;
  graph.set_training(false);
  (void)net.trace(graph, inputs_of(net, graph));
  int count = 0;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op && graph.node(id).op->name() == name) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("attention that an ONNX file writes out is one operator", "[onnx]") {
  const TensorSpec heads{DType::f32, {kBatch, kTokens, kHeads, kWidth}};
  NamedTensors inputs;
  for (const std::string name : {"q", "k", "v"}) inputs[name] = random_input(heads, 8);
  for (float& x : inputs["k"].values<float>()) x = std::sin(3 * x);
  for (float& x : inputs["v"].values<float>()) x = std::cos(5 * x);
  inputs["mask"] = Tensor::of<float>({kBatch, 1, 1, kTokens}, {0, 0, 1, 0, 2, 0, 1, 0, 0, -1});
  for (const Spelling& spelling : spellings()) {
    const ModelFile file(model_of(spelling, false)), written_out(model_of(spelling, true));
    onnx::Network net = onnx::load(file.path()), reference = onnx::load(written_out.path());
    INFO(spelling.name);
    CHECK(operators_named(net, "attention") == (spelling.is_attention ? 1 : 0));
    CHECK(operators_named(reference, "attention") == 0);
    for (const DevicePtr& device : devices()) {
      INFO(device->info().id);
      const Tensor expected = Session(reference, device).run(inputs).at("y");
      CHECK(difference(Session(net, device).run(inputs).at("y"), expected) < 3e-6);
    }
  }
}

TEST_CASE("attention of an ONNX file has no transposition where tokens come first", "[onnx]") {
  const ModelFile file(model_of(spellings()[0], false));
  onnx::Network net = onnx::load(file.path());
  Graph graph;
  const Values inputs = inputs_of(net, graph);
  const Value y = net.trace(graph, inputs)["y"];
  CHECK(y.node().op->name() == "attention");
  CHECK(y.node().inputs[1] == inputs["k"]);
}

TEST_CASE("attention of an ONNX file has a gradient", "[onnx]") {
  const ModelFile file(model_of(spellings()[5], false));
  onnx::Network net = onnx::load(file.path());
  Graph graph;
  const Values inputs = inputs_of(net, graph);
  const Value y = net.trace(graph, inputs)["y"];
  CHECK(gradient(sum(square(y)), {inputs["q"]})[0].shape() == inputs["q"].shape());
  // The causal matrix is a parameter of the file, which nothing reads now.
  const auto weights = std::make_shared<Variable>(
      Variable{.name = "weights", .spec = {DType::f32, {kWidth}}, .init = nn::init::constant(1), .trainable = true});
  const Value loss = mean(square(y * graph.variable(weights)));
  optim::minimize(loss, optim::Sgd{});
  CHECK_NOTHROW(compile(graph, loss, std::make_shared<Variables>(devices().at(0), 1)).run());
}
