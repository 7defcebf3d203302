// Dropout in attention: the weights that the random stream names, the same ones in the gradients and in the composed
// form.
#include <shared/attention_dropout.h>

#include <cmath>

#include "ops/attention_loops.hpp"

namespace concord::test {
namespace {

TEST_CASE("attention drops the weights that the random stream names, the same ones in its gradients",
          "[ops][attention][random]") {
  // Scores of zero and values that are the unit matrix: the result is the weights, factor / S.
  constexpr std::int64_t kSize = 64, kQueries = 70;
  constexpr float kDropped = 0.25F;
  Array unit({1, 1, kSize, kSize});
  for (std::int64_t i = 0; i < kSize; ++i) unit.at({0, 0, i, i}) = 1;
  const std::vector<Input> inputs{{Array({1, 2, kQueries, kSize})}, {Array({1, 1, kSize, kSize})}, {unit}};
  ops::AttentionForm form;
  const Build build = [&](const std::vector<Value>& x) {
    const Value dst = attention(x[0], x[1], x[2], {.dropout = kDropped});
    form = dynamic_cast<const ops::Attention&>(*dst.node().op).form();
    // The gradient of v is the sum over queries of both heads; that of k is zero because q is.
    return std::vector{dst, gradient(sum(dst), std::vector{x[2]})[0]};
  };
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, build);
    const Array dst = to_array(results[0]), diff_v = to_array(results[1]);
    const attention_dropout dropout = dropout_of(7, 0, 0, form.purpose, form.keep());  // the seed is 7
    std::vector<double> columns(kSize);
    int wrong = 0;
    for (std::int64_t row = 0; row < 2 * kQueries; ++row) {
      for (std::int64_t s = 0; s < kSize; ++s) {
        const bool kept =
            keeps_weight(dropout, static_cast<std::uint32_t>(row / kQueries),
                         static_cast<std::uint32_t>(row % kQueries), static_cast<std::uint32_t>(s), kQueries);
        const double expected = kept ? 1 / (1.0 - kDropped) / kSize : 0;
        columns[static_cast<std::size_t>(s)] += expected;
        const double got = dst.values[static_cast<std::size_t>(row * kSize + s)];
        if (kept ? std::abs(got - expected) > 1e-7 : got != 0) ++wrong;
      }
    }
    CHECK(wrong == 0);
    for (std::int64_t s = 0; s < kSize; ++s) {
      CHECK(diff_v.at({0, 0, s, 5}) == Approx(columns[static_cast<std::size_t>(s)]).epsilon(1e-5));
    }
  }
}

/// Attention, or its composed form, with its gradients of q, k and v.
Build with_gradients(bool reference, const AttentionOptions& options) {
  return [=](const std::vector<Value>& x) {
    AttentionOptions all = options;
    all.mask = mask_of(x[3]);
    all.lengths = x[4];
    const Value dst = reference ? attention_reference(x[0], x[1], x[2], all) : attention(x[0], x[1], x[2], all);
    std::vector<Value> results{dst};
    const Value loss = sum(dst * dst);
    for (const Value& diff : gradient(loss, std::vector{x[0], x[1], x[2]})) results.push_back(diff);
    return results;
  };
}

TEST_CASE("attention equals its composed form, with dropout too", "[ops][attention][random]") {
  const ops::HeadLayout layout = GENERATE(ops::HeadLayout::heads_first, ops::HeadLayout::tokens_first);
  const bool by_tokens = layout == ops::HeadLayout::tokens_first;
  const Shape keys = by_tokens ? Shape{2, 21, 2, 64} : Shape{2, 2, 21, 64};
  const std::vector<Input> inputs{{normal(by_tokens ? Shape{2, 13, 4, 64} : Shape{2, 4, 13, 64}, 1)},
                                  {normal(keys, 2)},
                                  {normal(keys, 3)},
                                  {integers({1, 4, 1, 21}, 4), DType::i32},
                                  {Array({2}, {21, 6}), DType::i32}};
  const AttentionOptions options{.causal = Causal::last, .layout = layout, .dropout = 0.3F, .scale = 0.4F};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id << (by_tokens ? ", tokens first" : ", heads first"));
    const auto fused = run(device, inputs, with_gradients(false, options));
    const auto composed = run(device, inputs, with_gradients(true, options));
    for (std::size_t k = 0; k < fused.size(); ++k) {
      INFO("result " << k);
      const Array a = to_array(fused[k]), b = to_array(composed[k]);
      double largest = 0, worst = 0;
      for (std::size_t i = 0; i < a.values.size(); ++i) {
        largest = std::max(largest, std::abs(b.values[i]));
        worst = std::max(worst, std::abs(a.values[i] - b.values[i]));
      }
      CHECK(largest > 0.1);
      CHECK(worst < 1e-5 * largest);
    }
  }
}

TEST_CASE("attention drops nothing outside of training, everything at a probability of one", "[ops][attention]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 1, 3, 5}});
  graph.set_training(false);
  const Value evaluated = attention(x, x, x, {.dropout = 0.5F});
  CHECK(evaluated.node().inputs.size() == 3);
  const std::vector<Input> inputs{{normal({1, 1, 3, 5}, 1)}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, [](const std::vector<Value>& v) {
      return std::vector{attention(v[0], v[0], v[0], {.dropout = 1})};
    });
    for (const double value : to_array(results[0]).values) CHECK(value == 0);
  }
}

TEST_CASE("two attentions of one graph draw from different streams", "[ops][attention][random]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 1, 3, 5}});
  const auto purpose = [&] {
    return dynamic_cast<const ops::Attention&>(*attention(x, x, x, {.dropout = 0.5F}).node().op).form().purpose;
  };
  CHECK(purpose() != purpose());
}

}  // namespace
}  // namespace concord::test
