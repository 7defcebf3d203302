// group_sums(): which sums become one launch, and where it stands.
#include <algorithm>

#include "compile/layout_test.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/sum_group.hpp"

namespace concord::test {
namespace {

Lowered grouped_sums(const Graph& graph, std::span<const Value> outputs, FakeDevice& device) {
  device.groups_sums = true;
  Lowered program = laid_out(graph, outputs, device);
  find_invariants(program);
  group_sums(program, device, Precision::fp32);
  CHECK(in_order(program));
  check_layouts(program);
  return program;
}

}  // namespace

TEST_CASE("sums that nothing waits for are one launch where the last of them stood", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w");
  const Value a = named(sum(x, {0}, true), "a"), y = matmul(x, w), b = named(sum(y, {0}, true), "b"), z = relu(y);
  const Value c = named(sum(z, {1}, true), "c");
  FakeDevice device;
  const Lowered program = grouped_sums(graph, std::vector{a, b, c}, device);
  CHECK(operators_of(program) == Names{"matmul", "relu", "reduce_sum of 3"});
  CHECK(device.sum_groups == std::vector<std::size_t>{3});
  const LoweredNode& node = program.nodes.back();
  CHECK(names_of(program, node.outputs) == Names{"a", "b", "c"});
  REQUIRE(node.op);
  CHECK(node.op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
}

TEST_CASE("a sum that something reads takes no later sums along", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w");
  const Value a = sum(x, {0}, true), b = sum(x, {1}, true);
  const Value y = named(matmul(x + a, w), "y");
  const Value c = sum(y, {0}, true), d = sum(y, {1}, true);
  FakeDevice device;
  const Lowered program = grouped_sums(graph, std::vector{a, b, c, d}, device);
  CHECK(operators_of(program) == Names{"reduce_sum of 2", "add", "matmul", "reduce_sum of 2"});
}

TEST_CASE("views of a sum stand behind the group", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  FakeDevice device;
  const Lowered program = grouped_sums(graph, std::vector{named(sum(x, {0}), "a"), named(sum(x, {1}), "b")}, device);
  CHECK(operators_of(program) == Names{"reduce_sum of 2", "reshape", "reshape"});
}

TEST_CASE("little memory waits for the last of the sums", "[compile]") {
  Graph graph;
  const Value large = graph.input("large", {DType::f32, {400, 400}}),
              w = variable(graph, "w", {DType::f32, {400, 400}});
  std::vector<Value> sums;
  Value y = large;
  for (int i = 0; i < 4; ++i) {
    y = matmul(y, w);
    sums.push_back(sum(y, {0}, true));
  }
  FakeDevice device;
  const Lowered program = grouped_sums(graph, sums, device);
  CHECK(device.sum_groups == std::vector<std::size_t>{2, 2});
  CHECK(program.nodes.size() == 6);
}

}  // namespace concord::test
