// onnx::Network: what it makes of a file, what of it can be trained, and its errors.
#include "onnx/model_builder.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

namespace {

onnx::Network loaded(const onnx::Model& model, const onnx::LoadOptions& options = {}) {
  const ModelFile file(model);
  return onnx::load(file.path(), options);
}

// The outputs on the first device.
NamedTensors run(const onnx::Network& net, const NamedTensors& inputs) {
  return Session(net, devices().at(0)).run(inputs);
}

Tensor floats(const Shape& shape, const std::vector<float>& values) { return Tensor::of<float>(shape, values); }

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

// y = reshape(x, (N, -1))·w + b, where N is computed from the shape of x.
onnx::Model flattening_model() {
  onnx::Model model = empty_model();
  auto& graph = model.graph;
  graph.initializers = {float_proto("w", {4, 2}, {1, 0, 0, 1, 1, 0, 0, 1}), float_proto("b", {2}, {0.5F, -0.5F}),
                        integer_proto("zero", {}, {0}), integer_proto("minus_one", {1}, {-1}),
                        integer_proto("axis", {1}, {0})};
  graph.nodes = {node("Shape", {"x"}, {"shape"}),
                 node("Gather", {"shape", "zero"}, {"rows"}),
                 node("Unsqueeze", {"rows", "axis"}, {"rows_1"}),
                 node("Concat", {"rows_1", "minus_one"}, {"flat"}, {attribute("axis", std::int64_t{0})}),
                 node("Reshape", {"x", "flat"}, {"table"}),
                 node("Gemm", {"table", "w", "b"}, {"y"})};
  graph.inputs = {declared("x", ElementType::f32, {-1, 2, 2})};
  graph.outputs = {declared("y", ElementType::f32, {-1, 2})};
  return model;
}

std::string trace_error(const onnx::Network& net, const std::map<std::string, TensorSpec>& inputs) {
  Graph graph;
  graph.set_training(false);
  Values values;
  for (const auto& [name, spec] : inputs) values.add(name, graph.input(name, spec));
  try {
    onnx::Network copy = net;
    (void)copy.trace(graph, values);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an ONNX network has free sizes, and shapes vanish from its graph", "[onnx]") {
  onnx::Network net = loaded(flattening_model());
  CHECK(net.inputs().at(0).str() == "float [?, 2, 2]");
  CHECK(net.input_names() == std::vector<std::string>{"x"});
  for (const std::int64_t batch : {1, 3}) {
    Graph graph;
    graph.set_training(false);
    const Value x = graph.input("x", {DType::f32, {batch, 2, 2}});
    const Values y = net(Values{{"x", x}});
    CHECK(y["y"].shape() == Shape{batch, 2});
    std::vector<std::string> operators;
    for (std::int32_t i = 0; i < graph.size(); ++i) {
      if (graph.node(i).op) operators.emplace_back(graph.node(i).op->name());
    }
    CHECK(operators == std::vector<std::string>{"reshape", "matmul", "add"});
    CHECK(graph.find("y") == y["y"]);  // values have the names of the file
  }
  const NamedTensors outputs = run(net, {{"x", floats({1, 2, 2}, {1, 2, 3, 4})}});
  CHECK(values_of(outputs.at("y")) == std::vector<float>{4.5F, 5.5F});
}

TEST_CASE("the float initialisers of an ONNX network are parameters that train", "[onnx]") {
  onnx::Model model = flattening_model();
  model.graph.nodes.back().outputs = {"h"};
  model.graph.initializers.push_back(float_proto("mean", {2}, {0, 0}));
  model.graph.initializers.push_back(float_proto("var", {2}, {1, 1}));
  model.graph.initializers.push_back(float_proto("scale", {2}, {1, 1}));
  model.graph.nodes.push_back(node("BatchNormalization", {"h", "scale", "b", "mean", "var"}, {"n"}));
  model.graph.nodes.push_back(node("Dropout", {"n"}, {"y"}));
  onnx::Network net = loaded(model);

  Graph graph;
  (void)net(graph.input("x", {DType::f32, {4, 2, 2}}));
  std::map<std::string, bool> trainable;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->role == VariableRole::parameter) trainable[variable->name] = variable->trainable;
  }
  CHECK(trainable ==
        std::map<std::string, bool>{{"w", true}, {"b", true}, {"scale", true}, {"mean", false}, {"var", false}});
  CHECK(graph.assignments().size() == 2);  // the running statistics
  CHECK(graph.used_random_state());        // of the dropout

