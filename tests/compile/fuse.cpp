// fuse(): what becomes one kernel, what must stay a value of its own, and that fusion never changes what is computed.
#include <algorithm>
#include <cmath>
#include <random>

#include "compile/fuse_test.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {

TEST_CASE("a chain of pointwise operators becomes one with the composed formula", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  const Value y = named(relu(x * 3.0F - w), "y");
  const Lowered program = fused(graph, std::vector{y});
  REQUIRE(operators_of(program) == Names{"multiply+subtract+relu"});
  const LoweredNode& node = program.nodes[0];
  CHECK(node.name == "y");
  CHECK(names_of(program, node.inputs) == Names{"x", "w"});
  CHECK(names_of(program, node.outputs) == Names{"y"});
  const Expression& formula = pointwise_of(node).expression();
  CHECK(formula.inputs() == 2);
  for (const float a : {-1.0F, 0.5F, 2.0F}) {
    for (const float b : {-2.0F, 1.5F}) {
      CHECK(formula.evaluate(0, std::vector{a, b}) == std::max(3 * a - b, 0.0F));
    }
  }
}

TEST_CASE("steps with numbers reach the device as one", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), w = variable(graph, "w");
  const auto steps = [&](const Value& y) {
    FakeDevice device;
    device.takes_epilogue = takes_everything;
    const Lowered program = fused(graph, std::vector{y}, device);
    REQUIRE(program.nodes.size() == 1);
    return fused_of(program.nodes[0]).epilogue().str();
  };
  const Value y = matmul(x, w);
  CHECK(steps(y * 0.5F * 3.0F) == steps(y * 1.5F));
  CHECK(steps(relu((y + 0.25F) * 0.5F)) == steps(relu(y * 0.5F + 0.125F)));
  CHECK(steps((y * 0.3F + 0.5F) * 4.0F + 1.0F) == steps(y * 1.2F + 3.0F));
}

TEST_CASE("the branches of a diamond become one operator that reads its source once", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value middle = x * 2.0F + 1.0F;
  const Value y = named(sigmoid(middle) - relu(middle), "y");
  const Lowered program = fused(graph, std::vector{y});
  REQUIRE(program.nodes.size() == 1);
  CHECK(names_of(program, program.nodes[0].inputs) == Names{"x"});
  const float m = 2 * 0.75F + 1;
  CHECK(evaluate(program, {{"x", 0.75F}}).at("y") == Approx(1 / (1 + std::exp(-m)) - m));
}

TEST_CASE("an operand read twice by one operator is still one reader", "[compile]") {
  Graph graph;
  const Value middle = graph.input("x", kMatrix) + 1.0F;
  const Value y = named(middle * middle, "y");
  const Lowered program = fused(graph, std::vector{y});
  REQUIRE(program.nodes.size() == 1);
  CHECK(evaluate(program, {{"x", 4}}).at("y") == 25);
}

TEST_CASE("a value read twice by what is merged stays for its other readers", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value middle = named(tanh(x), "middle");
  const Value y = named(middle * middle - middle, "y");
  const Value other = named(matmul(middle, x), "other");
  const Lowered program = fused(graph, std::vector{y, other});
  CHECK(operators_of(program) == Names{"tanh", "multiply+subtract", "matmul"});
  const auto values = evaluate(program, {{"x", 0.5F}});
  const float t = std::tanh(0.5F);
  CHECK(values.at("y") == Approx(t * t - t));
  CHECK(values.at("other") == Approx(t * 0.5F));
}

TEST_CASE("a value that is kept, assigned or read by two stays", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value w = variable(graph, "w");
  const Value middle = named(x * w, "middle");
  const Value y = named(relu(middle), "y");

  CHECK(fused(graph, std::vector{y}).nodes.size() == 1);
  CHECK(operators_of(fused(graph, std::vector{y, middle})) == Names{"multiply", "relu"});

  const Value other = named(sum(middle, {1}, true), "other");  // no pointwise operator: both readers stay
  CHECK(operators_of(fused(graph, std::vector{y, other})) == Names{"multiply", "relu", "reduce_sum"});

  graph.assign(w, middle);
  const Lowered program = fused(graph, std::vector{y});
  CHECK(operators_of(program) == Names{"multiply", "relu"});
  CHECK(names_of(program, producer_of(program, id_of(program, "y")).inputs) == Names{"middle"});
}

TEST_CASE("a value read by an operator and under another shape stays", "[compile]") {
  Graph graph;
  const Value middle = named(graph.input("x", kMatrix) + 1.0F, "middle");
  const Value y = relu(middle);
  const Value flat = reshape(middle, {16});
  CHECK(operators_of(fused(graph, std::vector{y, flat})) == Names{"add", "relu", "reshape"});
  CHECK(operators_of(fused(graph, std::vector{flat})) == Names{"add", "reshape"});
}

