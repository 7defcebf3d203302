// Attention whose queries and keys are no whole number of a kernel's tiles, over the widths and forms that kernels
// specialise on: results and gradients against plain loops in double precision.
#include <shared/attention_dropout.h>

#include <cmath>

#include "concord/ops/attention.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using ops::Causal;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct EdgeSetting {
  std::string name;
  std::int64_t batch, heads, key_heads, queries, keys, width;
  Causal causal = Causal::none;
  std::vector<double> lengths = {};
  bool mask = false;
  float dropout = 0;
  std::optional<float> scale = {};
};

std::vector<Input> inputs_of(const EdgeSetting& s) {
  std::vector<Input> inputs{{normal({s.batch, s.heads, s.queries, s.width}, 1)},
                            {normal({s.batch, s.key_heads, s.keys, s.width}, 2)},
                            {normal({s.batch, s.key_heads, s.keys, s.width}, 3)},
                            {normal({s.batch, s.heads, s.queries, s.width}, 4)}};
  Array mask = normal({s.batch, 1, s.queries, s.keys}, 5);
  for (std::size_t i = 0; i < mask.values.size(); ++i) {
    if (i % 7 == 3 || i < static_cast<std::size_t>(s.keys)) mask.values[i] = -kInfinity;  // the first row sees nothing
  }
  if (s.mask) inputs.push_back({mask});
  if (!s.lengths.empty()) inputs.push_back({Array({s.batch}, s.lengths), DType::i32});
  return inputs;
}

/// Result, logsumexp and the gradients of q, k and v for d loss / d result = input 3, whose loss is Σ result·input 3.
std::vector<Array> by_loops(const EdgeSetting& s, const std::vector<Input>& inputs, const ops::AttentionForm& form) {
  const Array &q = inputs[0].value, &k = inputs[1].value, &v = inputs[2].value, &diff = inputs[3].value;
  const double scale = s.scale ? *s.scale : 1 / std::sqrt(static_cast<double>(s.width));
  Array dst(q.shape), logsumexp({s.batch, s.heads, s.queries}), diff_q(q.shape), diff_k(k.shape), diff_v(v.shape);
  std::vector<double> weights(static_cast<std::size_t>(s.keys)), factors(weights.size()), through(weights.size());
  for (std::int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    const std::int64_t t = row % s.queries, h = row / s.queries % s.heads, b = row / s.queries / s.heads;
    const std::int64_t g = h / (s.heads / s.key_heads);
    const auto length = s.lengths.empty() ? s.keys : static_cast<std::int64_t>(s.lengths[static_cast<std::size_t>(b)]);
    std::int64_t seen = length;
    if (s.causal == Causal::first) seen = std::min(length, t + 1);
    if (s.causal == Causal::last) seen = std::clamp<std::int64_t>(t + 1 + length - s.queries, 0, length);
    double largest = -kInfinity, sum = 0, delta = 0;
    for (std::int64_t i = 0; i < seen; ++i) {
      double score = s.mask ? inputs[4].value.at({b, 0, t, i}) : 0;
      for (std::int64_t d = 0; d < s.width; ++d) score += scale * q.at({b, h, t, d}) * k.at({b, g, i, d});
      weights[static_cast<std::size_t>(i)] = score;
      largest = std::max(largest, score);
    }
    for (std::int64_t i = 0; i < seen; ++i) {
      double& weight = weights[static_cast<std::size_t>(i)];
      weight = largest == -kInfinity ? 0 : std::exp(weight - largest);
      sum += weight;
    }
    logsumexp.at({b, h, t}) = largest + std::log(sum);
    for (std::int64_t i = 0; i < seen; ++i) {
      const auto place = static_cast<std::size_t>(i);
      weights[place] = sum > 0 ? weights[place] / sum : 0;
      factors[place] = 1;
      if (s.dropout > 0) {
        const auto number = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
        const attention_dropout dropout = dropout_of(7, 0, 0, form.purpose, form.keep());  // the seed is 7
        const bool is_kept = keeps_weight(dropout, number(b * s.heads + h), number(t), number(i), number(s.queries));
        factors[place] = is_kept ? 65536.0 / form.keep() : 0;
      }
      through[place] = 0;
      for (std::int64_t d = 0; d < s.width; ++d) {
        dst.at({b, h, t, d}) += weights[place] * factors[place] * v.at({b, g, i, d});
        through[place] += diff.at({b, h, t, d}) * v.at({b, g, i, d});
      }
      delta += weights[place] * factors[place] * through[place];
    }
    for (std::int64_t i = 0; i < seen; ++i) {
      const auto place = static_cast<std::size_t>(i);
      const double slope = scale * weights[place] * (factors[place] * through[place] - delta);
      for (std::int64_t d = 0; d < s.width; ++d) {
        diff_q.at({b, h, t, d}) += slope * k.at({b, g, i, d});
        diff_k.at({b, g, i, d}) += slope * q.at({b, h, t, d});
        diff_v.at({b, g, i, d}) += weights[place] * factors[place] * diff.at({b, h, t, d});
      }
    }
  }
  return {dst, logsumexp, diff_q, diff_k, diff_v};
}

