// Local functions and branches of ONNX files: how deep they may be, and what they do with parameters.
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
