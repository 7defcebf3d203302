// with_copies(): which updates write copies of weights, and what becomes of the reorders that made them.
#include <algorithm>

#include "compile/fake_device.hpp"
#include "concord/compile/plan.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise_group.hpp"

namespace concord::test {
namespace {

using Names = std::vector<std::string>;

/// Row-major in 16 bits.
class HalvedLayout final : public LayoutDescription {
 public:
  explicit HalvedLayout(std::size_t bytes) : bytes_(bytes) {}
  [[nodiscard]] std::size_t bytes() const override { return bytes_; }
  [[nodiscard]] bool equals(const LayoutDescription& other) const override { return other.str() == str(); }
  [[nodiscard]] std::string str() const override { return "halved"; }
  [[nodiscard]] std::optional<DType> row_major_type() const override { return DType::bf16; }

 private:
  std::size_t bytes_;
};

/// Two matrices, of which `reads` says how many a product reads, and a vector; each is updated by one formula.
struct Step {
  Graph graph;
  Value y;

  explicit Step(int reads) {
    const Value x = graph.input("x", kMatrix), rate = graph.input("rate", {DType::f32, {}});
    const Value a = variable(graph, "a"), b = variable(graph, "b"), c = variable(graph, "c", {DType::f32, {4}});
    y = x;
    if (reads > 0) y = matmul(y, a);
    if (reads > 1) y = matmul(y, b);
    for (const Value& weight : {a, b, c}) {
      const Value gradient = graph.input("d" + weight.name(), weight.spec());
      graph.assign(weight,
                   pointwise("sgd", {weight, gradient, rate}, scalar::input(0) - scalar::input(1) * scalar::input(2)));
    }
    y = relu(y);
  }
};

Lowered laid_out(const Step& step, const Layout& layout, bool retains_all = false) {
  FakeDevice device;
  device.rules["matmul"] = {layout, nullptr};
  Lowered program = lower(step.graph, std::vector{step.y}, false);
  group_updates(program);
  choose_layouts(program, device, Precision::bf16, retains_all);
  CHECK(in_order(program));
  return program;
}

Layout halved() { return std::make_shared<HalvedLayout>(32); }

const LoweredNode& node_of(const Lowered& program, const std::string& op) {
  const auto is_it = [&](const LoweredNode& node) { return node.op && node.op->name() == op; };
  const auto found = std::ranges::find_if(program.nodes, is_it);
  REQUIRE(found != program.nodes.end());
  return *found;
}

const LoweredNode& reorder_of(const Lowered& program, const std::string& variable) {
  const auto is_it = [&](const LoweredNode& node) {
    return !node.op && program.value(node.inputs[0]).name == variable;
  };
  const auto found = std::ranges::find_if(program.nodes, is_it);
  REQUIRE(found != program.nodes.end());
  return *found;
}

}  // namespace

TEST_CASE("updates of weights that kernels read in another type write these copies", "[compile][copies]") {
  Lowered program = laid_out(Step(2), halved());
  find_invariants(program);
  const LoweredNode& update = node_of(program, "sgd of 2");
  CHECK(node_of(program, "sgd of 1").outputs.size() == 1);
  REQUIRE(update.outputs.size() == 4);
  const auto& group = dynamic_cast<const ops::PointwiseGroup&>(*update.op);
  CHECK(group.member().types() == std::vector{DType::f32, DType::bf16});
  CHECK(group.infer(program.specs(update.inputs)) == program.specs(update.outputs));

  // A copy stays, and its reorder is for changes by others.
  const MemoryPlan plan = plan_memory(program, false);
  CHECK(plan.copies.empty());
  for (const auto& [weight, place] : {std::pair{"a", 1}, {"b", 3}}) {
    const LoweredNode& reorder = reorder_of(program, weight);
    CHECK(reorder.invariant);
    const auto& copy = plan.storage[static_cast<std::size_t>(reorder.outputs[0])];
    const auto& next = plan.storage[static_cast<std::size_t>(update.outputs[static_cast<std::size_t>(place)])];
    REQUIRE(copy.block);
    CHECK(copy.block == next.block);
    CHECK(plan.blocks[*copy.block].first == 0);
    CHECK(plan.blocks[*copy.block].last == static_cast<std::int32_t>(program.nodes.size()));
  }
  CHECK(std::ranges::count(program.nodes, true, &LoweredNode::invariant) == 2);
}

TEST_CASE("weights that no kernel reads in another type stay in their group", "[compile][copies]") {
  const Lowered program = laid_out(Step(1), halved());
  CHECK(node_of(program, "sgd of 2").outputs.size() == 2);
  CHECK(node_of(program, "sgd of 1").outputs.size() == 2);
  CHECK(operators_of(laid_out(Step(0), halved())) == Names{"sgd of 3", "relu"});
}

TEST_CASE("a copy in another order, or one of a program that keeps all values, is made by its reorder",
          "[compile][copies]") {
  Lowered blocked = laid_out(Step(2), named_layout("blocked"));
  find_invariants(blocked);
  CHECK(node_of(blocked, "sgd of 3").outputs.size() == 3);
  CHECK_FALSE(reorder_of(blocked, "a").invariant);
  const Lowered kept = laid_out(Step(2), halved(), true);
  CHECK(node_of(kept, "sgd of 3").outputs.size() == 3);
}

TEST_CASE("a copy that a later node reads changes at the end of the run", "[compile][copies]") {
  Lowered program = laid_out(Step(2), halved());
  find_invariants(program);
  // A product stands behind the updates, as one that is computed again can.
  LoweredNode product = node_of(program, "matmul");
  const ValueId copy = product.inputs[1];
  LoweredValue result = program.value(product.outputs[0]);
  result.keep = true;
  program.values.push_back(result);
  product.outputs = {static_cast<ValueId>(program.values.size() - 1)};
  program.nodes.push_back(std::move(product));
  const MemoryPlan plan = plan_memory(program, false);
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].variable == copy);
  CHECK(plan.storage[static_cast<std::size_t>(copy)].block !=
        plan.storage[static_cast<std::size_t>(plan.copies[0].value)].block);
}

}  // namespace concord::test
