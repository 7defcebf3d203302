// fuse(): which pointwise operators go into the prologue of the operator behind them, and which stay.
#include "compile/fuse_test.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/prologued.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
TEST_CASE("a pointwise operator goes into the prologue of the operator behind, where the device says so", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 6}});
  const Value w = variable(graph, "w", {DType::f32, {6, 3}});
  const Value scale = variable(graph, "scale", {DType::f32, {6}});
  const Value y = named(matmul(scale - x * 2.0F, w), "y");
  CHECK(operators_of(fused(graph, std::vector{y})) == Names{"multiply+subtract", "matmul"});

  FakeDevice device;
  device.takes_prologue = takes_everything;
  const Lowered program = fused(graph, std::vector{y}, device);
  REQUIRE(operators_of(program) == Names{"multiply+subtract+matmul"});
  const LoweredNode& node = program.nodes[0];
  CHECK(node.name == "y");
  CHECK(names_of(program, node.inputs) == Names{"x", "w", "scale"});  // x has the shape of the result
  const auto* op = dynamic_cast<const ops::Prologued*>(node.op.get());
  REQUIRE(op != nullptr);
  CHECK(op->base_inputs() == 2);
  CHECK(op->base()->name() == "matmul");
  CHECK(op->prologue().evaluate(0, std::vector{2.0F, 5.0F}) == 1);
  CHECK(op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
  CHECK(evaluate(program, {{"x", 2}, {"w", 3}, {"scale", 5}}).at("y") == 3);
}

TEST_CASE("an operator has a prologue and an epilogue, and products keep formulas as their epilogue", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  FakeDevice device;
  device.takes_prologue = takes_everything;
  device.takes_epilogue = takes_everything;
  const Value y = named(relu(matmul(x * w, w) - x), "y");
  const Lowered program = fused(graph, std::vector{y}, device);
  CHECK(operators_of(program) == Names{"multiply+matmul+subtract+relu"});
  CHECK(names_of(program, program.nodes[0].inputs) == Names{"x", "w", "x", "w"});
  CHECK(evaluate(program, {{"x", 2}, {"w", 3}}).at("y") == 2 * 3 * 3 - 2);
  device.takes_epilogue = [](const Operator& op, const Expression&) { return op.name() == "matmul"; };
  CHECK(operators_of(fused(graph, std::vector{sum(relu(matmul(x, w)), {0}, true)}, device)) ==
        Names{"matmul+relu", "reduce_sum"});
}

TEST_CASE("a formula that is kept, assigned, read by two or as another operand has no part in prologues", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  FakeDevice device;
  device.takes_prologue = takes_everything;
  const Value product = x * w;
  const Value y = sum(product, {0}, true);
  CHECK(operators_of(fused(graph, std::vector{y}, device)) == Names{"multiply+reduce_sum"});
  CHECK(operators_of(fused(graph, std::vector{y, product}, device)) == Names{"multiply", "reduce_sum"});
  CHECK(operators_of(fused(graph, std::vector{y, matmul(product, x)}, device)) ==
        Names{"multiply", "reduce_sum", "matmul"});
  CHECK(operators_of(fused(graph, std::vector{matmul(x, product)}, device)) == Names{"multiply", "matmul"});
  CHECK(operators_of(fused(graph, std::vector{matmul(product, product)}, device)) == Names{"multiply", "matmul"});
  graph.assign(w, product);
  CHECK(operators_of(fused(graph, std::vector{y}, device)) == Names{"multiply", "reduce_sum"});
}

TEST_CASE("formulas of coordinates, and those larger than their operands, have no part in prologues", "[compile]") {
  Graph graph;
  FakeDevice device;
  device.takes_prologue = takes_everything;
  const Value column = graph.input("column", {DType::f32, {4, 1}}), row = graph.input("row", {DType::f32, {1, 4}});
  CHECK(operators_of(fused(graph, std::vector{sum(column * row, {0}, true)}, device)) ==
        Names{"multiply", "reduce_sum"});
  const Value x = graph.input("x", kMatrix);
  const Value masked = pointwise("mask", {x}, scalar::input(0) * scalar::coordinate(0));
  CHECK(operators_of(fused(graph, std::vector{sum(masked, {0}, true)}, device)) == Names{"mask", "reduce_sum"});
  const Value flat = sum(reshape(relu(x), {16}), {0}, true);
  CHECK(operators_of(fused(graph, std::vector{flat}, device)) == Names{"relu", "reshape", "reduce_sum"});
}

}  // namespace concord::test
