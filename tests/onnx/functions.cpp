// Local functions and branches of ONNX files: how deep they may be, and what they do with parameters.
#include <algorithm>
#include <set>

#include "onnx/model_builder.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

namespace {

onnx::Network loaded(const onnx::Model& model) {
  const ModelFile file(model);
  return onnx::load(file.path());
}

onnx::NodeDef call(const std::string& function, const std::string& from, const std::string& to) {
  onnx::NodeDef made = node(function, {from}, {to});
  made.domain = "own";
  return made;
}

// a → c = op(a, k), where k is a Constant.
onnx::FunctionDef function_with_constant(const std::string& name, const std::string& op, std::vector<float> k) {
  onnx::FunctionDef function{name, "own"};
  function.inputs = {"a"};
  function.outputs = {"c"};
  function.opsets = {{"", 17}};
  const auto width = static_cast<std::int64_t>(k.size());
  function.nodes = {node("Constant", {}, {"k"}, {attribute("value", float_proto("", {width}, k))}),
                    node(op, {"a", "k"}, {"c"})};
  return function;
}

// x (N, 2) → y (N, 2)
onnx::Model model_with(std::vector<onnx::FunctionDef> functions, std::vector<onnx::NodeDef> nodes) {
  onnx::Model model = empty_model();
  model.opsets.push_back({"own", 1});
  model.functions = std::move(functions);
  model.graph.nodes = std::move(nodes);
  model.graph.inputs = {declared("x", ElementType::f32, {-1, 2})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1, 2})};
  return model;
}

// y = x·(2, 3) - x·(5, 7)
onnx::Model two_functions() {
  return model_with({function_with_constant("Left", "Mul", {2, 3}), function_with_constant("Right", "Mul", {5, 7})},
                    {call("Left", "x", "l"), call("Right", "x", "r"), node("Sub", {"l", "r"}, {"y"})});
}

