// Attention where masks and scores are large, and where what is hidden is not a number: weights from the scores that
// fp32 has, gradients that agree with them, nothing read that is hidden.
#include <cfloat>
#include <cmath>

#include "ops/attention_loops.hpp"

namespace concord::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Sizes of a case: several tiles of every kernel, the last one broken, on matrix cores (64) and off them (5).
struct MaskedSizes {
  std::int64_t heads = 2, key_heads = 1, queries = 70, keys = 100, width = 5;
};

/// dst, diff_q, diff_k, diff_v for the loss Σ dst·diff; the scores are the mask alone where k is zero. One batch.
std::vector<Array> by_loops(const MaskedSizes& s, const std::vector<Array>& x) {
  const Array &q = x[0], &k = x[1], &v = x[2], &diff = x[3], &mask = x[4];
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  Array dst(q.shape), diff_q(q.shape), diff_k(k.shape), diff_v(v.shape);
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const std::int64_t g = h / (s.heads / s.key_heads);
    for (std::int64_t t = 0; t < s.queries; ++t) {
      std::vector<double> weights(static_cast<std::size_t>(s.keys)), through(weights.size());
      double largest = -kInfinity, sum = 0, delta = 0;
      for (std::int64_t i = 0; i < s.keys; ++i) {
        double score = 0;
        for (std::int64_t d = 0; d < s.width; ++d) {
          score += scale * q.at({0, h, t, d}) * k.at({0, g, i, d});
          through[static_cast<std::size_t>(i)] += diff.at({0, h, t, d}) * v.at({0, g, i, d});
        }
        // Of a mask of 1e9 fp32 keeps no more.
        weights[static_cast<std::size_t>(i)] = static_cast<float>(score + mask.at({0, 0, t, i}));
        largest = std::max(largest, weights[static_cast<std::size_t>(i)]);
      }
      for (double& weight : weights) sum += weight = weight == -kInfinity ? 0 : std::exp(weight - largest);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (sum > 0) weights[i] /= sum;
        delta += weights[i] * through[i];
      }
      for (std::int64_t i = 0; i < s.keys; ++i) {
        const double weight = weights[static_cast<std::size_t>(i)];
        const double slope = scale * weight * (through[static_cast<std::size_t>(i)] - delta);
        for (std::int64_t d = 0; d < s.width; ++d) {
          dst.at({0, h, t, d}) += weight * v.at({0, g, i, d});
          diff_q.at({0, h, t, d}) += slope * k.at({0, g, i, d});
          diff_k.at({0, g, i, d}) += slope * q.at({0, h, t, d});
          diff_v.at({0, g, i, d}) += weight * diff.at({0, h, t, d});
        }
      }
    }
  }
  return {dst, diff_q, diff_k, diff_v};
}

using Form = Value (*)(Value, Value, Value, const AttentionOptions&);

Build outputs_of(Form form, AttentionOptions options = {}) {
  return [form, options](const std::vector<Value>& x) {
    AttentionOptions with = options;
    with.mask = x[4];
    if (x.size() > 5) with.lengths = x[5];
    std::vector<Value> all{form(x[0], x[1], x[2], with)};
    for (const Value& g : gradient(sum(all[0] * x[3]), std::vector{x[0], x[1], x[2]})) all.push_back(g);
    return all;
  };
}

std::vector<Array> operands(const MaskedSizes& s, double deviation_of_keys) {
  return {normal({1, s.heads, s.queries, s.width}, 1), normal({1, s.key_heads, s.keys, s.width}, 2, deviation_of_keys),
          normal({1, s.key_heads, s.keys, s.width}, 3), normal({1, s.heads, s.queries, s.width}, 4),
          Array({1, 1, s.queries, s.keys})};
}

