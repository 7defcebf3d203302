// Where the nodes of a step stand, and what crosses a cut.
#include "concord/graph/stages.hpp"

#include <fmt/format.h>

#include "concord/ops/gradient.hpp"
#include "concord/ops/gradient_parts.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

VariablePtr parameter(const std::string& name, Shape shape) {
  return std::make_shared<Variable>(name, TensorSpec{DType::f32, std::move(shape)}, Initializer{}, true, Tensor{},
                                    VariableRole::parameter);
}

std::vector<std::string> names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name());
  return names;
}

/// x → a·x → b → c, with a way from the first product around the second.
struct Chain {
  Graph graph;
  Value x = graph.input("x", {DType::f32, Shape{4, 4}});
  Value a = graph.variable(parameter("a", Shape{4, 4}));
  Value b = graph.variable(parameter("b", Shape{4, 4}));
  Value c = graph.variable(parameter("c", Shape{4, 4}));
  Value first = matmul(x, a);
  Value second = matmul(first, b);
  Value third = matmul(second + first, c);
  Value loss = mean(third);
};

}  // namespace

TEST_CASE("values that stages read go from stage to stage, and gradients back", "[graph]") {
  Chain chain;
  const std::vector<Value> gradients = gradient(chain.loss, {chain.a, chain.b, chain.c});
  const std::vector<Value> parameters{chain.a, chain.b, chain.c};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string of = parameters[i].name();
    chain.graph.assign(
        chain.graph.variable(std::make_shared<Variable>("sum of " + of, parameters[i].spec(), Initializer{}, false,
                                                        Tensor{}, VariableRole::optimizer, of)),
        gradients[i]);
  }
  const ForwardOrder order(chain.graph);
  CHECK(order.place(chain.x) == ForwardOrder::kAnywhere);
  CHECK(order.place(chain.second) == chain.second.node_id());
  CHECK(order.place(chain.b) == chain.second.node_id());
  CHECK(order.place(gradients[1]) == chain.second.node_id());
  CHECK(order.readers_of_parameters() ==
        std::vector{chain.first.node_id(), chain.second.node_id(), chain.third.node_id()});
  const Stages stages(order, {chain.second.node_id(), chain.third.node_id()}, std::vector{chain.loss});
  CHECK(stages.size() == 3);
  CHECK(stages.of(chain.x) == Stages::kAny);
  CHECK(stages.of(chain.a) == 0);
  CHECK(stages.of(chain.c) == 2);
  CHECK(stages.of(gradients[0]) == 0);
  CHECK(names_of(stages.forward(0)) == std::vector{chain.first.name()});
  CHECK(stages.forward(1).size() == 1);  // the sum of both ways
  CHECK(stages.backward(1).size() == 1);
  // The gradients of both ways come together where the first product is read first.
  CHECK(stages.backward(0).size() == 1);
  CHECK(stages.guests().empty());
}

TEST_CASE("a parameter that two stages read has its home at the first", "[graph]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{4, 4}});
  const Value table = graph.variable(parameter("table", Shape{4, 4}));
  const Value first = matmul(x, table);
  const Value middle = matmul(first, graph.variable(parameter("w", Shape{4, 4})));
  const Value last = matmul(middle, table);
  const Value loss = mean(last);
  const std::vector<Value> gradients = gradient(loss, {table});
  const ForwardOrder order(graph);
  const Stages stages(order, {middle.node_id(), last.node_id()}, std::vector{loss});
  CHECK(stages.of(table) == 0);
  CHECK(stages.guests() == std::map<std::string, std::set<int>>{{"table", {2}}});
  CHECK(stages.of(gradients[0]) == 0);
  CHECK(stages.backward(1).size() == 2);  // that of the table's last use, and that of the values
  CHECK(stages.backward(0).size() == 2);
}

TEST_CASE("stages gather their own parts of a gradient", "[graph]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{4, 4}});
  const Value table = graph.variable(parameter("table", Shape{4, 4}));
  const Value first = matmul(matmul(x, table), table);  // twice in one stage
  const Value middle = matmul(first, graph.variable(parameter("w", Shape{4, 4})));
  const Value last = matmul(middle, table);
  const Value loss = mean(last);
  const auto stage_of = [&](std::int32_t node) { return node < middle.node_id() ? 0 : node < last.node_id() ? 1 : 2; };
  const auto parts = gradient_in_parts(loss, std::vector{table}, stage_of);
  REQUIRE(parts[0].size() == 2);
  std::map<int, Value> sums;
  for (const auto& [stage, part] : parts[0]) {
    const PassScope there(graph, Pass::update, stage == 0 ? -1 : last.node_id());
    const Variable sum{.name = fmt::format("sum{}", stage),
                       .spec = table.spec(),
                       .init = {},
                       .role = VariableRole::transient,
                       .of = "table"};
    sums[stage] = graph.variable(std::make_shared<Variable>(sum));
    graph.assign_early(sums[stage], sums[stage] + part);
  }
  const ForwardOrder order(graph);
  const Stages stages(order, {middle.node_id(), last.node_id()}, std::vector{loss});
  CHECK(stages.of(sums[0]) == 0);
  CHECK(stages.of(sums[2]) == 2);
  CHECK(stages.backward(1).size() == 1);  // that of the values
  CHECK(stages.backward(0).size() == 1);
  REQUIRE(stages.assignments(2, true).size() == 1);
  CHECK(stages.assignments(2, true)[0].variable == sums[2]);
  CHECK(stages.assignments(1, true).empty());
  CHECK(stages.assignments(0, true).size() == 1);
}
