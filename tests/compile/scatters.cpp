// join_scatters(): sums of rows by index that add to what is there.
#include "compile/fuse_test.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {

TEST_CASE("the gradient of a table that a product reads too is one tensor from the first", "[compile]") {
  Graph graph;
  const Value table = variable(graph, "table", {DType::f32, {9, 4}});
  const Value rows = gather(table, graph.input("indices", {DType::i32, {6}}));
  const Value loss = sum(exp(matmul(rows, table, false, true)));
  const std::vector slope{named(gradient(loss, std::vector{table})[0], "slope")};
  FakeDevice device;
  CHECK(operators_of(fused(graph, slope, device)).back() == "add");
  device.joins_operators = true;
  const Lowered program = fused(graph, slope, device);
  const LoweredNode& node = program.nodes.back();
  REQUIRE(node.op->name() == "scatter_add");
  CHECK(node.inputs.size() == 3);
  CHECK(names_of(program, node.outputs) == Names{"slope"});
  CHECK(node.op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
  CHECK(Lowered::in_place(node, ops::ScatterAdd::kBase, 0));
  CHECK_FALSE(Lowered::in_place(node, 0, 0));
}

TEST_CASE("sums of rows by index stay apart from other formulas", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {6, 4}}), y = graph.input("y", {DType::f32, {9, 4}});
  const Value sums = scatter_add(x, graph.input("indices", {DType::i32, {6}}), 9);
  FakeDevice device;
  device.joins_operators = true;
  const auto last = [&](Value result) {
    return operators_of(fused(graph, std::vector{named(result, "z")}, device)).back();
  };
  CHECK(last(sums + y) == "scatter_add");
  CHECK(last(y + sums) == "scatter_add");
  CHECK(last(sums - y) == "subtract");
  CHECK(last(sums + sums) == "add");
  CHECK(last(sums + sum(y, {0}, true)) == "add");   // of another shape
  CHECK(last((sums + y) * sums) != "scatter_add");  // read twice
  const std::vector kept{named(sums, "sums"), named(sums + y, "z")};
  CHECK(operators_of(fused(graph, kept, device)) == Names{"scatter_add", "add"});
}

TEST_CASE("of two sums of rows by index that are added one adds to the other", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {6, 4}}), indices = graph.input("indices", {DType::i32, {6}});
  FakeDevice device;
  device.joins_operators = true;
  const std::vector z{named(scatter_add(x, indices, 9) + scatter_add(x * 2.0F, indices, 9), "z")};
  const Lowered program = fused(graph, z, device);
  CHECK(operators_of(program) == Names{"multiply", "scatter_add", "scatter_add"});
  CHECK(program.nodes.back().inputs.size() == 3);
}

}  // namespace concord::test
