// Masks and logits that weigh nothing do not widen a tolerance, and right devices are within it.
#include "concord/compare/tolerance/operand_scale.hpp"

#include <limits>

#include "compare/float64_test.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/loss_gradient.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::test {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();
const ops::CrossEntropyWithGradient kJoined(ops::CrossEntropy(0), Expression({scalar::input(3) * scalar::input(0)}, 4));

Tensor floats(Shape shape, const std::vector<float>& values) { return Tensor::of<float>(std::move(shape), values); }

/// Of result k.
double tolerance(const Operator& op, const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                 std::size_t k = 0, Precision precision = Precision::fp32) {
  return tolerance_of(ReplayedNode{{}, &op, {}, inputs, {}, results}, k, precision);
}

/// Of a row with the largest logit 3 and another logit: the loss 0.5, and a gradient of 0.0625 with the weight 0.125.
double loss_tolerance(float other, std::size_t k, Precision precision = Precision::fp32) {
  return tolerance(kJoined,
                   {floats({1, 2}, {3, other}), Tensor::of<std::int32_t>({1}, std::vector<std::int32_t>{0}),
                    floats({1, 1}, {0.125F})},
                   {floats({1}, {0.5F}), floats({1}, {3}), floats({1}, {1}), floats({1, 2}, {0.0625F, -0.0625F})}, k,
                   precision);
}

}  // namespace

TEST_CASE("softmax is allowed a part of its result, however large its logits are", "[compare]") {
  const ops::Softmax softmax(1, false), logarithm(1, true);
  for (const float masked : {0.0F, -1e9F, -kMost}) {
    CHECK(tolerance(softmax, {floats({1, 2}, {1, masked})}, {floats({1, 2}, {0.5F, 0.5F})}) == Approx(4e-5 * 0.5));
  }
  CHECK(tolerance(softmax, {floats({1, 2}, {1, 2})}, {floats({1, 2}, {0, 0})}) > 0);
  CHECK(tolerance(logarithm, {floats({1, 2}, {1000, 1000})}, {floats({1, 2}, {-0.5F, -0.5F})}) ==
        Approx(4e-5 * (0.5 + 10)));
  const ops::SoftmaxBackward backward(1, true);
  CHECK(tolerance(backward, {floats({1, 2}, {2, 1}), floats({1, 2}, {0, -1e9F})}, {floats({1, 2}, {1, 1})}) ==
        Approx(4e-5 * (1 + 0.02)));
}

TEST_CASE("attention's tolerance does not grow with a mask that hides some of the keys", "[compare]") {
  const Shape one{1, 1, 1, 1}, two{1, 1, 2, 1};
  const ops::Attention attention({.mask = true});
  const auto allowed = [&](float masked, float logarithm) {
    return tolerance(
        attention, {floats(one, {1}), floats(two, {1, 1}), floats(two, {0.5F, -2}), floats({1, 1, 1, 2}, {0, masked})},
        {floats(one, {0.5F}), floats({1, 1, 1}, {logarithm}), floats({2, 1, 1, 1}, {1, 1})});
  };
  CHECK(allowed(-1e9F, 1) == Approx(4e-5 * (0.5 + 0.02)));
  CHECK(allowed(-kMost, 1) == Approx(4e-5 * (0.5 + 0.02)));
  CHECK(allowed(-1e9F, -1000) == Approx(4e-5 * (0.5 + 0.01 * 1000 * 2)));  // a bias of all keys
}

TEST_CASE("the tolerance of a loss and its gradient is that of the largest logit of a row", "[compare]") {
  for (const float other : {2.0F, -1e9F, -kMost}) {
    CHECK(loss_tolerance(other, 0) == Approx(4e-5 * (0.5 + 0.01 * 3)));
    CHECK(loss_tolerance(other, 3) == Approx(4e-5 * (0.0625 + 0.01 * 0.125 * 3)));
    const double unit = unit_of(Precision::bf16);
    CHECK(loss_tolerance(other, 3, Precision::bf16) == Approx(8 * unit * 0.125 * 3).epsilon(1e-2));
  }
}

TEST_CASE("in bf16 a loss gradient with a wrong sign is not within its tolerance", "[compare]") {
  Graph graph;
  const Value logits = graph.input("x", {DType::f32, {2, 3}}), labels = graph.input("t", {DType::i32, {2}});
  const Value loss = sum(cross_entropy_rows(logits, labels));
  const Value slope = gradient(loss, {logits})[0];
  REQUIRE(slope.node().op->name() == "cross_entropy_backward");
  const std::vector<Tensor> inputs{floats({2, 1}, {1, 1}), floats({2, 3}, {1, 2, 3, 1, 2, 3}), floats({2, 1}, {3, 3}),
                                   floats({2, 1}, {1.5F, 1.5F}),
                                   Tensor::of<std::int32_t>({2, 1}, std::vector<std::int32_t>{0, 2})};
  const Tensor result = floats({2, 3}, {-0.91F, 0.24F, 0.67F, 0.09F, 0.24F, -0.33F});
  CHECK(tolerance(*slope.node().op, inputs, {result}, 0, Precision::bf16) < 0.2);
}

TEST_CASE("float64: masks and large logits", "[compare]") {
  const auto masked = [](Value x, float mask) { return concat({x, x * 0.0F + mask}, -1); };
  for (const float mask : {-1e9F, -kMost}) {
    for (const float factor : {1.0F, 500.0F}) {
      check("softmax",
            [&](Operators& o) {
              return softmax(masked(o.input({3, 4, 5}) * factor, mask), 2);
            },
            {"softmax", "softmax_backward"});
      check("classes",
            [&](Operators& o) {
              return cross_entropy_rows(masked(o.input({3, 4}) * factor, mask), o.indices({3}, {1, 3, 0}));
            },
            {"cross_entropy"});
    }
    check("attention",
          [&](Operators& o) {
            const Value hides = concat({full(o.graph(), {1, 1, 3, 4}, 0), full(o.graph(), {1, 1, 3, 2}, mask)}, -1);
            return attention(o.input({2, 2, 3, 8}), o.input({2, 2, 6, 8}), o.input({2, 2, 6, 8}), {.mask = hides});
          },
          {"attention"});
    check("log", [&](Operators& o) { return log_softmax(o.input({3, 4, 5}) * 500.0F, 2); }, {"log_softmax"});
  }
}

}  // namespace concord::test