void check_masked(const std::string& name, const MaskedSizes& s, const std::vector<Array>& x) {
  constexpr double kTolerance = 4e-6;
  std::vector<Input> inputs;
  for (const Array& array : x) inputs.push_back({array});
  const std::vector<Array> expected = by_loops(s, x);
  for (const DevicePtr& device : devices()) {
    for (const Form form : {Form{attention}, Form{attention_reference}}) {
      const std::vector<Tensor> results = run(device, inputs, outputs_of(form));
      for (std::size_t k = 0; k < results.size(); ++k) {
        INFO(name << ", result " << k << (form == Form{attention} ? "" : " of the composed form") << " on "
                  << device->info().id);
        const Array got = to_array(results[k]);
        double largest = 1e-3, worst = 0;
        for (std::size_t i = 0; i < got.values.size(); ++i) {
          largest = std::max(largest, std::abs(expected[k].values[i]));
          const double error = std::abs(got.values[i] - expected[k].values[i]);
          worst = std::isnan(error) ? kInfinity : std::max(worst, error);
        }
        CHECK(worst <= kTolerance * largest);
      }
    }
  }
}

TEST_CASE("attention's gradients hold for scores of any size", "[ops][attention][masks]") {
  const MaskedSizes s{.width = GENERATE(5, 64)};
  const double masks[] = {-1e4, -1e9, -1e30, -3e38, -static_cast<double>(FLT_MAX), 1e4, 1e9, 3e38};
  std::vector<Array> constant = operands(s, 0);
  for (std::int64_t t = 0; t < s.queries; ++t) {
    for (std::int64_t i = 0; i < s.keys; ++i) constant[4].at({0, 0, t, i}) = static_cast<float>(masks[t % 8]);
  }
  check_masked("rows of one mask", s, constant);
  // Differences of scores that fp32 keeps beside 1e4.
  std::vector<Array> x = operands(s, 0);
  for (std::size_t i = 0; i < x[4].values.size(); ++i) {
    x[4].values[i] = (i % 3 == 0 ? 1e4 : -1e4) + static_cast<double>(i % 7) / 8;
  }
  check_masked("masks of both signs", s, x);
}

TEST_CASE("attention tells finite masks from infinite ones", "[ops][attention][masks]") {
  const MaskedSizes s{.width = GENERATE(5, 64)};
  std::vector<Array> x = operands(s, 0.25);
  for (std::int64_t t = 0; t < s.queries; ++t) {
    for (std::int64_t i = 0; i < s.keys; ++i) {
      const double rows[] = {-1e9,                             // as if there were no mask
                             i == 77 ? 0.0 : -kInfinity,       // one key alone
                             -kInfinity,                       // none
                             i % 5 == 2 ? 0.0 : -1e9,          // some
                             i % 5 == 2 ? -1e30 : -3e38,       // the least bad
                             i % 2 == 0 ? -kInfinity : -1e30,  // half of them
                             i == 99 ? -static_cast<double>(FLT_MAX) : -kInfinity};
      x[4].at({0, 0, t, i}) = static_cast<float>(rows[t % 7]);
    }
  }
  // Keys of zero where fp32 would round scores beside 1e9.
  std::fill(x[1].values.begin(), x[1].values.end(), 0.0);
  check_masked("rows of all kinds", s, x);
}

/// Results with `bits` in the hidden places of operands 1 and 2, of `hidden` keys, are those with zeros there.
void check_unread(const std::string& name, std::vector<Input> inputs, const Build& build,
                  const std::vector<std::size_t>& poisoned, const std::function<bool(std::size_t key)>& is_hidden,
                  std::int64_t width, std::int64_t keys) {
  for (const DevicePtr& device : devices()) {
    std::vector<Tensor> clean;
    for (const double bits : {0.5, std::nan(""), kInfinity, -kInfinity}) {
      for (const std::size_t operand : poisoned) {
        std::vector<double>& values = inputs[operand].value.values;
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (is_hidden(i / static_cast<std::size_t>(width) % static_cast<std::size_t>(keys))) values[i] = bits;
        }
      }
      const std::vector<Tensor> results = run(device, inputs, build);
      if (clean.empty()) clean = results;
      for (std::size_t k = 0; k < results.size(); ++k) {
        INFO(name << ", result " << k << " with " << bits << " in hidden places on " << device->info().id);
        CHECK(difference(results[k], clean[k]) == "");
      }
    }
    for (const std::size_t k : {std::size_t{2}, std::size_t{3}}) {
      const Array diff = to_array(clean[k]);
      INFO(name << ", gradient of hidden places on " << device->info().id);
      double largest = 0;
      for (std::size_t i = 0; i < diff.values.size(); ++i) {
        const bool hidden = is_hidden(i / static_cast<std::size_t>(width) % static_cast<std::size_t>(keys));
        if (hidden) largest = std::max(largest, std::abs(diff.values[i]));
      }
      CHECK(largest == 0);
    }
  }
}

