// The programs of docs/guide/adding-an-operator.md.
#include <fmt/format.h>

#include "concord/ops/rules.hpp"
#include "guide_test.hpp"

namespace concord {

// [description]
namespace ops {

/// dst[n, c] = src[n, c] - src[n, c - 1], and src[n, 0] in the first column. src is f32 (N, C).
class Difference final : public Operator {
 public:
  explicit Difference(bool transposed) : transposed_(transposed) {}  // transposed: the operator of the gradient

  [[nodiscard]] std::string_view name() const override { return "difference"; }

  /// The shape rule: the specs of the outputs, or a ShapeError with the expected shape.
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override {
    expect_inputs(name(), inputs, 1);
    expect_type(name(), "src", inputs[0], DType::f32);
    if (inputs[0].shape.rank() != 2) throw ShapeError("difference: src must be (N, C), got " + inputs[0].str());
    return {inputs[0]};
  }

  /// The gradient rule: one value for each input, built from operators.
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override {
    std::vector<Value> diffs = no_gradients(node);
    if (!diff_dst[0] || !wanted[0]) return diffs;
    diffs[0] = diff_dst[0].graph().add(std::make_shared<Difference>(!transposed_), {diff_dst[0]});
    return diffs;
  }

  /// Every parameter as text: equal name, attributes and specs mean equal computation.
  [[nodiscard]] std::string attributes() const override { return transposed_ ? "transposed" : ""; }

  [[nodiscard]] bool transposed() const { return transposed_; }

 private:
  bool transposed_;
};

}  // namespace ops

/// The function for users.
Value difference(Value x) { return x.graph().add(std::make_shared<ops::Difference>(false), {x}); }
// [end]

namespace {

// [composition]
/// The same with existing operators: it needs no new kernel.
Value difference_by_slices(Value x) {
  const Value before = pad(slice(x, 1, 0, x.shape()[1] - 1), {0, 1}, {0, 0});
  return x - before;
}
// [end]

TEST_CASE("guide: an operator has a shape rule, a gradient and attributes", "[docs]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{2, 5}});
  const Value y = difference(x);
  CHECK(y.spec() == x.spec());
  const Value dx = gradient(sum(y), {x})[0];
  CHECK(dx.node().op->attributes() == "transposed");
  const Value cube = graph.input("cube", {DType::f32, Shape{2, 3, 4}});
  CHECK_THROWS_AS(difference(cube), ShapeError);
}

TEST_CASE("guide: an operator without a kernel is refused by name", "[docs]") {
  // [refused]
  const auto variables = std::make_shared<Variables>(Device::open("cpu"), 1);
  Graph graph;
  const Value y = difference(graph.input("x", {DType::f32, Shape{2, 5}}));
  try {
    const Program program = compile(graph, y, variables);
  } catch (const NotSupported& error) {
    // names the node and says: no kernel for operator difference
  }
  // [end]
  CHECK_THROWS_AS(compile(graph, y, variables), NotSupported);
}

TEST_CASE("guide: a composition needs no kernel", "[docs]") {
  const auto variables = std::make_shared<Variables>(test::guide_device(), 1);
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{1, 4}});
  const Value y = difference_by_slices(x), dx = gradient(sum(square(y)), {x})[0];
  Program program = compile(graph, {y, dx}, variables);
  program.write("x", Tensor::of(Shape{1, 4}, std::vector<float>{1, 3, 6, 10}));
  program.run();
  const Tensor result = program.read(y), slope = program.read(dx);
  const auto got = result.values<float>(), diff = slope.values<float>();
  CHECK(std::vector<float>(got.begin(), got.end()) == std::vector<float>{1, 2, 3, 4});
  CHECK(std::vector<float>(diff.begin(), diff.end()) == std::vector<float>{-2, -2, -2, 8});
}

}  // namespace
}  // namespace concord
