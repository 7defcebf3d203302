// append_formulas(): which formulas are computed where their operand is written.
#include <algorithm>

#include "compile/layout_test.hpp"
#include "concord/ops/appended.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

Lowered appended(const Graph& graph, std::span<const Value> outputs, FakeDevice& device) {
  device.appends = true;
  Lowered program = with_invariants(graph, outputs, device);
  append_formulas(program, device, Precision::fp32);
  CHECK(in_order(program));
  check_layouts(program);
  return program;
}

}  // namespace

TEST_CASE("a formula of a result that others read is computed as it is written", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w"), y = named(matmul(x, w), "y");
  const Value z = named(gelu(y) * x, "z"), again = named(matmul(y, z), "again");
  FakeDevice device;
  const Lowered program = appended(graph, std::vector{again}, device);
  CHECK(operators_of(program) == Names{"matmul+gelu+multiply", "matmul"});
  const LoweredNode& node = program.nodes[0];
  CHECK(names_of(program, node.inputs) == Names{"x", "w", "x"});
  CHECK(names_of(program, node.outputs) == Names{"y", "z"});
  CHECK(node.op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
  const Cost cost = node.op->cost(program.specs(node.inputs), program.specs(node.outputs));
  CHECK(
      cost.flops >
      program.nodes[1].op->cost(program.specs(program.nodes[1].inputs), program.specs(program.nodes[1].outputs)).flops);
}

TEST_CASE("a formula stays apart from what it cannot follow", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w"), y = named(matmul(x, w), "y");
  const auto is_apart = [&](Value formula, const char* name) {
    INFO(name);
    FakeDevice device;
    const Lowered program =
        appended(graph, std::vector{named(formula, "z"), named(matmul(y, formula), "again")}, device);
    for (const LoweredNode& node : program.nodes) {
      if (dynamic_cast<const ops::Appended*>(node.op.get()) != nullptr) return false;
    }
    return true;
  };
  CHECK_FALSE(is_apart(gelu(y), "an activation"));
  CHECK(is_apart(y * sum(y, {1}, true), "an operand made of the result"));
  CHECK(is_apart(y * matmul(w, w), "an operand made after the result"));
  const PassScope pass(graph, Pass::gradient);
  CHECK(is_apart(gelu(y), "of another pass"));
}

TEST_CASE("a formula stays apart from what stands far before it", "[compile]") {
  for (const int between : {2, 10}) {
    Graph graph;
    const Value x = graph.input("x", kMatrix), w = variable(graph, "w"), y = named(matmul(x, w), "y");
    Value other = x;
    for (int i = 0; i < between; ++i) other = matmul(other, w);
    FakeDevice device;
    const std::vector results{named(other, "other"), named(gelu(y), "z"), named(matmul(y, w), "again")};
    const std::vector<std::string> operators = operators_of(appended(graph, results, device));
    CHECK((std::ranges::find(operators, "matmul+gelu") != operators.end()) == (between == 2));
  }
}

TEST_CASE("no formula is appended where the device has no kernel for it, or the results lie otherwise", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w"), y = named(matmul(x, w), "y");
  const Value z = named(gelu(y), "z"), again = named(matmul(y, z), "again");
  FakeDevice device;
  device.rules["matmul"] = {nullptr, named_layout("blocked")};
  CHECK(operators_of(appended(graph, std::vector{again}, device)).size() > 2);
}

}  // namespace concord::test
