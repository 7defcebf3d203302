// Factors by channel behind convolutions: when they go into the weights, what is left behind the convolution, and that
// the weights are made once.
#include <algorithm>

#include "compile/fuse_test.hpp"
#include "concord/compile/plan.hpp"
#include "concord/ops/conv.hpp"

namespace concord::test {
namespace {

const TensorSpec kImage{DType::f32, {2, 3, 8, 8}}, kWeights{DType::f32, {3, 3, 1, 1}};
const TensorSpec kByChannel{DType::f32, {3, 1, 1}};

Value convolution(Graph& graph, const Value& x, const std::string& weights) {
  return conv2d(x, variable(graph, weights, kWeights));
}

/// (x + mean)·factor + bias, as a normalisation in evaluation computes.
Value normalised(Graph& graph, const Value& x, const std::string& name) {
  const auto channel = [&](const std::string& of) { return variable(graph, name + of, kByChannel); };
  return (x + channel("mean")) * channel("factor") + channel("bias");
}

Lowered folded(const Graph& graph, std::vector<Value> outputs, FakeDevice& device) {
  device.folds = true;
  Lowered program = lower(graph, outputs, false);
  fuse(program, device, {.folds = true});
  CHECK(in_order(program));
  return program;
}

Lowered folded(const Graph& graph, std::vector<Value> outputs) {
  FakeDevice device;
  return folded(graph, std::move(outputs), device);
}

const std::map<std::string, float> kGiven{{"x", 2},       {"r", 0.5F},     {"w", 3},      {"v", -1.5F},
                                          {"amean", 1},   {"afactor", 4},  {"abias", -7}, {"bmean", 0.25F},
                                          {"bfactor", 8}, {"bbias", 1.25F}};

/// The program with the factors in the weights computes what it computes without.
void check_same(const Graph& graph, const Value& y, const Lowered& program) {
  const std::string name = y.name();
  CHECK(evaluate(program, kGiven).at(name) == Approx(evaluate(fused(graph, std::vector{y}), kGiven).at(name)));
}

}  // namespace

TEST_CASE("a convolution takes the factors of the normalisation behind it into its weights", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kImage);
  const Value y = named(relu(normalised(graph, convolution(graph, x, "w"), "a")), "y");
  const Lowered program = folded(graph, {y});
  CHECK(operators_of(program) == Names{"fold", "reshape", "fold", "conv2d", "add+relu"});
  CHECK(program.nodes[2].is_folded);
  CHECK(program.value(program.nodes[2].outputs[0]).spec == kWeights);
  CHECK(program.nodes[3].inputs[1] == program.nodes[2].outputs[0]);
  CHECK(program.nodes[4].inputs.size() == 2);
  check_same(graph, y, program);
}

TEST_CASE("the sum of two normalised convolutions has one addition by channel", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kImage), residual = graph.input("r", kImage);
  const Value both =
      normalised(graph, convolution(graph, x, "w"), "a") + normalised(graph, convolution(graph, x, "v"), "b");
  const Value y = named(relu(both - residual), "y");
  const Lowered program = folded(graph, {y});
  CHECK(operators_of(program) ==
        Names{"fold", "reshape", "fold", "conv2d", "reshape", "fold", "conv2d", "add+add+multiply+add+relu"});
  CHECK(program.nodes.back().inputs.size() == 4);  // two images, the residual, one shift
  check_same(graph, y, program);
}

TEST_CASE("a result with one factor may be read more than once by its formula", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kImage);
  const Value normal = normalised(graph, convolution(graph, x, "w"), "a");
  const Value y = named(normal * sigmoid(normal) + normal, "y");
  const Lowered program = folded(graph, {y});
  CHECK(program.nodes.back().inputs.size() == 2);  // the result and one shift
  CHECK(operators_of(program)[3] == "conv2d");
  check_same(graph, y, program);
}

TEST_CASE("a formula that reads each of its parts twice is folded part by part", "[compile]") {
  // As a tree, these formulas have more parts than can be counted.
  Graph graph;
  Value y = normalised(graph, convolution(graph, graph.input("x", kImage), "w"), "a");
  std::ptrdiff_t folds = 0;
  SECTION("products") {
    y = sigmoid(y);
    for (int i = 0; i < 40; ++i) y = y * y;
    folds = 2;
  }
  SECTION("sums of other terms") {
    y = sigmoid(y);
    for (int i = 0; i < 40; ++i) y = y + y;
  }
  SECTION("quotients") {
    for (int i = 0; i < 12; ++i) y = y - y * y / (y * y + 1.0F);
    folds = 2;
  }
  const Lowered program = folded(graph, {named(y, "y")});
  CHECK(std::ranges::count(operators_of(program), "fold") == folds);
  check_same(graph, y, program);
}

TEST_CASE("factors stay behind a convolution where the weights would not be made once, or mean something else",
          "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kImage);
  const Value weights = variable(graph, "w", kWeights), conv = conv2d(x, weights);
  std::vector<Value> outputs;
  SECTION("an update changes the weights") {
    outputs = {relu(normalised(graph, conv, "a"))};
    graph.assign(weights, weights * 2.0F);
  }
  SECTION("factors that come from data") { outputs = {conv * graph.input("factor", kByChannel)}; }
  SECTION("one number for all channels") { outputs = {conv * 2.0F + variable(graph, "b", kByChannel)}; }
  SECTION("factors by pixel") { outputs = {conv * variable(graph, "pixels", {DType::f32, {8, 8}})}; }
  SECTION("the result is read by others") { outputs = {conv, conv * variable(graph, "f", kByChannel)}; }
  SECTION("two factors of one result") {
    outputs = {conv * variable(graph, "f", kByChannel) + sigmoid(conv * variable(graph, "g", kByChannel))};
  }
  FakeDevice device;
  const Lowered program = folded(graph, outputs, device);
  for (const LoweredNode& node : program.nodes) CHECK(node.op->name() != "fold");
}

TEST_CASE("weights with factors are made once, in the layout of their kernel", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kImage);
  const Value y = named(normalised(graph, convolution(graph, x, "w"), "a"), "y");
  FakeDevice device;
  device.rules["conv2d"] = {named_layout("blocked"), nullptr};
  Lowered program = folded(graph, {y}, device);
  choose_layouts(program, device);
  find_invariants(program);
  std::vector<std::string> every_run;
  for (const LoweredNode& node : program.nodes) {
    if (!node.invariant && !node.is_alias()) every_run.push_back(node.op ? std::string(node.op->name()) : node.name);
  }
  CHECK(every_run == Names{"reorder/x", "conv2d", "add"});
}

TEST_CASE("a result lies over the operand that its kernel names", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kImage), weights = variable(graph, "w", kWeights);
  const Value shortcut = conv2d(x, weights), y = named(conv2d(x, weights) + shortcut, "y");
  FakeDevice device;
  device.takes_epilogue = takes_everything;
  Lowered program = fused(graph, std::vector{y}, device);
  device.overwrites["conv2d+add"] = 2;
  choose_layouts(program, device);
  const MemoryPlan plan = plan_memory(program, false);
  const auto block_of = [&](ValueId id) { return plan.storage[static_cast<std::size_t>(id)].block; };
  const LoweredNode& node = program.nodes.back();
  CHECK(block_of(node.outputs[0]) == block_of(node.inputs[2]));
}

}  // namespace concord::test