Tensor ones(std::int64_t rows) {
  return Tensor::of<float>(Shape{rows, 2}, std::vector<float>(static_cast<std::size_t>(2 * rows), 1));
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

std::vector<std::string> parameters_of(onnx::Network network) {
  Graph graph;
  (void)network(graph.input("x", {DType::f32, {1, 2}}));
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) names.push_back(variable->name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("functions that call each other deeply, or have too many nodes in all, are refused", "[onnx]") {
  // f0 calls f1 `calls` times, which calls f2 as often, and so on.
  const auto nested = [](int depth, int calls) {
    onnx::Model model = empty_model();
    model.opsets.push_back({"own", 1});
    const auto call = [&](int function, const std::string& from, const std::string& to) {
      onnx::NodeDef made = node(function < depth ? "f" + std::to_string(function) : "Relu", {from}, {to});
      if (function < depth) made.domain = "own";
      return made;
    };
    for (int i = 0; i < depth; ++i) {
      onnx::FunctionDef function{"f" + std::to_string(i), "own"};
      function.inputs = {"0"};
      function.outputs = {std::to_string(calls)};
      function.opsets = {{"", 17}, {"own", 1}};
      for (int k = 0; k < calls; ++k) function.nodes.push_back(call(i + 1, std::to_string(k), std::to_string(k + 1)));
      model.functions.push_back(function);
    }
    model.graph.nodes = {call(0, "x", "y")};
    model.graph.inputs = {declared("x", ElementType::f32, {1})};
    model.graph.outputs = {declared("y", ElementType::f32, {1})};
    return model;
  };
  CHECK(loaded(nested(20, 1)).input_names() == std::vector<std::string>{"x"});
  CHECK(contains(message_of<NotSupported>([&] { (void)loaded(nested(10'000, 1)); }), "more than 32 functions"));
  onnx::Network network = loaded(nested(30, 2));
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1}});
  CHECK(contains(message_of<NotSupported>([&] { (void)network(x); }), "have more than"));
}

TEST_CASE("running statistics within functions and branches do not train", "[onnx]") {
  const std::vector<std::string> operands{"a", "s", "b", "m", "v"};
  onnx::Model model = empty_model();
  model.opsets.push_back({"own", 1});
  onnx::FunctionDef function{"Norm", "own"};
  function.inputs = operands;
  function.outputs = {"c"};
  function.nodes = {node("BatchNormalization", operands, {"c"})};
  function.opsets = {{"", 17}};
  model.functions = {function};
  onnx::NodeDef call = node("Norm", {"x", "scale", "shift", "mean", "var"}, {"h"});
  call.domain = "own";
  onnx::GraphDef branch;
  branch.initializers = {float_proto("inner_mean", {2}, {0, 0}), float_proto("inner_var", {2}, {1, 1})};
  branch.nodes = {node("BatchNormalization", {"h", "scale", "shift", "inner_mean", "inner_var"}, {"n"})};
  branch.outputs = {declared("n", ElementType::f32, {-1, 2})};
  model.graph.initializers = {float_proto("scale", {2}, {1, 1}), float_proto("shift", {2}, {0, 0}),
                              float_proto("mean", {2}, {0, 0}), float_proto("var", {2}, {1, 1}),
                              integer_proto("yes", {}, {1})};
  model.graph.nodes = {
      call, node("If", {"yes"}, {"y"}, {attribute("then_branch", branch), attribute("else_branch", branch)})};
  model.graph.inputs = {declared("x", ElementType::f32, {-1, 2})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1, 2})};
  onnx::Network network = loaded(model);
  Graph graph;
  (void)network(graph.input("x", {DType::f32, {4, 2}}));
  std::set<std::string> trainable, fixed;
  for (const VariablePtr& variable : graph.variables())
    (variable->trainable ? trainable : fixed).insert(variable->name);
  CHECK(trainable == std::set<std::string>{"scale", "shift"});
  CHECK(fixed == std::set<std::string>{"inner_mean", "inner_var", "mean", "var"});
  CHECK(graph.assignments().size() == 4);
}

TEST_CASE("constants within functions are the same parameters in every trace", "[onnx]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    onnx::Network network = loaded(two_functions());
    Session session(network, device);
    for (const std::int64_t rows : {1, 3, 2}) {
      std::vector<float> expected;
      for (std::int64_t i = 0; i < rows; ++i) expected.insert(expected.end(), {-3, -4});
      CHECK(values_of(session.run({{"x", ones(rows)}}).at("y")) == expected);
    }

    // (y₁² + y₂²)/2 has the gradients (-3, -4) and (3, 4).
    Graph training;
    const Value loss = mean(square(network(training.input("x", {DType::f32, {1, 2}}))));
    optim::minimize(loss, optim::Sgd{.lr = 0.5});
    const auto variables = std::make_shared<Variables>(device, 1);
    Program step = compile(training, loss, variables);
    step.write("x", ones(1));
    step.run();
    Graph evaluation;
    evaluation.set_training(false);
    const Value y = network(evaluation.input("x", {DType::f32, {1, 2}}));
    Program evaluated = compile(evaluation, y, variables);
    evaluated.write("x", ones(1));
    evaluated.run();
    CHECK(values_of(variables->read("l.k")) == std::vector<float>{3.5F, 5});
    CHECK(values_of(variables->read("r.k")) == std::vector<float>{3.5F, 5});
    CHECK(values_of(evaluated.read(y)) == std::vector<float>{0, 0});
  }
}

TEST_CASE("parameters of an ONNX file that want the same name get different ones", "[onnx]") {
  // Two calls by nodes of one name.
  onnx::Model calls = two_functions();
  for (onnx::NodeDef& one : calls.graph.nodes) one.name = "n";
  onnx::Network network = loaded(calls);
  CHECK(parameters_of(network) == std::vector<std::string>{"n.k", "n.k_1"});
  CHECK(values_of(Session(network, devices().front()).run({{"x", ones(1)}}).at("y")) == std::vector<float>{-3, -4});

  // An initialiser keeps its name, wherever a function wants it too.
  onnx::Model initializer = model_with({function_with_constant("Left", "Mul", {2, 3})},
                                       {call("Left", "x", "n"), node("Add", {"n", "n.k"}, {"y"})});
  initializer.graph.initializers = {float_proto("n.k", {2}, {10, 20})};
  network = loaded(initializer);
  CHECK(parameters_of(network) == std::vector<std::string>{"n.k", "n.k_1"});
  CHECK(values_of(Session(network, devices().front()).run({{"x", ones(1)}}).at("y")) == std::vector<float>{12, 23});
}

TEST_CASE("branches of an ONNX file may have parameters of one name", "[onnx]") {
  const auto branch = [](const std::string& op, bool is_constant) {
    onnx::GraphDef graph;
    const onnx::TensorProto weight = float_proto("w", {2}, {2, 3});
    if (is_constant) {
      graph.nodes = {node("Constant", {}, {"w"}, {attribute("value", weight)})};
    } else {
      graph.initializers = {weight};
    }
    graph.nodes.push_back(node(op, {"x", "w"}, {"b"}));
    graph.outputs = {declared("b", ElementType::f32, {-1, 2})};
    return graph;
  };
  for (const bool is_constant : {false, true}) {
    onnx::Model model = model_with({}, {node("ReduceSum", {"x"}, {"sum"}, {attribute("keepdims", std::int64_t{0})}),
                                        node("Less", {"sum", "zero"}, {"c"}),
                                        node("If", {"c"}, {"y"},
                                             {attribute("then_branch", branch("Add", is_constant)),
                                              attribute("else_branch", branch("Mul", !is_constant))})});
    model.graph.initializers = {float_proto("zero", {}, {0})};
    const onnx::Network network = loaded(model);
    CHECK(parameters_of(network) == std::vector<std::string>{"w", "w_1"});
    Session session(network, devices().front());
    CHECK(values_of(session.run({{"x", ones(1)}}).at("y")) == std::vector<float>{2, 3});
    const Tensor less = Tensor::of<float>(Shape{1, 2}, {-1, -1});
    CHECK(values_of(session.run({{"x", less}}).at("y")) == std::vector<float>{1, 2});
  }
}

TEST_CASE("the name of a parameter does not depend on the branch that is taken first", "[onnx]") {
  const auto branch = [](const std::string& op, float number) {
    onnx::GraphDef graph;
    graph.initializers = {float_proto("w", {2}, {number, number})};
    graph.nodes = {node(op, {"x", "w"}, {"b"})};
    graph.outputs = {declared("b", ElementType::f32, {-1, 2})};
    return graph;
  };
  // By the rows of x, which are known while it is traced.
  onnx::Model model =
      model_with({}, {node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "first"}, {"rows"}),
                      node("Equal", {"rows", "one"}, {"c"}),
                      node("If", {"c"}, {"y"},
                           {attribute("then_branch", branch("Add", 2)), attribute("else_branch", branch("Mul", 3))})});
  model.graph.initializers = {integer_proto("first", {}, {0}), integer_proto("one", {}, {1})};
  onnx::Network network = loaded(model);
  Graph graph;
  (void)network(graph.input("x", {DType::f32, {3, 2}}));
  REQUIRE(graph.variables().size() == 1);
  CHECK(graph.variables()[0]->name == "w_1");
  CHECK(parameters_of(network) == std::vector<std::string>{"w"});
}
