// attention_tolerance(): rounded factors are within it, what is missing is not.
#include "concord/compare/attention_tolerance.hpp"

#include <bit>
#include <cmath>
#include <random>

#include "concord/compare/float64/evaluate.hpp"
#include "concord/compare/tolerance.hpp"
#include "concord/ops/attention.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

constexpr std::int64_t kHeads = 2, kQueries = 33, kKeys = 47, kWidth = 32;

Tensor normal(std::int64_t tokens, double deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> numbers(0, static_cast<float>(deviation));
  Tensor tensor(DType::f32, {1, kHeads, tokens, kWidth});
  for (float& x : tensor.values<float>()) x = numbers(random);
  return tensor;
}

/// With 8 bits.
Tensor rounded(const Tensor& tensor) {
  Tensor result = tensor.clone();
  for (float& x : result.values<float>()) {
    x = std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x8000U) & 0xFFFF0000U);
  }
  return result;
}

/// `inputs` with results of the host.
ReplayedNode evaluated(const Operator& op, std::vector<Tensor> inputs) {
  std::vector<TensorSpec> specs;
  for (const Tensor& input : inputs) specs.push_back(input.spec());
  ReplayedNode node{{}, &op, {}, std::move(inputs), {}, {}};
  for (const TensorSpec& spec : op.infer(specs)) node.results.emplace_back(spec);
  const float64::Results exact = float64::evaluate(node);
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    std::ranges::transform(exact->at(k), node.results[k].values<float>().begin(),
                           [](double x) { return static_cast<float>(x); });
  }
  return node;
}

void check_all(const ReplayedNode& right, const ReplayedNode& with_rounded_factors) {
  for (std::size_t k = 0; k < right.results.size(); ++k) {
    CAPTURE(right.op->name(), k);
    const double allowed = tolerance_of(right, k, Precision::bf16);
    CHECK(largest_difference(with_rounded_factors.results[k], right.results[k]) < allowed);
    CHECK(extent_of(right.results[k]).largest > 1.5 * allowed);
  }
}

}  // namespace

TEST_CASE("attention may be off by what rounding its factors does, and not be missing", "[compare]") {
  for (const double of_diff : {1.0, 1e-5}) {
    for (const double of_query : {0.1, 1.0, 3.0}) {
      CAPTURE(of_diff, of_query);
      const ops::AttentionForm form{.scale = 1 / std::sqrt(static_cast<float>(kWidth))};
      const Tensor q = normal(kQueries, of_query, 1), k = normal(kKeys, 1, 2), v = normal(kKeys, 1, 3),
                   diff = normal(kQueries, of_diff, 4);
      const ops::Attention attention(form);
      const ReplayedNode forward = evaluated(attention, {q, k, v});
      check_all(forward, evaluated(attention, {rounded(q), rounded(k), rounded(v)}));

      Tensor delta(DType::f32, forward.results[1].shape());
      for (std::size_t row = 0; row < delta.values<float>().size(); ++row) {
        for (std::size_t i = row * kWidth; i < (row + 1) * kWidth; ++i) {
          delta.values<float>()[row] += diff.values<float>()[i] * forward.results[0].values<float>()[i];
        }
      }
      const std::vector<Tensor> inputs{q, k, v, diff, forward.results[1], delta};
      const std::vector<Tensor> factors{rounded(q), rounded(k), rounded(v), rounded(diff), forward.results[1], delta};
      const ops::AttentionBackwardQuery of_q(form);
      const ops::AttentionBackwardKeyValue of_kv(form);
      check_all(evaluated(of_q, inputs), evaluated(of_q, factors));
      check_all(evaluated(of_kv, inputs), evaluated(of_kv, factors));
    }
  }
}

TEST_CASE("other operators have no tolerance of attention", "[compare]") {
  Graph graph;
  const Value y = relu(graph.input("x", {DType::f32, {3}}));
  const ReplayedNode node{{}, y.node().op.get(), {}, {Tensor(DType::f32, {3})}, {}, {Tensor(DType::f32, {3})}};
  Extents extents;
  CHECK(attention_tolerance(node, node.results, 0, 0x1p-8, extents) == 0);
}

}  // namespace concord::test
