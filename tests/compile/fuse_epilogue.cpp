// fuse(): which pointwise operators go into the epilogue of the operator before them, and which stay.
#include <algorithm>
#include <cmath>

#include "compile/fuse_test.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {

TEST_CASE("pointwise operators go into the epilogue of the operator before, where the device says so", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 6}});
  const Value w = variable(graph, "w", {DType::f32, {6, 3}});
  const Value bias = variable(graph, "bias", {DType::f32, {3}});
  const Value y = named(relu(bias - matmul(x, w)), "y");

  FakeDevice device;
  CHECK(operators_of(fused(graph, std::vector{y}, device)) == Names{"matmul", "subtract+relu"});
  REQUIRE(device.questions.size() == 1);

  device.takes_epilogue = takes_everything;
  const Lowered program = fused(graph, std::vector{y}, device);
  REQUIRE(operators_of(program) == Names{"matmul+subtract+relu"});
  const LoweredNode& node = program.nodes[0];
  CHECK(node.name == "y");
  CHECK(names_of(program, node.inputs) == Names{"x", "w", "bias"});
  const ops::Fused& op = fused_of(node);
  CHECK(op.base_inputs() == 2);
  CHECK(op.base()->name() == "matmul");
  CHECK(op.epilogue().evaluate(0, std::vector{2.0F, 5.0F}) == 3);  // input 0 is the product
  CHECK(op.infer(program.specs(node.inputs)) == program.specs(node.outputs));

  REQUIRE(device.questions.size() == 2);
  const FakeDevice::EpilogueQuestion& question = device.questions[1];
  CHECK(question.op == "matmul");
  CHECK(question.inputs == std::vector<TensorSpec>{{DType::f32, {4, 6}}, {DType::f32, {6, 3}}});
  CHECK(question.output == TensorSpec{DType::f32, {4, 3}});
  CHECK(question.extra == std::vector<TensorSpec>{{DType::f32, {3}}});
  CHECK(question.epilogue.str() == op.epilogue().str());
}

TEST_CASE("the device decides for each operator and formula", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  const Value first = relu(matmul(x, w));
  const Value second = matmul(first, w) + x;
  FakeDevice device;
  device.takes_epilogue = [](const Operator&, const Expression& epilogue) { return epilogue.inputs() == 1; };
  CHECK(operators_of(fused(graph, std::vector{second}, device)) == Names{"matmul+relu", "matmul", "add"});
  device.takes_epilogue = [](const Operator& op, const Expression&) { return op.name() == "reduce_sum"; };
  const Value total = relu(sum(x, {1}, true));
  CHECK(operators_of(fused(graph, std::vector{second, total}, device)) ==
        Names{"matmul", "relu", "matmul", "add", "reduce_sum+relu"});
}

TEST_CASE("a formula goes in front of the reshape of a single number where it is an epilogue then", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 6}});
  const Value other = graph.input("other", {DType::f32, {}}), deep = graph.input("deep", {DType::f32, {1, 1, 1}});
  const Value loss = named(mean(x), "loss");
  CHECK(operators_of(fused(graph, std::vector{loss})) == Names{"reduce_sum", "reshape", "divide"});

  FakeDevice device;
  device.takes_epilogue = [](const Operator& op, const Expression&) { return op.name() == "reduce_sum"; };
  const Lowered program = fused(graph, std::vector{loss}, device);
  REQUIRE(operators_of(program) == Names{"reduce_sum+divide", "reshape"});
  CHECK(program.value(program.nodes[0].outputs[0]).spec.shape == Shape{1, 1});
  CHECK(program.value(program.nodes[1].outputs[0]).spec.shape == Shape{});
  CHECK(program.root(program.nodes[1].outputs[0]) == program.nodes[0].outputs[0]);
  CHECK(program.nodes[1].name == "loss");
  CHECK(program.value(program.nodes[0].outputs[0]).name == program.value(program.nodes[1].outputs[0]).name);
  CHECK(program.value(program.nodes[1].outputs[0]).keep);

  // With another operand; not where that has more dimensions, where the reshaped number is needed itself, or where
  // there are several numbers.
  CHECK(operators_of(fused(graph, std::vector{sum(x) * other}, device)) == Names{"reduce_sum+multiply", "reshape"});
  CHECK(operators_of(fused(graph, std::vector{sum(x) * deep}, device)) == Names{"reduce_sum", "reshape", "multiply"});
  const Value total = sum(x);
  CHECK(operators_of(fused(graph, std::vector{total, total * other}, device)) ==
        Names{"reduce_sum", "reshape", "multiply"});
  CHECK(operators_of(fused(graph, std::vector{mean(x, {1})}, device)) == Names{"reduce_sum", "reshape", "divide"});
}

