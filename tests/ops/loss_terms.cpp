// terms_of(): the terms of losses that are sums of each other.
#include "concord/ops/loss_terms.hpp"

#include <cmath>

#include "concord/ops/elementary.hpp"
#include "concord/ops/reduce.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Behind `rounds` sums of a value with half of itself, which as a tree have 2^rounds leaves.
Value doubled(Value x, int rounds) {
  for (int i = 0; i < rounds; ++i) x = x + x * 0.5F;
  return x;
}

TEST_CASE("a loss that is read often is one term", "[ops]") {
  constexpr int kRounds = 40;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    std::size_t terms = 0;
    std::int32_t added = 0;
    const auto build = [&](const std::vector<Value>& x) {
      const Value loss = doubled(loss::weighted_mean(sum(x[0]), sum(x[1])) + loss::total(sum(x[0])) + 0.25F, kRounds);
      const std::int32_t before = loss.graph().size();
      const std::vector<LossTerm> parts = terms_of(loss);
      added = loss.graph().size() - before;
      terms = parts.size();
      Value whole = parts[0].value();
      for (std::size_t k = 1; k < parts.size(); ++k) whole = whole + parts[k].value();
      return std::vector{loss, whole};
    };
    const std::vector<Tensor> found = run(device, {{Array({2}, {3, 4})}, {Array({2}, {0.5, 1.5})}}, build);
    CHECK(terms == 3);  // a weighted mean, a total and a constant
    CHECK(added < 20);
    CHECK(found[1].values<float>()[0] == Approx(found[0].values<float>()[0]).epsilon(1e-5));
    CHECK(found[0].values<float>()[0] == Approx((3.5 + 7 + 0.25) * std::pow(1.5, kRounds)).epsilon(1e-4));
  }
}

TEST_CASE("weights that are computed alike are one", "[ops]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  const auto weight = [&](int rounds) { return doubled(sum(x * 2.0F), rounds); };
  const auto loss = [&](int rounds) { return loss::weighted_mean(sum(x), weight(rounds)); };
  CHECK(terms_of(loss(40) + loss(40)).size() == 1);
  CHECK(terms_of(loss(40) + loss(39)).size() == 2);
}

}  // namespace
}  // namespace concord::test
