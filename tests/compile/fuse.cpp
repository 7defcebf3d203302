// fuse(): what becomes one kernel, what must stay a value of its own, and that fusion never changes what is computed.
#include <algorithm>
#include <cmath>
#include <random>

#include "compile/fake_device.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

using Names = std::vector<std::string>;

Lowered fused(const Graph& graph, std::span<const Value> outputs, const Device& device = FakeDevice()) {
  Lowered program = lower(graph, outputs, false);
  fuse(program, device);
  CHECK(in_order(program));
  return program;
}

bool takes_everything(const Operator&, const Expression&) { return true; }

const ops::Pointwise& pointwise_of(const LoweredNode& node) {
  const auto* op = dynamic_cast<const ops::Pointwise*>(node.op.get());
  REQUIRE(op != nullptr);
  return *op;
}

const ops::Fused& fused_of(const LoweredNode& node) {
  const auto* op = dynamic_cast<const ops::Fused*>(node.op.get());
  REQUIRE(op != nullptr);
  return *op;
}

}  // namespace

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