/// Errors beside the largest number of a result: sums of products in fp32, and their factors' roundings.
void check(const EdgeSetting& s) {
  constexpr double kTolerance = 4e-6;
  const std::vector<Input> inputs = inputs_of(s);
  ops::AttentionForm form;
  const Build build = [&](const std::vector<Value>& x) {
    AttentionOptions options{.causal = s.causal, .dropout = s.dropout, .scale = s.scale};
    if (s.mask) options.mask = x[4];
    if (!s.lengths.empty()) options.lengths = x.back();
    const Value dst = attention(x[0], x[1], x[2], options);
    form = dynamic_cast<const ops::Attention&>(*dst.node().op).form();
    std::vector<Value> results{dst, Value(&dst.graph(), dst.node_id(), 1)};
    for (const Value& slope : gradient(sum(dst * x[3]), std::vector{x[0], x[1], x[2]})) results.push_back(slope);
    return results;
  };
  for (const DevicePtr& device : devices()) {
    const std::vector<Tensor> results = run(device, inputs, build);
    const std::vector<Array> expected = by_loops(s, inputs, form);
    for (std::size_t k = 0; k < results.size(); ++k) {
      INFO(s.name << ", result " << k << " on " << device->info().id);
      const Array got = to_array(results[k]);
      double largest = 0, worst = 0;
      int strange = 0;
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        const double wanted = expected[k].values[i];
        if (std::isfinite(wanted)) largest = std::max(largest, std::abs(wanted));
        if (got.values[i] == wanted) continue;
        if (!std::isfinite(got.values[i]) || !std::isfinite(wanted)) {
          ++strange;
          continue;
        }
        worst = std::max(worst, std::abs(got.values[i] - wanted));
      }
      CHECK(strange == 0);
      CHECK(worst <= kTolerance * largest);
    }
  }
}

TEST_CASE("attention of 64 values over broken tiles", "[ops][attention]") {
  check({"more keys", 1, 2, 2, 70, 100, 64});
  check({"more queries", 1, 2, 1, 150, 33, 64});
  check({"one query", 2, 2, 1, 1, 131, 64});
  check({"causal, a tile and one", 1, 2, 2, 65, 65, 64, Causal::first});
  check({"causal, three heads a group", 1, 6, 2, 100, 100, 64, Causal::first});
  check({"causal, more queries", 1, 1, 1, 150, 70, 64, Causal::first});
  check({"last, more keys", 1, 2, 1, 70, 130, 64, Causal::last});
  check({"last, more queries", 1, 2, 1, 130, 70, 64, Causal::last});
}

TEST_CASE("attention of 64 values, with masks and lengths over broken tiles", "[ops][attention]") {
  check({"lengths", 3, 2, 1, 70, 130, 64, Causal::none, {130, 64, 0}});
  check({"lengths, causal", 2, 2, 2, 70, 130, 64, Causal::last, {101, 33}});
  check({"mask", 2, 4, 2, 67, 99, 64, Causal::none, {}, true});
  check({"mask, lengths, causal", 2, 2, 1, 100, 99, 64, Causal::first, {99, 40}, true});
  check({.name = "a negative scale",
         .batch = 1,
         .heads = 2,
         .key_heads = 2,
         .queries = 70,
         .keys = 70,
         .width = 64,
         .causal = Causal::first,
         .scale = -0.1F});
}

TEST_CASE("attention drops weights over broken tiles", "[ops][attention][random]") {
  check({"64 values", 2, 2, 1, 67, 99, 64, Causal::none, {}, false, 0.3F});
  check({"causal, mask, lengths", 2, 4, 2, 70, 101, 64, Causal::last, {101, 50}, true, 0.2F});
  check({"33 values", 1, 2, 1, 99, 70, 33, Causal::first, {}, false, 0.5F});
}

TEST_CASE("attention of other widths over broken tiles", "[ops][attention]") {
  check({"16", 1, 2, 1, 70, 100, 16, Causal::first});
  check({"32", 1, 2, 1, 100, 70, 32});
  check({"50, mask", 1, 2, 2, 66, 100, 50, Causal::none, {}, true});
  check({"80", 1, 2, 1, 100, 130, 80, Causal::last});
  check({"96", 1, 2, 1, 100, 100, 96, Causal::first});
  check({"128", 1, 2, 1, 130, 140, 128, Causal::last});
  check({"128, one query", 1, 4, 2, 1, 140, 128, Causal::last});
}

TEST_CASE("attention of 64 values ignores what a length hides and keeps what is not a number", "[ops][attention]") {
  Array q = normal({1, 1, 70, 64}, 1), k = normal({1, 1, 70, 64}, 2), v = normal({1, 1, 70, 64}, 3);
  for (std::int64_t i = 40 * 64; i < 70 * 64; ++i) {
    k.values[static_cast<std::size_t>(i)] = v.values[static_cast<std::size_t>(i)] = std::nan("");
  }
  q.at({0, 0, 5, 9}) = std::nan("");
  const std::vector<Input> inputs{{q}, {k}, {v}, {Array({1}, {40}), DType::i32}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, [](const std::vector<Value>& x) {
      return std::vector{attention(x[0], x[1], x[2], {.lengths = x[3]})};
    });
    const Array dst = to_array(results[0]);
    for (std::int64_t t = 0; t < 70; ++t) CHECK(std::isnan(dst.at({0, 0, t, 0})) == (t == 5));
  }
}

}  // namespace
}  // namespace concord::test
