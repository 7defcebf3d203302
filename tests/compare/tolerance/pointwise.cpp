// pointwise_tolerance(): small gradients and small updates that are wrong are not within it.
#include "concord/compare/tolerance/pointwise.hpp"

#include <cmath>

#include "concord/ops/activations.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>(Shape{static_cast<std::int64_t>(values.size())}, values);
}

double tolerance(const Operator* op, const std::string& name, std::vector<Tensor> inputs, const Tensor& result) {
  ReplayedNode node{{}, op, {}, std::move(inputs), {"result"}, {result}};
  node.entry.node = name;
  if (name.starts_with("update/")) node.entry.pass = Pass::update;
  Magnitudes magnitudes;
  return pointwise_tolerance(node, node.results, 0, magnitudes);
}

class Formulas {
 public:
  /// Of inputs with three numbers each.
  const Operator* of(std::size_t inputs, const Scalar& formula) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < inputs; ++i) {
      values.push_back(graph_.input("x" + std::to_string(count_++), {DType::f32, {3}}));
    }
    return pointwise("formula", values, formula).node().op.get();
  }

 private:
  Graph graph_;
  int count_ = 0;
};

const Scalar kA = scalar::input(0), kB = scalar::input(1);

}  // namespace

TEST_CASE("what is proportional to a gradient is allowed a part of the gradient", "[compare]") {
  Formulas formulas;
  const Tensor small = floats({1e-6F, -2e-6F, 1e-6F}), large = floats({10, 5, -10});
  for (const Scalar& formula : {scalar::select(scalar::less(0.0F, kB), kA, 0.0F), kA * kB, kA * (1.0F - kB * kB),
                                kA * scalar::exp(kB), kA / kB, kA * scalar::coordinate(0) - kA * kB}) {
    CHECK(tolerance(formulas.of(2, formula), "grad/relu", {small, large}, small) == Approx(4e-5 * (2e-6 + 0.2e-6)));
  }
  // Not proportional to either, but for the last to the second.
  for (const Scalar& formula :
       {kA + kB, scalar::max(kA, kB), scalar::exp(kA) * scalar::exp(kB), kB * scalar::expm1(kA)}) {
    CHECK(tolerance(formulas.of(2, formula), "grad/relu", {small, large}, small) == Approx(4e-5 * (2e-6 + 0.1)));
  }
}

TEST_CASE("a formula may jump where a rounded operand passes a limit, unless it is continuous there", "[compare]") {
  const std::vector<Tensor> inputs{floats({1, 2}), floats({3, 4}), Tensor::of<std::int32_t>({2}, {1, 0})};
  const auto jumps = [&](const Scalar& formula) { return may_jump(Expression({formula}, 3), inputs); };
  const Scalar label = scalar::input(2), place = scalar::coordinate(0);
  const auto slope = [&](const Scalar& hit) {
    return scalar::select(scalar::equal(kA, 0.0F), 0.0F, kA * (scalar::exp(kB) - hit));
  };
  CHECK_FALSE(jumps(slope(scalar::equal(place, label))));
  CHECK_FALSE(jumps(slope(scalar::less(2.0F * label, place + 1.0F))));
  CHECK_FALSE(jumps(scalar::floor(label / 2.0F) * kA));
  CHECK(jumps(slope(scalar::equal(place, kB))));
  CHECK(jumps(scalar::floor(kA)));
  CHECK(jumps(scalar::select(scalar::less(kA, kB), kA, 0.0F)));
  // Both sides of a limit.
  const auto clamped = [&](const Scalar& low, const Scalar& high, const Scalar& between) {
    return scalar::select(scalar::less_equal(kA, -3.0F), low,
                          scalar::select(scalar::less_equal(3.0F, kA), high, between));
  };
  CHECK_FALSE(jumps(clamped(0.0F, kA, kA * (kA + 3.0F) / 6.0F)));
  CHECK(jumps(kB * clamped(0.0F, 1.0F, (2.0F * kA + 3.0F) / 6.0F)));
  CHECK(jumps(scalar::select(scalar::equal(kA, 1.0F), kB, 0.0F)));
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  for (const Value& y : {hard_swish(x), mish(x)}) {
    const auto& op = dynamic_cast<const ops::Pointwise&>(*y.node().op);
    CHECK_FALSE(may_jump(op.expression(), std::span(inputs).first(1)));
  }
}

TEST_CASE("a small update that is left out, or has the wrong sign, is not within its tolerance", "[compare]") {
  Formulas formulas;
  const Operator* const sgd = formulas.of(2, kA - 0.01F * kB);
  const std::vector<float> weights{1, -0.5F, 0.25F}, gradients{1e-3F, -2e-3F, 1e-3F};
  std::vector<float> expected(3), wrong_sign(3);
  for (std::size_t i = 0; i < 3; ++i) {
    expected[i] = weights[i] - 0.01F * gradients[i];
    wrong_sign[i] = weights[i] + 0.01F * gradients[i];
  }
  const double allowed = tolerance(sgd, "update/w/sgd", {floats(weights), floats(gradients)}, floats(expected));
  CHECK(allowed > 0x1p-24);
  CHECK(largest_difference(floats(weights), floats(expected)) > allowed);
  CHECK(largest_difference(floats(wrong_sign), floats(expected)) > allowed);
  CHECK(tolerance(sgd, "sgd", {floats(weights), floats(gradients)}, floats(expected)) > 10 * allowed);
}

}  // namespace concord::test
