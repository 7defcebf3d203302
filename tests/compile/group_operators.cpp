// group_operators(): which operators become one launch, and where it stands.
#include <algorithm>

#include "compile/layout_test.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/operator_group.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

Lowered grouped_sums(const Graph& graph, std::span<const Value> outputs, FakeDevice& device,
                     std::size_t most_apart = SIZE_MAX) {
  device.groups_operators = true;
  Lowered program = with_invariants(graph, outputs, device);
  group_operators(program, device, Precision::fp32, most_apart);
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
  CHECK(device.operator_groups == std::vector<std::size_t>{3});
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
  CHECK(device.operator_groups == std::vector<std::size_t>{2, 2});
  CHECK(program.nodes.size() == 6);
}

TEST_CASE("sums of two kinds are two launches, which do not wait for each other", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w");
  const Value a = named(sum(x, {0}, true), "a"), large = named(reduce_max(x, {0}, true), "large");
  const Value y = matmul(x, w), b = named(sum(y, {0}, true), "b"), z = named(matmul(y + large, w), "z");
  const Value larger = named(reduce_max(z, {0}, true), "larger"), c = named(sum(z, {0}, true), "c");
  FakeDevice device;
  const Lowered program = grouped_sums(graph, std::vector{a, large, b, larger, c}, device);
  CHECK(operators_of(program) == Names{"reduce_max", "matmul", "add", "matmul", "reduce_max", "reduce_sum of 3"});
  CHECK(device.operator_groups == std::vector<std::size_t>{3});
}

TEST_CASE("sums wait only for others that are near, where that is asked for", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w");
  std::vector<Value> sums;
  Value y = x;
  for (int i = 0; i < 4; ++i) {
    sums.push_back(sum(y, {0}, true));
    y = matmul(y, w);
  }
  FakeDevice device;
  const Lowered program = grouped_sums(graph, sums, device, 2);
  CHECK(operators_of(program) == Names{"matmul", "reduce_sum of 2", "matmul", "matmul", "reduce_sum of 2"});
}

TEST_CASE("a sum of several inputs counts each of them once", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), y = graph.input("y", kMatrix);
  FakeDevice device;
  device.takes_prologue = [](const Operator& op, const Expression&) { return op.name() == "reduce_sum"; };
  const Lowered program =
      grouped_sums(graph, std::vector{named(sum(x * y, {0}, true), "a"), named(sum(x, {0}, true), "b")}, device);
  REQUIRE(program.nodes.size() == 1);
  const LoweredNode& node = program.nodes.back();
  CHECK(names_of(program, node.inputs) == Names{"x", "y", "x"});
  CHECK(node.op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
}

TEST_CASE("a group has at most so many members, and none where a launch each is faster", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  std::vector<Value> sums;
  for (int i = 0; i < 5; ++i) sums.push_back(sum(x + static_cast<float>(i), {0}, true));
  FakeDevice device;
  device.group.most = 2;
  CHECK(operators_of(grouped_sums(graph, sums, device)).size() == 5 + 3);
  CHECK(device.operator_groups == std::vector<std::size_t>{2, 2});
  FakeDevice refusing;
  refusing.refuses_groups = true;
  CHECK(operators_of(grouped_sums(graph, sums, refusing)).size() == 5 + 5);
  CHECK(refusing.operator_groups == std::vector<std::size_t>{5});
}

TEST_CASE("results of a group lie as those of single kernels, or there is none", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  FakeDevice device;
  device.group.result = named_layout("blocked");
  const Lowered program =
      grouped_sums(graph, std::vector{named(sum(x, {0}, true), "a"), named(sum(x, {1}, true), "b")}, device);
  CHECK(operators_of(program) == Names{"reduce_sum", "reduce_sum"});
}

TEST_CASE("operators whose bits a group changes are grouped in the forward pass alone", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  std::vector<Value> sums{named(sum(x, {0}, true), "a"), named(sum(x, {1}, true), "b")};
  {
    const PassScope pass(graph, Pass::gradient);
    sums.push_back(named(sum(x + 1.0F, {0}, true), "c"));
    sums.push_back(named(sum(x + 1.0F, {1}, true), "d"));
  }
  FakeDevice exact;
  grouped_sums(graph, sums, exact);
  CHECK(exact.operator_groups == std::vector<std::size_t>{4});
  FakeDevice inexact;
  inexact.group.keeps_bits = false;
  grouped_sums(graph, sums, inexact);
  CHECK(inexact.operator_groups == std::vector<std::size_t>{2});
}

}  // namespace concord::test
