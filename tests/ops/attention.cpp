// Attention: the fused operator and its gradients against plain loops, its masks, grouped heads, dropout, memory; and
// the composed reference.
#include "concord/ops/attention.hpp"

#include <philox.h>

#include <cmath>
#include <optional>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  std::int64_t batch, heads, key_heads, queries, keys, width;
};

/// A case: what hides keys comes as whole numbers, which have no gradient.
struct Setting {
  std::string name;
  Sizes sizes;
  ops::Causal causal = ops::Causal::none;
  std::vector<double> lengths = {};
  std::optional<Shape> mask = {};
  bool hide_row = false;  // the first row of the mask hides every key
  double deviation = 1;   // of q and k
  bool logsumexp = true;  // check it, and the gradient through it; −∞ has no differences
  bool analytic = false;  // gradients by their formulas, where differences take too long
};

/// Whole numbers −4 … 4 become halves, −1000 becomes −∞.
Value mask_of(Value numbers) {
  const Scalar x = scalar::input(0);
  return pointwise("mask", {numbers}, scalar::select(scalar::less(x, -100.0F), -INFINITY, 0.5F * x));
}
double mask_of(double number) { return number < -100 ? -kInfinity : 0.5 * number; }

/// Weights (B, H, T, S) and the logsumexp (B, H, T), by loops.
struct Weights {
  Array weights, logsumexp;
};
Weights weights_of(const Setting& setting, const std::vector<Array>& x) {
  const auto& [batch, heads, key_heads, queries, keys, width] = setting.sizes;
  Weights result{Array({batch, heads, queries, keys}), Array({batch, heads, queries})};
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto length =
        setting.lengths.empty() ? keys : static_cast<std::int64_t>(setting.lengths[static_cast<std::size_t>(b)]);
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t t = 0; t < queries; ++t) {
        std::vector<double> scores(static_cast<std::size_t>(keys), -kInfinity);
        double largest = -kInfinity, sum = 0;
        for (std::int64_t s = 0; s < length; ++s) {
          if (setting.causal == ops::Causal::first && s > t) continue;
          if (setting.causal == ops::Causal::last && s > t + length - queries) continue;
          double score = 0;
          for (std::int64_t d = 0; d < width; ++d) {
            score += scale * x[0].at({b, h, t, d}) * x[1].at({b, h / (heads / key_heads), s, d});
          }
          if (setting.mask) {
            const auto at = [&](std::int64_t axis, std::int64_t i) { return (*setting.mask)[axis] == 1 ? 0 : i; };
            score += mask_of(x[3].at({at(0, b), at(1, h), at(2, t), s}));
          }
          scores[static_cast<std::size_t>(s)] = score;
          largest = std::max(largest, score);
        }
        for (const double score : scores) sum += score == -kInfinity ? 0 : std::exp(score - largest);
        for (std::int64_t s = 0; s < keys && sum > 0; ++s) {
          result.weights.at({b, h, t, s}) = std::exp(scores[static_cast<std::size_t>(s)] - largest) / sum;
        }
        result.logsumexp.at({b, h, t}) = largest + std::log(sum);
      }
    }
  }
  return result;
}

std::vector<Array> forward(const Setting& setting, const std::vector<Array>& x) {
  const auto& [batch, heads, key_heads, queries, keys, width] = setting.sizes;
  const Weights w = weights_of(setting, x);
  Array dst({batch, heads, queries, width});
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t t = 0; t < queries; ++t) {
        for (std::int64_t s = 0; s < keys; ++s) {
          const double weight = w.weights.at({b, h, t, s});
          for (std::int64_t d = 0; d < width; ++d) {
            dst.at({b, h, t, d}) += weight * x[2].at({b, h / (heads / key_heads), s, d});
          }
        }
      }
    }
  }
  if (setting.logsumexp) return {dst, w.logsumexp};
  return {dst};
}