  Graph evaluation;
  evaluation.set_training(false);
  (void)net(evaluation.input("x", {DType::f32, {4, 2, 2}}));
  CHECK(evaluation.assignments().empty());
  CHECK_FALSE(evaluation.used_random_state());

  net.freeze();
  Graph frozen;
  (void)net(frozen.input("x", {DType::f32, {4, 2, 2}}));
  for (const VariablePtr& variable : frozen.variables()) {
    if (variable->trainable) CHECK(frozen.is_frozen(*variable));
  }
}

TEST_CASE("numbers that follow from a parameter keep its gradient", "[onnx]") {
  // y = x·exp(s): the host could compute exp(s), but then s would not be trained.
  onnx::Model model = empty_model();
  model.graph.initializers = {float_proto("s", {1}, {0.5F})};
  model.graph.nodes = {node("Exp", {"s"}, {"scale"}), node("Mul", {"x", "scale"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f32, {3})};
  model.graph.outputs = {declared("y", ElementType::f32, {3})};
  onnx::Network net = loaded(model);
  Graph graph;
  const Value y = net(graph.input("x", {DType::f32, {3}}));
  const Value s = graph.find("s");
  REQUIRE(s);
  CHECK(gradient(sum(y), {s})[0].shape() == Shape{1});
}

TEST_CASE("a branch of If is chosen while tracing, or both are computed", "[onnx]") {
  onnx::Model model = empty_model();
  onnx::GraphDef twice, negated;
  twice.nodes = {node("Add", {"x", "x"}, {"a"})};
  twice.outputs = {declared("a", ElementType::f32, {2})};
  negated.nodes = {node("Neg", {"x"}, {"b"})};
  negated.outputs = {declared("b", ElementType::f32, {2})};
  model.graph.nodes = {node("If", {"c"}, {"y"}, {attribute("then_branch", twice), attribute("else_branch", negated)})};
  model.graph.inputs = {declared("x", ElementType::f32, {2}), declared("c", ElementType::boolean, {})};
  model.graph.outputs = {declared("y", ElementType::f32, {2})};
  const Tensor x = floats({2}, {1, 2});
  const auto truth = [](std::uint8_t value) { return Tensor::of<std::uint8_t>({}, std::vector<std::uint8_t>{value}); };
  for (const std::uint8_t value : std::vector<std::uint8_t>{0, 1}) {
    const std::vector<float> expected = value != 0 ? std::vector<float>{2, 4} : std::vector<float>{-1, -2};
    const onnx::Network known = loaded(model, {.known = {{"c", truth(value)}}});
    CHECK(known.input_names() == std::vector<std::string>{"x"});
    CHECK(values_of(run(known, {{"x", x}}).at("y")) == expected);
    CHECK(values_of(run(loaded(model), {{"x", x}, {"c", truth(value)}}).at("y")) == expected);
  }
}

TEST_CASE("inputs that decide shapes are given as known values", "[onnx]") {
  onnx::Model model = empty_model();
  model.graph.initializers = {integer_proto("one", {1}, {1})};
  model.graph.nodes = {node("Add", {"n", "one"}, {"m"}), node("Reshape", {"x", "m"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f32, {2, 2}), declared("n", ElementType::i64, {1})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1})};
  const onnx::Network open = loaded(model);
  CHECK(open.shape_inputs() == std::vector<std::string>{"n"});
  const std::string error = trace_error(open, {{"x", {DType::f32, {2, 2}}}, {"n", {DType::i32, {1}}}});
  CHECK(contains(error, "node 'y' (Reshape)"));
  CHECK(contains(error, "known value"));
  const onnx::Network net =
      loaded(model, {.known = {{"n", Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{3})}}});
  CHECK(net.shape_inputs().empty());
  CHECK(run(net, {{"x", floats({2, 2}, {1, 2, 3, 4})}}).at("y").shape() == Shape{4});
  CHECK_THROWS_AS(loaded(model, {.known = {{"absent", floats({1}, {1})}}}), ArgumentError);
  CHECK_THROWS_AS(loaded(model, {.known = {{"n", floats({1}, {1})}}}), ArgumentError);
}

