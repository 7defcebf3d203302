// Attention in plain loops.
#include "ops/attention_loops.hpp"

#include <cmath>
#include <limits>

namespace concord::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double mask_of(double number) { return number < -100 ? -kInfinity : 0.5 * number; }

/// Weights (B, H, T, S) and the logsumexp (B, H, T), by loops.
struct Weights {
  Array weights, logsumexp;
};
Weights weights_of(const AttentionSetting& setting, const std::vector<Array>& x) {
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
          if (setting.causal == Causal::first && s > t) continue;
          if (setting.causal == Causal::last && s > t + length - queries) continue;
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

/// diff_q, diff_k, diff_v from the weights: slope = weight·(diff·v − Σ weight·diff·v + diff_logsumexp).
std::vector<Array> backward(const AttentionSetting& setting, const std::vector<Array>& x,
                            const std::vector<Array>& seeds) {
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

}  // namespace

Value mask_of(Value numbers) {
  const Scalar x = scalar::input(0);
  return pointwise("mask", {numbers}, scalar::select(scalar::less(x, -100.0F), -INFINITY, 0.5F * x));
}

std::vector<Array> forward(const AttentionSetting& setting, const std::vector<Array>& x) {
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

Case case_of(const AttentionSetting& setting) {
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
    if (setting.tokens_first) options.layout = ops::HeadLayout::tokens_first;
    const auto turned = [&](Value v) { return setting.tokens_first ? transpose(v, {0, 2, 1, 3}) : v; };
    const Value dst = attention(turned(x[0]), turned(x[1]), turned(x[2]), options);
    if (!setting.logsumexp) return std::vector{turned(dst)};
    return std::vector{turned(dst), Value(&dst.graph(), dst.node_id(), 1)};
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

}  // namespace concord::test