/// diff_q, diff_k, diff_v from the weights: slope = weight·(diff·v − Σ weight·diff·v + diff_logsumexp).
std::vector<Array> backward(const Setting& setting, const std::vector<Array>& x, const std::vector<Array>& seeds) {
  const auto& [batch, heads, key_heads, queries, keys, width] = setting.sizes;
  const Weights w = weights_of(setting, x);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  std::vector<Array> diffs{Array(x[0].shape), Array(x[1].shape), Array(x[2].shape)};
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = h / (heads / key_heads);
      for (std::int64_t t = 0; t < queries; ++t) {
        std::vector<double> through(static_cast<std::size_t>(keys));
        double mean = setting.logsumexp ? -seeds[1].at({b, h, t}) : 0;
        for (std::int64_t s = 0; s < keys; ++s) {
          double& value = through[static_cast<std::size_t>(s)];
          for (std::int64_t d = 0; d < width; ++d) value += seeds[0].at({b, h, t, d}) * x[2].at({b, g, s, d});
          mean += w.weights.at({b, h, t, s}) * value;
        }
        for (std::int64_t s = 0; s < keys; ++s) {
          const double weight = w.weights.at({b, h, t, s});
          const double slope = scale * weight * (through[static_cast<std::size_t>(s)] - mean);
          for (std::int64_t d = 0; d < width; ++d) {
            diffs[0].at({b, h, t, d}) += slope * x[1].at({b, g, s, d});
            diffs[1].at({b, g, s, d}) += slope * x[0].at({b, h, t, d});
            diffs[2].at({b, g, s, d}) += weight * seeds[0].at({b, h, t, d});
          }
        }
      }
    }
  }
  return diffs;
}

Case case_of(const Setting& setting) {
  const auto& [batch, heads, key_heads, queries, keys, width] = setting.sizes;
  Case test{.name = setting.name};
  test.inputs = {{normal({batch, heads, queries, width}, 1, setting.deviation)},
                 {normal({batch, key_heads, keys, width}, 2, setting.deviation)},
                 {normal({batch, key_heads, keys, width}, 3)}};
  if (setting.mask) {
    Array mask = integers(*setting.mask, 4);
    for (std::size_t i = 0; i < mask.values.size(); ++i) {
      if (i % 7 == 3 || (setting.hide_row && i < static_cast<std::size_t>(keys))) mask.values[i] = -1000;
    }
    test.inputs.push_back({mask, DType::i32});
  }
  if (!setting.lengths.empty()) test.inputs.push_back({Array({batch}, setting.lengths), DType::i32});
  test.build = [setting](const std::vector<Value>& x) {
    AttentionOptions options{.causal = setting.causal};
    std::size_t next = 3;
    if (setting.mask) options.mask = mask_of(x[next++]);
    if (!setting.lengths.empty()) options.lengths = x[next];
    const Value dst = attention(x[0], x[1], x[2], options);
    if (!setting.logsumexp) return std::vector{dst};
    return std::vector{dst, Value(&dst.graph(), dst.node_id(), 1)};
  };
  test.reference = [setting](const std::vector<Array>& x) { return forward(setting, x); };
  if (setting.analytic) {
    test.reference_gradient = [setting](const std::vector<Array>& x, const std::vector<Array>& seeds) {
      return backward(setting, x, seeds);
    };
  }
  test.tolerance = 2e-6;
  return test;
}

using ops::Causal;

TEST_CASE("attention and its gradients", "[ops][attention]") {
  check(case_of({.name = "plain", .sizes = {2, 2, 2, 7, 9, 5}}));
  check(case_of({.name = "one query, one key", .sizes = {1, 1, 1, 1, 1, 5}}));
  check(case_of({.name = "grouped heads", .sizes = {2, 6, 2, 3, 4, 5}}));
  check(case_of({.name = "formulas of the tests", .sizes = {2, 2, 2, 7, 9, 5}, .analytic = true}));
  check(case_of({.name = "large scores", .sizes = {1, 2, 2, 7, 9, 5}, .deviation = 30, .analytic = true}));
}

TEST_CASE("causal attention", "[ops][attention]") {
  check(case_of({.name = "more keys", .sizes = {1, 2, 1, 5, 9, 5}, .causal = Causal::first}));
  check(case_of({.name = "more queries", .sizes = {1, 2, 1, 9, 5, 5}, .causal = Causal::first}));
  check(case_of({.name = "last, more keys", .sizes = {1, 2, 1, 5, 9, 5}, .causal = Causal::last}));
  check(case_of(
      {.name = "last, more queries", .sizes = {1, 2, 1, 9, 5, 5}, .causal = Causal::last, .logsumexp = false}));
}