TEST_CASE("local functions of an ONNX file are expanded with their attributes", "[onnx]") {
  onnx::Model model = empty_model();
  model.opsets.push_back({"own", 1});
  onnx::FunctionDef function{"Scaled", "own"};
  function.inputs = {"a"};
  function.outputs = {"c"};
  function.attributes = {"slope"};
  function.nodes = {
      node("LeakyRelu", {"a"}, {"b"}, {{.name = "alpha", .type = onnx::AttributeType::f, .reference = "slope"}}),
      node("Neg", {"b"}, {"c"})};
  function.opsets = {{"", 17}};
  model.functions = {function};
  onnx::NodeDef call = node("Scaled", {"x"}, {"y"}, {attribute("slope", 0.25F)});
  call.domain = "own";
  model.graph.nodes = {call};
  model.graph.inputs = {declared("x", ElementType::f32, {2})};
  model.graph.outputs = {declared("y", ElementType::f32, {2})};
  CHECK(values_of(run(loaded(model), {{"x", floats({2}, {-4, 4})}}).at("y")) == std::vector<float>{1, -4});
  model.functions[0].nodes = {call};
  CHECK(contains(message_of<NotSupported>([&] { (void)loaded(model); }), "the function calls itself"));
}

TEST_CASE("everything that an ONNX file asks for in vain is listed at once", "[onnx]") {
  onnx::Model model = empty_model();
  model.graph.nodes = {
      node("Loop", {"x"}, {"a"}),       node("Relu", {"x"}, {"b"}),        node("SplitToSequence", {"x"}, {"c"}),
      node("Frobnicate", {"x"}, {"d"}), node("QLinearConv", {"x"}, {"e"}), node("TopK", {"x", "k"}, {"v"})};
  model.graph.inputs = {declared("x", ElementType::f32, {2}), declared("s", ElementType::string, {2})};
  const std::string error = message_of<NotSupported>([&] { (void)loaded(model); });
  for (const char* const part : {"net.onnx", "Loop 'a': loops", "SplitToSequence 'c': sequences", "Frobnicate 'd'",
                                 "QLinearConv 'e': quantised", "TopK 'v': it has 1 of the two outputs", "input 's'"}) {
    CHECK(contains(error, part));
  }
  CHECK_FALSE(contains(error, "Relu"));
  CHECK(contains(message_of<NotSupported>([] { (void)loaded(empty_model(99)); }), "operator set 99"));
  onnx::Model nameless = empty_model();
  nameless.opsets.clear();
  CHECK(contains(message_of<FormatError>([&] { (void)loaded(nameless); }), "byte 0: it names no operator set"));
}

TEST_CASE("an error of an ONNX network names the file, the node and its operator", "[onnx]") {
  onnx::Model model = empty_model();
  model.graph.initializers = {float_proto("w", {3, 2}, {1, 2, 3, 4, 5, 6})};
  model.graph.nodes = {node("MatMul", {"x", "w"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f32, {-1, -1})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1, 2})};
  const onnx::Network net = loaded(model);
  const std::string error = trace_error(net, {{"x", {DType::f32, {1, 4}}}});
  CHECK(contains(error, "net.onnx: node 'y' (MatMul): "));
  CHECK(contains(trace_error(net, {{"x", {DType::i32, {1, 3}}}}), "the input 'x' is float"));
  CHECK(contains(trace_error(net, {{"x", {DType::f32, {3}}}}), "the input 'x' is declared as float [?, ?]"));
  model.graph.nodes = {node("MatMul", {"x", "absent"}, {"y"})};
  CHECK(contains(trace_error(loaded(model), {{"x", {DType::f32, {1, 3}}}}),
                 "no node before it computes its input 'absent'"));
}