TEST_CASE("a sum of two products takes one of them, the other stays an operand", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  const Value y = named(matmul(x, w) - matmul(w, x) * 3.0F, "y");
  FakeDevice device;
  device.takes_epilogue = takes_everything;
  const Lowered program = fused(graph, std::vector{y}, device);
  CHECK(operators_of(program) == Names{"matmul", "matmul+multiply+subtract"});
  CHECK(evaluate(program, {{"x", 2}, {"w", 5}}).at("y") == 10 - 30);

  device.takes_epilogue = [asked = 0](const Operator&, const Expression&) mutable { return ++asked == 2; };
  const Lowered other = fused(graph, std::vector{y}, device);  // the first product was declined
  CHECK(operators_of(other) == Names{"matmul", "matmul+multiply+subtract"});
  CHECK(evaluate(other, {{"x", 2}, {"w", 5}}).at("y") == 10 - 30);
}

TEST_CASE("a product that is kept, assigned, read by two or widened keeps its kernel", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  const Value product = matmul(x, w);
  const Value y = relu(product);
  FakeDevice device;
  device.takes_epilogue = takes_everything;
  CHECK(operators_of(fused(graph, std::vector{y}, device)) == Names{"matmul+relu"});
  CHECK(operators_of(fused(graph, std::vector{y, product}, device)) == Names{"matmul", "relu"});
  const Value total = sum(product, {}, true);
  CHECK(operators_of(fused(graph, std::vector{y, total}, device)) == Names{"matmul", "relu", "reduce_sum"});
  graph.assign(w, product);
  CHECK(operators_of(fused(graph, std::vector{y}, device)) == Names{"matmul", "relu"});

  Graph wide;
  const Value row = matmul(wide.input("a", {DType::f32, {1, 4}}), wide.input("b", kMatrix));
  CHECK(operators_of(fused(wide, std::vector{row + wide.input("c", kMatrix)}, device)) == Names{"matmul", "add"});
}

TEST_CASE("coordinates and reshapes have no part in epilogues", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  FakeDevice device;
  device.takes_epilogue = takes_everything;
  const Value product = matmul(x, x);
  const Value masked = pointwise("mask", {product}, scalar::input(0) * scalar::coordinate(0));
  CHECK(operators_of(fused(graph, std::vector{masked}, device)) == Names{"matmul", "mask"});
  const Value flat = relu(reshape(sum(x, {1}, true), {2, 2}));
  CHECK(operators_of(fused(graph, std::vector{flat}, device)) == Names{"reduce_sum", "reshape", "relu"});
  CHECK(device.questions.empty());
}

TEST_CASE("the first of several results takes an epilogue, and the others keep their readers", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value ones = variable(graph, "ones", {DType::f32, {4}});
  const BatchNormResult norm = batch_norm(x, ones, ones);
  const Value mean = named(norm.mean * 2.0F, "mean");  // before the epilogue in the graph
  const Value y = named(relu(norm.dst + x), "y");
  const Value z = named(matmul(y, x) - norm.variance, "z");
  FakeDevice device;
  device.takes_epilogue = [](const Operator& op, const Expression&) { return op.name() == "batch_norm"; };
  const std::vector<Value> outputs{mean, y, z};
  const Lowered plain = lower(graph, outputs, false), program = fused(graph, outputs, device);
  CHECK(operators_of(program) == Names{"batch_norm+add+relu", "multiply", "matmul", "subtract"});
  CHECK(names_of(program, program.nodes[0].inputs) == Names{"x", "ones", "ones", "x"});
  REQUIRE(program.nodes[0].outputs.size() == 3);
  CHECK(names_of(program, program.nodes[0].outputs)[0] == "y");
  CHECK(fused_of(program.nodes[0]).infer(program.specs(program.nodes[0].inputs)) ==
        program.specs(program.nodes[0].outputs));
  for (const char* name : {"mean", "y", "z"}) {
    const std::map<std::string, float> given{{"x", 3}, {"ones", 1}};
    CHECK(evaluate(program, given).at(name) == evaluate(plain, given).at(name));
  }
  // Only the first result, and not the other way round.
  CHECK(operators_of(fused(graph, std::vector{named(relu(norm.variance), "v")}, device)) ==
        Names{"batch_norm", "relu"});
}

TEST_CASE("an epilogue with operands made after an operator of several results goes to a later one", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value ones = variable(graph, "ones", {DType::f32, {4}});
  FakeDevice device;
  device.takes_epilogue = [](const Operator& op, const Expression&) { return op.name() == "batch_norm"; };
  const Value first = batch_norm(x, ones, ones).dst;
  const Value sum_of_two = first + batch_norm(matmul(x, x), ones, ones).dst;
  const Lowered program = fused(graph, std::vector{relu(sum_of_two)}, device);
  CHECK(operators_of(program) == Names{"batch_norm", "matmul", "batch_norm+add+relu"});

  const BatchNormResult norm = batch_norm(x, ones, ones);
  const Value of_itself = relu(norm.dst * norm.mean);
  CHECK(operators_of(fused(graph, std::vector{of_itself}, device)) == Names{"batch_norm", "multiply+relu"});
  const Value late = relu(norm.dst + tanh(matmul(x, x)));
  CHECK(operators_of(fused(graph, std::vector{late}, device)) == Names{"batch_norm", "matmul", "tanh+add+relu"});
}

// Graphs of a few dozen random operators, outputs and assignments: what is read afterwards is what it was.

}  // namespace concord::test