TEST_CASE("attention with lengths and masks", "[ops][attention]") {
  check(case_of({.name = "lengths", .sizes = {3, 2, 1, 4, 9, 5}, .lengths = {9, 4, 1}}));
  check(case_of({.name = "an empty length", .sizes = {2, 2, 1, 4, 9, 5}, .lengths = {0, 5}, .logsumexp = false}));
  check(case_of({.name = "last key of each length",
                 .sizes = {3, 2, 1, 4, 9, 5},
                 .causal = Causal::last,
                 .lengths = {9, 4, 2},
                 .logsumexp = false}));
  check(case_of({.name = "mask", .sizes = {2, 2, 1, 4, 9, 5}, .mask = Shape{2, 2, 4, 9}}));
  check(case_of({.name = "mask of keys", .sizes = {2, 2, 1, 4, 9, 5}, .mask = Shape{2, 1, 1, 9}}));
  check(case_of({.name = "mask of heads", .sizes = {2, 2, 1, 4, 9, 5}, .mask = Shape{1, 2, 4, 9}}));
  check(case_of({.name = "a row that sees nothing",
                 .sizes = {2, 2, 1, 4, 9, 5},
                 .mask = Shape{1, 1, 4, 9},
                 .hide_row = true,
                 .logsumexp = false}));
}

TEST_CASE("attention over several tiles", "[ops][attention]") {
  check(case_of({.name = "width 64", .sizes = {1, 2, 1, 70, 130, 64}, .analytic = true}));
  check(case_of({.name = "one query of width 64", .sizes = {2, 2, 2, 1, 130, 64}, .analytic = true}));
  check(case_of({.name = "all options",
                 .sizes = {2, 4, 2, 70, 70, 64},
                 .causal = Causal::first,
                 .lengths = {70, 37},
                 .mask = Shape{2, 1, 70, 70},
                 .analytic = true}));
  check(case_of({.name = "last of a length",
                 .sizes = {2, 2, 1, 33, 100, 20},
                 .causal = Causal::last,
                 .lengths = {100, 61},
                 .analytic = true}));
}

TEST_CASE("attention of wide heads", "[ops][attention]") {
  check(case_of({.name = "width 128", .sizes = {1, 2, 1, 35, 40, 128}, .analytic = true}));
  check(case_of({.name = "width 256", .sizes = {1, 1, 1, 19, 35, 256}, .analytic = true}));
}

TEST_CASE("a row that sees no key gives zeros and a logsumexp of minus infinity", "[ops][attention]") {
  const std::vector<Input> inputs{{normal({1, 1, 2, 5}, 1)},
                                  {normal({1, 1, 3, 5}, 2)},
                                  {normal({1, 1, 3, 5}, 3)},
                                  {Array({1}, {0}), DType::i32}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, [](const std::vector<Value>& x) {
      const Value dst = attention(x[0], x[1], x[2], {.lengths = x[3]});
      return std::vector{dst, Value(&dst.graph(), dst.node_id(), 1)};
    });
    for (const double v : to_array(results[0]).values) CHECK(v == 0);
    for (const double v : to_array(results[1]).values) CHECK(v == -kInfinity);
  }
}

TEST_CASE("a length outside the keys gives NaN, in its batch alone", "[ops][attention]") {
  const std::vector<Input> inputs{{normal({3, 1, 2, 5}, 1)},
                                  {normal({3, 1, 3, 5}, 2)},
                                  {normal({3, 1, 3, 5}, 3)},
                                  {Array({3}, {4, 3, -1}), DType::i32}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, [](const std::vector<Value>& x) {
      std::vector<Value> all{attention(x[0], x[1], x[2], {.lengths = x[3]})};
      for (const Value& diff : gradient(sum(all[0]), std::vector{x[0], x[1], x[2]})) all.push_back(diff);
      return all;
    });
    for (const Tensor& result : results) {
      const Array values = to_array(result);
      const std::size_t part = values.values.size() / 3;
      for (std::size_t i = 0; i < values.values.size(); ++i) CHECK(std::isnan(values.values[i]) == (i / part != 1));
    }
  }
}