TEST_CASE("numbers of the host that do not fit each other are refused", "[onnx]") {
  onnx::Model model = empty_model();
  model.graph.initializers = {integer_proto("whole", {1}, {1}), float_proto("fraction", {1}, {0.5F})};
  model.graph.nodes = {node("Concat", {"whole", "fraction"}, {"mixed"}, {attribute("axis", std::int64_t{0})}),
                       node("Add", {"x", "mixed"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f32, {2})};
  model.graph.outputs = {declared("y", ElementType::f32, {2})};
  CHECK(contains(trace_error(loaded(model), {{"x", {DType::f32, {2}}}}), "operands of types"));
}

TEST_CASE("int64 constants beyond int32 vanish in shapes or are refused", "[onnx]") {
  onnx::Model model = empty_model();
  constexpr std::int64_t kMost = INT64_MAX;
  model.graph.initializers = {integer_proto("start", {1}, {1}), integer_proto("end", {1}, {kMost})};
  model.graph.nodes = {node("Slice", {"x", "start", "end"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f32, {3})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1})};
  CHECK(values_of(run(loaded(model), {{"x", floats({3}, {1, 2, 3})}}).at("y")) == std::vector<float>{2, 3});

  model.graph.initializers = {integer_proto("large", {2}, {kMost, 1})};
  model.graph.nodes = {node("Add", {"i", "large"}, {"y"})};
  model.graph.inputs = {declared("i", ElementType::i64, {2})};
  model.graph.outputs = {declared("y", ElementType::i64, {2})};
  CHECK(contains(trace_error(loaded(model), {{"i", {DType::i32, {2}}}}), "outside the range of i32"));
}

TEST_CASE("a constant tensor of an ONNX file is shared between graphs, and no checkpoint has it", "[onnx]") {
  onnx::Model model = empty_model();
  model.graph.initializers = {integer_proto("table", {3}, {5, 7, 11})};
  model.graph.nodes = {node("Add", {"i", "table"}, {"y"})};
  model.graph.inputs = {declared("i", ElementType::i64, {3})};
  model.graph.outputs = {declared("y", ElementType::i64, {3})};
  onnx::Network first = loaded(model), second = loaded(model);
  Graph graph;
  const Value i = graph.input("i", {DType::i32, {3}});
  (void)first(Values{{"i", i}});
  (void)second(Values{{"i", i}});
  REQUIRE(graph.variables().size() == 1);
  CHECK(graph.variables()[0]->role == VariableRole::transient);
  const Tensor y = run(first, {{"i", Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{1, 1, 1})}}).at("y");
  CHECK(std::ranges::equal(y.values<std::int32_t>(), std::vector<std::int32_t>{6, 8, 12}));
}

TEST_CASE("half and double weights of an ONNX file are read as f32", "[onnx]") {
  onnx::Model model = empty_model();
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x0001, 0x7bff};  // 1, -2, 2^-24, 65504
  model.graph.initializers = {{"w", {4}, ElementType::f16, onnx::bytes_of(std::as_bytes(std::span(halves))), {}}};
  model.graph.nodes = {node("Mul", {"x", "w"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f16, {4})};
  model.graph.outputs = {declared("y", ElementType::f16, {4})};
  const onnx::Network net = loaded(model);
  CHECK(net.outputs()[0].type == ElementType::f16);
  CHECK(values_of(run(net, {{"x", floats({4}, {1, 1, 1, 1})}}).at("y")) == std::vector<float>{1, -2, 0x1p-24F, 65504});
}

TEST_CASE("long chains of numbers that follow from a parameter are traced", "[onnx]") {
  constexpr int kNodes = 20'000;
  onnx::Model model = empty_model();
  model.graph.initializers = {float_proto("w", {1}, {0.5F})};
  std::string last = "w";
  for (int i = 0; i < kNodes; ++i) {
    const std::string next = "t" + std::to_string(i);
    model.graph.nodes.push_back(node("Neg", {last}, {next}));
    last = next;
  }
  model.graph.nodes.push_back(node("Add", {"x", last}, {"y"}));
  model.graph.inputs = {declared("x", ElementType::f32, {1})};
  model.graph.outputs = {declared("y", ElementType::f32, {1})};
  onnx::Network network = loaded(model);
  Graph graph;
  CHECK(network(graph.input("x", {DType::f32, {1}})).shape() == Shape{1});
  CHECK(graph.find("w"));
}

TEST_CASE("a node that passes a parameter on passes its gradient on", "[onnx]") {
  onnx::Model model = empty_model();
  model.graph.initializers = {float_proto("w", {1}, {0.5F})};
  model.graph.nodes = {node("ReduceSum", {"w"}, {"s"}, {attribute("noop_with_empty_axes", std::int64_t{1})}),
                       node("Mul", {"x", "s"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f32, {1})};
  model.graph.outputs = {declared("y", ElementType::f32, {1})};
  CHECK(values_of(run(loaded(model), {{"x", floats({1}, {4})}}).at("y")) == std::vector<float>{2});
}
