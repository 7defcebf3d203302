// group_reorders(): which reorders of weights become one launch, and where it stands.
#include <algorithm>

#include "compile/layout_test.hpp"
#include "concord/compile/plan.hpp"
#include "concord/ops/matmul.hpp"

namespace concord::test {
namespace {

/// Three products in a row; with `trains`, each weight gets a new value.
struct Network {
  Graph graph;
  Value y;

  explicit Network(bool trains) {
    y = graph.input("x", kMatrix);
    for (const char* const name : {"a", "b", "c"}) {
      const Value weight = variable(graph, name);
      y = relu(matmul(y, weight));
      if (trains) graph.assign(weight, weight - graph.input(std::string("d") + name, weight.spec()));
    }
  }
};

Lowered grouped(const Network& network, FakeDevice& device, const std::string& layout, const LateVariables& late = {}) {
  device.rules["matmul"] = {named_layout(layout), nullptr};
  Lowered program = laid_out(network.graph, std::vector{network.y}, device);
  find_invariants(program, late);
  group_reorders(program, device, late);
  CHECK(in_order(program));
  check_layouts(program);
  return program;
}

Names variables_of(const Lowered& program, const LoweredNode& node) {
  Names names;
  for (const ValueId id : node.inputs) names.push_back(program.value(id).name);
  return names;
}

std::ptrdiff_t reorders_in(const Lowered& program) {
  return std::ranges::count_if(program.nodes, [](const LoweredNode& node) { return node.op == nullptr; });
}

}  // namespace

TEST_CASE("the reorders of weights into a layout that is made in groups are one launch", "[compile]") {
  FakeDevice device;
  const Lowered program = grouped(Network(true), device, "grouped");
  REQUIRE(device.groups.size() == 1);
  CHECK(device.groups[0].size() == 3);
  const auto first =
      std::ranges::find_if(program.nodes, [](const LoweredNode& node) { return node.inputs.size() == 3; });
  REQUIRE(first != program.nodes.end());
  CHECK(variables_of(program, *first) == Names{"a", "b", "c"});
  CHECK(first->outputs.size() == 3);
  CHECK_FALSE(first->invariant);
  CHECK(first < std::ranges::find_if(
                    program.nodes, [](const LoweredNode& node) { return node.op != nullptr; }));
  CHECK(reorders_in(program) == 4);  // beside it, each product's left operand
}

TEST_CASE("invariant reorders are one launch, too", "[compile]") {
  FakeDevice device;
  const Lowered program = grouped(Network(false), device, "grouped");
  CHECK(reorders_in(program) == 4);
  REQUIRE(device.groups.size() == 1);
  CHECK(std::ranges::count_if(program.nodes, &LoweredNode::invariant) == 1);
}

TEST_CASE("reorders stay alone in other layouts, or where they wait for late variables, or have no kernel together",
          "[compile]") {
  FakeDevice device;
  CHECK(reorders_in(grouped(Network(true), device, "alone")) == 6);
  CHECK(device.groups.empty());

  const Lowered late = grouped(Network(true), device, "grouped", {{"b"}});
  REQUIRE(device.groups.size() == 1);
  CHECK(device.groups[0].size() == 2);
  CHECK(reorders_in(late) == 5);

  FakeDevice refusing;
  refusing.refuses_groups = true;
  CHECK(reorders_in(grouped(Network(true), refusing, "grouped")) == 6);
}

}  // namespace concord::test