TEST_CASE("what is hidden by a length may be anything", "[ops][attention]") {
  Array k = normal({1, 1, 6, 5}, 2), v = normal({1, 1, 6, 5}, 3);
  for (std::size_t i = 20; i < 30; ++i) k.values[i] = v.values[i] = std::nan("");
  const std::vector<Input> inputs{{normal({1, 1, 2, 5}, 1)}, {k}, {v}, {Array({1}, {4}), DType::i32}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, [](const std::vector<Value>& x) {
      std::vector<Value> all{attention(x[0], x[1], x[2], {.lengths = x[3]})};
      for (const Value& diff : gradient(sum(all[0]), std::vector{x[0], x[1], x[2]})) all.push_back(diff);
      return all;
    });
    for (const Tensor& result : results) {
      for (const double value : to_array(result).values) CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("a NaN in a score stays one", "[ops][attention]") {
  Array q = normal({1, 1, 2, 5}, 1);
  q.values[0] = std::nan("");
  const std::vector<Input> inputs{{q}, {normal({1, 1, 3, 5}, 2)}, {normal({1, 1, 3, 5}, 3)}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results =
        run(device, inputs, [](const std::vector<Value>& x) { return std::vector{attention(x[0], x[1], x[2])}; });
    const Array dst = to_array(results[0]);
    for (std::size_t i = 0; i < 10; ++i) CHECK(std::isnan(dst.values[i]) == (i < 5));
  }
}

TEST_CASE("attention drops the weights that the random stream names, the same ones in its gradients",
          "[ops][attention][random]") {
  // Scores of zero and values that are the unit matrix: the result is the weights, factor / S.
  constexpr std::int64_t kSize = 70;
  constexpr float kDropped = 0.25F;
  Array unit({1, 1, kSize, kSize});
  for (std::int64_t i = 0; i < kSize; ++i) unit.at({0, 0, i, i}) = 1;
  const std::vector<Input> inputs{{Array({1, 2, kSize, kSize})}, {Array({1, 1, kSize, kSize})}, {unit}};
  std::uint32_t purpose = 0;
  const Build build = [&](const std::vector<Value>& x) {
    const Value dst = attention(x[0], x[1], x[2], {.dropout = kDropped});
    purpose = dynamic_cast<const ops::Attention&>(*dst.node().op).form().purpose;
    // The gradient of v is the sum over queries of both heads; that of k is zero because q is.
    return std::vector{dst, gradient(sum(dst), std::vector{x[2]})[0]};
  };
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, build);
    const Array dst = to_array(results[0]), diff_v = to_array(results[1]);
    std::vector<double> columns(kSize);
    int wrong = 0;
    for (std::int64_t row = 0; row < 2 * kSize; ++row) {
      for (std::int64_t s = 0; s < kSize; ++s) {
        const bool kept =
            philox_uniform(static_cast<std::uint64_t>(row * 72 + s), purpose, 0, 7) < 1 - kDropped;  // the seed is 7
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
  const std::vector<Input> inputs{{normal({2, 4, 13, 20}, 1)},
                                  {normal({2, 2, 21, 20}, 2)},
                                  {normal({2, 2, 21, 20}, 3)},
                                  {integers({1, 4, 1, 21}, 4), DType::i32},
                                  {Array({2}, {21, 6}), DType::i32}};
  const AttentionOptions options{.causal = Causal::last, .dropout = 0.3F, .scale = 0.4F};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
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

TEST_CASE("the composed form has a gradient through its mask", "[ops][attention]") {
  const Setting plain{.name = "mask as operand", .sizes = {1, 2, 1, 3, 4, 5}, .logsumexp = false};
  check({.name = plain.name,
         .inputs = {{normal({1, 2, 3, 5}, 1)}, {normal({1, 1, 4, 5}, 2)}, {normal({1, 1, 4, 5}, 3)},
                    {normal({1, 2, 3, 4}, 4)}},
         .build = [](const std::vector<Value>& x) {
           return std::vector{attention_reference(x[0], x[1], x[2], {.mask = x[3]})};
         },
         .reference = [plain](const std::vector<Array>& x) {
           Setting setting = plain;
           setting.mask = Shape{1, 2, 3, 4};
           std::vector<Array> doubled = x;
           for (double& v : doubled[3].values) v *= 2;  // the loops halve what they read
           return forward(setting, doubled);
         },
         .tolerance = 2e-6});
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 1, 3, 5}});
  const Value mask = graph.input("mask", {DType::f32, {1, 1, 3, 3}});
  CHECK_THROWS_WITH(gradient(sum(attention(x, x, x, {.mask = mask})), std::vector{mask}),
                    contains("attention_reference"));
  CHECK_THROWS_AS(gradient(sum(attention(x, x, x, {.mask = mask})), std::vector{mask}), NotSupported);
}

TEST_CASE("the memory of attention grows with the length, not with its square", "[ops][attention]") {
  const auto memory = [](const DevicePtr& device, std::int64_t length) {
    Graph graph;
    const Value q = graph.input("q", {DType::f32, {1, 2, length, 5}});
    const Value k = graph.input("k", {DType::f32, {1, 2, length, 5}});
    const Value loss = sum(square(attention(q, k, k)));
    const std::vector<Value> outputs = gradient(loss, std::vector{q, k});
    return static_cast<double>(compile(graph, outputs, std::make_shared<Variables>(device, 0)).memory());
  };
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    CHECK(memory(device, 4096) < 2.1 * memory(device, 2048));
    CHECK(memory(device, 4096) < 4096.0 * 4096.0);
  }
}

