// join_loss_gradients() and join_finite_numbers(): which operators become one, and what it reads.
#include "concord/ops/loss_gradient.hpp"

#include <cmath>

#include "compile/fuse_test.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

struct JoiningDevice {
  JoiningDevice() { device.joins_operators = true; }
  FakeDevice device;
};

/// Logits and the classes of three rows.
struct Classes {
  Graph graph;
  Value logits = graph.input("logits", {DType::f32, {3, 4}});
  Value target = graph.input("target", {DType::i32, {3}});
};

std::ptrdiff_t count(const Lowered& program, const std::string& name) {
  return std::ranges::count(operators_of(program), name);
}

}  // namespace

TEST_CASE("a cross-entropy and the gradient of its logits are one operator", "[compile]") {
  Classes c;
  const Value rows = cross_entropy_rows(c.logits, c.target);
  const Value diff = gradient(mean(rows), std::vector{c.logits})[0];
  const std::vector results{mean(rows), named(diff, "diff")};
  const JoiningDevice joining;
  const Lowered program = fused(c.graph, results, joining.device);
  REQUIRE(count(program, "cross_entropy+gradient") == 1);
  CHECK(count(program, "cross_entropy") + count(program, "cross_entropy_backward") == 0);
  const LoweredNode& node = producer_of(program, id_of(program, "diff"));
  REQUIRE(node.outputs.size() == 4);
  CHECK(node.outputs.back() == id_of(program, "diff"));
  const auto* op = dynamic_cast<const ops::CrossEntropyWithGradient*>(node.op.get());
  REQUIRE(op != nullptr);
  CHECK(op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
  CHECK(op->in_place(0, 3));
  CHECK_FALSE(op->in_place(0, 0));
  // (exp(logit − largest) / total − 1) / 3 for the row's own class, without the 1 for another one.
  const std::vector others{1.0F / 3, 2.0F};  // what weighs a row, and its class
  const auto slope = [&](std::int32_t at) {
    const std::vector<float> inputs{0.5F, 1.0F, 2.0F, others[0], others[1]};
    return op->slope().evaluate(0, inputs, std::vector<std::int64_t>{at});
  };
  const float part = std::exp(-0.5F) / 2;
  CHECK(std::abs(slope(2) - (part - 1) / 3) < 1e-6F);
  CHECK(std::abs(slope(1) - part / 3) < 1e-6F);
}

TEST_CASE("a gradient that waits for the loss is not joined with it", "[compile]") {
  Classes c;
  const Value loss = mean(cross_entropy_rows(c.logits, c.target));
  const JoiningDevice joining;
  const Value diff = gradient(loss * loss, std::vector{c.logits})[0];
  CHECK(count(fused(c.graph, std::vector{diff}, joining.device), "cross_entropy+gradient") == 0);
  CHECK(count(fused(c.graph, std::vector{gradient(loss, std::vector{c.logits})[0]}), "cross_entropy") == 1);
  // Without a gradient there is nothing to join.
  CHECK(count(fused(c.graph, std::vector{loss}, joining.device), "cross_entropy") == 1);
}

TEST_CASE("the numbers that wait for the check of gradients are computed with it", "[compile]") {
  Graph graph;
  const Value a = graph.input("a", kMatrix), b = graph.input("b", kMatrix);
  const Value rate = variable(graph, "rate", {DType::f32, Shape{}}),
              step = variable(graph, "step", {DType::i32, Shape{}});
  const Value finite = named(all_finite({a, b}, {"a", "b"}), "finite");
  const Scalar ok = scalar::input(1), steps = scalar::input(2);
  const std::vector<Value> numbers =
      pointwise("optimizer_step", {rate, finite, step}, {scalar::input(0) * ok, steps + ok}, {DType::f32, DType::i32});
  const std::vector results{named(a * numbers[0], "c"), finite, numbers[1]};
  const JoiningDevice joining;
  const Lowered program = fused(graph, results, joining.device);
  REQUIRE(operators_of(program) == Names{"all_finite+optimizer_step", "multiply"});
  const LoweredNode& node = program.nodes[0];
  CHECK(names_of(program, node.inputs) == Names{"a", "b", "rate", "step"});
  CHECK(node.outputs.size() == 3);
  const auto* op = dynamic_cast<const ops::AllFiniteWithNumbers*>(node.op.get());
  REQUIRE(op != nullptr);
  CHECK(op->infer(program.specs(node.inputs)) == program.specs(node.outputs));
  CHECK(op->formulas().expression().evaluate(1, std::vector{1.0F, 0.5F, 7.0F}) == 8);
  CHECK(op->in_place(3, 2));
  CHECK_FALSE(op->in_place(0, 2));
  CHECK(operators_of(fused(graph, results)) == Names{"all_finite", "optimizer_step", "multiply"});
}

TEST_CASE("each of several checks takes its numbers along", "[compile]") {
  Graph graph;
  const Value a = graph.input("a", kMatrix), b = graph.input("b", kMatrix);
  const Value first = all_finite({a}, {"a"}), second = all_finite({b}, {"b"});
  const std::vector results{pointwise("one", {first}, scalar::input(0) * 2.0F),
                            pointwise("two", {second}, scalar::input(0) * 3.0F)};
  const JoiningDevice joining;
  CHECK(operators_of(fused(graph, results, joining.device)) == Names{"all_finite+one", "all_finite+two"});
}

TEST_CASE("in a program that pauses, a loss waits for no gradient", "[compile]") {
  Classes c;
  const Value rows = cross_entropy_rows(c.logits, c.target);
  const std::vector results{mean(rows), gradient(mean(rows), std::vector{c.logits})[0]};
  const JoiningDevice joining;
  Lowered program = lower(c.graph, results, false);
  fuse(program, joining.device, {.pauses = true});
  CHECK(count(program, "cross_entropy+gradient") == 0);
  CHECK(count(program, "cross_entropy") == 1);
}

TEST_CASE("a formula of a tensor is not computed with the check of gradients", "[compile]") {
  Graph graph;
  const Value a = graph.input("a", kMatrix);
  const Value finite = all_finite({a}, {"a"});
  const JoiningDevice joining;
  CHECK(operators_of(fused(graph, std::vector{a * finite}, joining.device)) == Names{"all_finite", "multiply"});
}

}  // namespace concord::test