TEST_CASE("attention does not read what is hidden", "[ops][attention][masks]") {
  const MaskedSizes s{.width = GENERATE(5, 64)};
  std::vector<Input> inputs;
  for (const Array& array : operands(s, 1)) inputs.push_back({array});
  const std::vector<Input> plain = inputs;
  // Keys that no query sees, by the mask; rows of every other pattern elsewhere.
  const auto masked_key = [](std::size_t key) { return key % 9 == 4 || key > 90; };
  for (std::size_t i = 0; i < inputs[4].value.values.size(); ++i) {
    const std::size_t key = i % 100;
    if (masked_key(key) || (i % 7 == 3)) inputs[4].value.values[i] = -kInfinity;
  }
  check_unread("a mask", inputs, outputs_of(attention), {1, 2}, masked_key, s.width, s.keys);

  std::vector<Input> with_lengths = plain;
  with_lengths.push_back({Array({1}, {61}), DType::i32});
  check_unread(
      "lengths", with_lengths, outputs_of(attention), {1, 2}, [](std::size_t key) { return key >= 61; }, s.width,
      s.keys);
  check_unread(
      "lengths, causal", with_lengths, outputs_of(attention, {.causal = Causal::last}), {1, 2},
      [](std::size_t key) { return key >= 61; }, s.width, s.keys);
  check_unread(
      "causal", plain, outputs_of(attention, {.causal = Causal::first}), {1, 2},
      [](std::size_t key) { return key >= 70; }, s.width, s.keys);
  check_unread("a mask, dropout", inputs, outputs_of(attention, {.dropout = 0.3F}), {1, 2}, masked_key, s.width,
               s.keys);
}

TEST_CASE("a query's results do not depend on keys that others see alone", "[ops][attention][masks]") {
  // Causal: the last key is NaN. Queries before it keep their bits, and so do the gradients of the keys that they see
  // where the last query does not take part in the loss.
  const std::int64_t width = GENERATE(5, 64), length = 70;
  const Array q = normal({1, 1, length, width}, 1), v = normal({1, 1, length, width}, 3);
  const Array diff = normal({1, 1, length, width}, 4);
  Array k = normal({1, 1, length, width}, 2);
  const Build build = [](const std::vector<Value>& x) {
    return std::vector{attention(x[0], x[1], x[2], {.causal = Causal::first})};
  };
  for (const DevicePtr& device : devices()) {
    const Array clean = to_array(run(device, {{q}, {k}, {v}}, build)[0]);
    for (const double bits : {std::nan(""), kInfinity}) {
      Array values = v;
      for (std::int64_t d = 0; d < width; ++d) values.at({0, 0, length - 1, d}) = bits;
      const Array got = to_array(run(device, {{q}, {k}, {values}}, build)[0]);
      INFO("device " << device->info().id << ", " << bits);
      std::size_t changed = 0, finite = 0;
      const auto before = static_cast<std::size_t>((length - 1) * width);
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        if (i < before && got.values[i] != clean.values[i]) ++changed;
        if (i >= before && (std::isnan(bits) ? !std::isnan(got.values[i]) : got.values[i] != bits)) ++finite;
      }
      CHECK(changed == 0);
      CHECK(finite == 0);
    }
  }
}

}  // namespace
}  // namespace concord::test