TEST_CASE("attention refuses what does not fit", "[ops][attention]") {
  const auto error_of = [](const Shape& q, const Shape& k, const Shape& v) {
    return shape_error({{DType::f32, q}, {DType::f32, k}, {DType::f32, v}},
                       [](const std::vector<Value>& x) { return std::vector{attention(x[0], x[1], x[2])}; });
  };
  CHECK_THAT(error_of({2, 4, 7, 5}, {2, 3, 9, 5}, {2, 3, 9, 5}), contains("[2, 4, 7, 5]") && contains("[2, 3, 9, 5]"));
  CHECK_THAT(error_of({2, 4, 7, 5}, {2, 4, 9, 6}, {2, 4, 9, 6}), contains("[2, 4, 9, 6]"));
  CHECK_THAT(error_of({2, 4, 7, 5}, {1, 4, 9, 5}, {1, 4, 9, 5}), contains("[1, 4, 9, 5]"));
  CHECK_THAT(error_of({2, 4, 7, 5}, {2, 4, 9, 5}, {2, 4, 8, 5}), contains("v") && contains("[2, 4, 8, 5]"));
  CHECK_THAT(error_of({2, 4, 0, 5}, {2, 4, 9, 5}, {2, 4, 9, 5}), contains("q [2, 4, 0, 5] is empty"));
  CHECK_THAT(error_of({2, 4, 7, 5}, {2, 4, 0, 5}, {2, 4, 0, 5}), contains("k [2, 4, 0, 5] is empty"));
  CHECK_THAT(error_of({4, 7, 5}, {4, 9, 5}, {4, 9, 5}), contains("(batch, heads, length, width)"));

  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 4, 7, 5}});
  const Value wide = graph.input("wide", {DType::f32, {1, 1, 2, 257}});
  const Value mask = graph.input("mask", {DType::f32, {2, 4, 7, 8}});
  const Value lengths = graph.input("lengths", {DType::i32, {3}});
  CHECK_THROWS_WITH(attention(x, x, x, {.mask = mask}), contains("[2, 4, 7, 7]") && contains("[2, 4, 7, 8]"));
  CHECK_THROWS_WITH(attention(x, x, x, {.lengths = lengths}), contains("i32 [2]") && contains("i32 [3]"));
  CHECK_THROWS_WITH(attention_reference(x, x, x, {.mask = mask}), contains("[2, 4, 7, 7]"));
  CHECK_THROWS_AS(attention(x, x, x, {.dropout = 1.5F}), ArgumentError);
  CHECK_THROWS_AS(attention(x, x, x, {.scale = INFINITY}), ArgumentError);
  CHECK_THROWS_AS(attention(wide, wide, wide), NotSupported);
}

}  // namespace
}  // namespace concord::test
