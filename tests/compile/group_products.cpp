// group_products(): which gradients of weights become one operator, and where it stands.
#include "compile/layout_test.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

Lowered grouped_products(const Graph& graph, std::span<const Value> outputs, std::size_t most_awaited = SIZE_MAX) {
  FakeDevice device;
  device.groups_gradients = true;
  device.most_awaited = most_awaited;
  Lowered program = lower(graph, outputs, false);
  group_products(program, device, Precision::bf16);
  CHECK(in_order(program));
  for (const LoweredNode& node : program.nodes) {
    CHECK(node.op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
  }
  return program;
}

std::size_t count_of(const Lowered& program, const std::string& name) {
  const Names names = operators_of(program);
  return static_cast<std::size_t>(std::ranges::count(names, name));
}

/// matmul(a, b) summed over the rows of both.
Value over_rows(Value a, Value b) { return matmul(a, b, true, false); }

}  // namespace

TEST_CASE("gradients of weights that share their tokens are one operator where the last stood", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  std::vector<Value> weights;
  Value loss;
  for (const char* name : {"q", "k", "v"}) {
    weights.push_back(variable(graph, name));
    const Value part = sum(exp(matmul(x, weights.back())));
    loss = loss ? loss + part : part;
  }
  const std::vector<Value> slopes = gradient(loss, weights);
  const Lowered program =
      grouped_products(graph, std::vector{named(slopes[0], "dq"), named(slopes[1], "dk"), named(slopes[2], "dv")});
  CHECK(count_of(program, "matmul of 3") == 1);
  CHECK(count_of(program, "matmul") == 3);  // of the forward pass
}

TEST_CASE("a product that something reads takes no later ones along, and a group has at most eight", "[compile]") {
  Graph graph;
  const PassScope pass(graph, Pass::gradient);
  const Value x = graph.input("x", kMatrix);
  std::vector<Value> results;
  for (int i = 0; i < 10; ++i) {
    results.push_back(named(over_rows(graph.input("y" + std::to_string(i), kMatrix), x), "r" + std::to_string(i)));
  }
  CHECK(operators_of(grouped_products(graph, results)) == Names{"matmul of 8", "matmul of 2"});
  Graph read;
  const PassScope of_read(read, Pass::gradient);
  const Value z = read.input("z", kMatrix);
  const Value a = named(over_rows(z, read.input("a", kMatrix)), "first"), b = named(exp(a), "b");
  const Value c = named(over_rows(z, b), "second");
  CHECK(operators_of(grouped_products(read, std::vector{a, b, c})) == Names{"matmul", "exp", "matmul"});
}

TEST_CASE("products that share no factor, or of other sizes or passes, stay apart", "[compile]") {
  Graph graph;
  const Value x = graph.input("x", kMatrix), y = graph.input("y", kMatrix),
              wide = graph.input("wide", {DType::f32, {kMatrix.shape[0], 2}});
  const Value forward = named(over_rows(x, y), "forward"), also_forward = named(over_rows(x, x), "also forward");
  const PassScope pass(graph, Pass::gradient);
  const Value z = graph.input("z", kMatrix);
  const std::vector results{forward,
                            also_forward,
                            named(over_rows(x, z), "a"),
                            named(over_rows(y, y), "b"),
                            named(over_rows(x, wide), "c"),
                            named(matmul(x, z), "d")};
  const Lowered program = grouped_products(graph, results);
  CHECK(count_of(program, "matmul") == results.size());
}

TEST_CASE("gradients of the weights of several convolutions are one operator", "[compile]") {
  Graph graph;
  const Shape image{1, 8, 6, 6};
  std::vector<Value> weights;
  Value y = graph.input("x", {DType::f32, image});
  for (const char* name : {"a", "b", "c", "d"}) {
    weights.push_back(variable(graph, name, {DType::f32, {8, 8, 1, 1}}));
    y = conv2d(y, weights.back());
  }
  std::vector<Value> slopes = gradient(sum(y), weights);
  for (std::size_t i = 0; i < slopes.size(); ++i) slopes[i] = named(slopes[i], "d" + std::to_string(i));
  const Lowered program = grouped_products(graph, slopes);
  CHECK(count_of(program, "conv2d_backward_weights of 3") == 1);
  CHECK(count_of(program, "conv2d_backward_weights") == 1);
  // Two images wait for the next gradient, which reads one of them.
  const std::size_t bytes = static_cast<std::size_t>(image.elements()) * sizeof(float);
  CHECK(count_of(grouped_products(graph, slopes, 2 * bytes - 1), "conv2d_backward_weights") == 4);
  CHECK(count_of(grouped_products(graph, slopes, 2 * bytes), "conv2d_backward_weights of 2") == 2);
}

}  // namespace concord::test