TEST_CASE("operators of another shape or type are not merged", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const Value row = exp(graph.input("row", {DType::f32, {4}}));  // computed once, read by every row
  CHECK(operators_of(fused(graph, std::vector{x + row})) == Names{"exp", "add"});
  const Value whole = cast(x * 2.0F, DType::i32);  // the rounding is part of the result
  CHECK(operators_of(fused(graph, std::vector{whole + x})) == Names{"multiply+cast", "add"});
}

TEST_CASE("an operator of two results takes in what it reads and is taken in by none", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  const std::vector<Value> two =
      pointwise("two", {x * 2.0F}, {scalar::input(0) + 1.0F, scalar::input(0) - 1.0F}, {DType::f32, DType::f32});
  const Value y = named(relu(two[1]), "y");
  const Lowered program = fused(graph, std::vector{y});
  CHECK(operators_of(program) == Names{"multiply+two", "relu"});
  CHECK(evaluate(program, {{"x", 3}}).at("y") == 5);
}

TEST_CASE("no operator grows beyond what a small device can run", "[compile]") {
  Graph graph;
  std::map<std::string, float> given;
  Value sum_of_all = graph.input("x0", kMatrix);
  given["x0"] = 0;
  for (int i = 1; i <= 30; ++i) {
    const std::string name = "x" + std::to_string(i);
    given[name] = static_cast<float>(i);
    sum_of_all = sum_of_all + graph.input(name, kMatrix);
  }
  Value deep = sum_of_all;
  for (int i = 0; i < 300; ++i) deep = sigmoid(deep) * 1.5F;
  const Value y = named(deep, "y");
  const Lowered plain = lower(graph, std::vector{y}, false);
  const Lowered program = fused(graph, std::vector{y});
  for (const LoweredNode& node : program.nodes) {
    INFO(node.name);
    CHECK(node.inputs.size() <= 12);
    CHECK(pointwise_of(node).expression().code().size() <= 96);
    CHECK(node.op->name().size() <= 50);
  }
  CHECK(program.nodes.size() < plain.nodes.size() / 10);
  CHECK(evaluate(program, given).at("y") == Approx(evaluate(plain, given).at("y")));
}

TEST_CASE("a formula that doubles with every operator is no more work than its length", "[compile]") {
  Graph graph;
  Value y = graph.input("x", kMatrix);
  for (int i = 0; i < 60; ++i) y = (y + y) * 0.5F;
  const Lowered program = fused(graph, std::vector{named(y, "y")});
  CHECK(program.nodes.size() < 10);
  CHECK(evaluate(program, {{"x", 3}}).at("y") == 3);
}

TEST_CASE("fusion changes no value of any program", "[compile]") {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    INFO("graph " << round);
    Graph graph;
    std::map<std::string, float> given;
    std::vector<Value> values, variables;
    for (int i = 0; i < 3; ++i) {
      values.push_back(graph.input("x" + std::to_string(i), kMatrix));
      variables.push_back(variable(graph, "w" + std::to_string(i)));
      values.push_back(variables.back());
    }
    for (const Value& value : values) given[value.name()] = static_cast<float>(below(9)) * 0.25F - 1;
    const auto any = [&] { return values[std::max(below(values.size()), below(values.size()))]; };
    for (int i = 0; i < 30; ++i) {
      const Value a = any(), b = any();
      switch (below(7)) {
        case 0: values.push_back(tanh(a)); break;
        case 1: values.push_back(a - b); break;
        case 2: values.push_back(relu(a) + 0.5F); break;
        case 3: values.push_back(minimum(a, b) * 0.75F); break;
        case 4: values.push_back(tanh(matmul(a, b))); break;
        case 5: values.push_back(reshape(reshape(a, {16}), {4, 4})); break;
        default: values.push_back(where(a, b, any())); break;
      }
    }
    std::vector<Value> outputs{values.back(), any(), any()};
    for (const Value& w : variables) {
      if (below(2) == 0) graph.assign(w, any());
    }
    FakeDevice device;
    device.takes_epilogue = [&](const Operator&, const Expression&) { return below(2) == 0; };
    device.takes_prologue = [&](const Operator&, const Expression&) { return below(2) == 0; };
    const Lowered plain = lower(graph, outputs, false);
    const Lowered program = fused(graph, outputs, device);
    CHECK(program.nodes.size() <= plain.nodes.size());
    const auto before = evaluate(plain, given), after = evaluate(program, given);
    std::vector<ValueId> read;
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      if (program.values[v].keep) read.push_back(static_cast<ValueId>(v));
    }
    for (const LoweredAssignment& assignment : program.assignments) read.push_back(assignment.value);
    for (const ValueId id : read) {
      const LoweredValue& value = program.value(id);
      if (value.kind != LoweredValue::Kind::computed) continue;
      INFO(value.name);
      REQUIRE(after.contains(value.name));
      CHECK(after.at(value.name) == Approx(before.at(value.name)).margin(1e-6));
    }
  }
}

}  // namespace concord::test
