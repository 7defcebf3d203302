// What is padding, ignored or dropped is not read: whatever bits lie there, losses, outputs and gradients are the same
// to the bit, and the gradient there is 0.
#include <cmath>

#include "concord/nn/ctc_loss.hpp"
#include "concord/nn/embedding.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/recurrent.hpp"
#include "concord/nn/stochastic_depth.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/scan.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Which elements of input 0 are not to be read.
using Hidden = std::function<bool(std::size_t element)>;

/// Outputs of `build`, then the gradients of their sum by input 0 and by the graph's parameters.
Build with_gradients(const Build& build) {
  return [build](const std::vector<Value>& x) {
    std::vector<Value> results = build(x);
    Value loss;
    for (const Value& result : results) loss = loss ? loss + sum(result) : sum(result);
    std::vector<Value> wanted{x[0]};
    Graph& graph = x[0].graph();
    for (const VariablePtr& variable : graph.variables()) {
      if (variable->trainable) wanted.push_back(graph.variable(variable));
    }
    for (const Value& slope : gradient(loss, wanted)) results.push_back(slope);
    return results;
  };
}

/// `outputs` of the results come before the gradient by input 0.
void check_unread(const std::string& name, std::vector<Input> inputs, const Build& build, const Hidden& hidden,
                  std::size_t outputs = 1) {
  for (const DevicePtr& device : devices()) {
    std::vector<Tensor> first;
    for (const double bits : {0.25, std::nan(""), kInfinity, -kInfinity}) {
      std::vector<double>& values = inputs[0].value.values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (hidden(i)) values[i] = bits;
      }
      const std::vector<Tensor> results = run(device, inputs, with_gradients(build));
      if (first.empty()) first = results;
      for (std::size_t k = 0; k < results.size(); ++k) {
        INFO(name << ", result " << k << " with " << bits << " in hidden places on " << device->info().id);
        CHECK(difference(results[k], first[k]) == "");
      }
    }
    const Array slope = to_array(first[outputs]);
    std::size_t wrong = 0, strange = 0;
    for (std::size_t i = 0; i < slope.values.size(); ++i) {
      if (hidden(i) && slope.values[i] != 0) ++wrong;
      if (!std::isfinite(slope.values[i])) ++strange;
    }
    INFO(name << " on " << device->info().id);
    CHECK(wrong == 0);
    CHECK(strange == 0);
  }
}

Input labels(Shape shape, std::vector<double> values) {
  return {Array(std::move(shape), std::move(values)), DType::i32};
}

TEST_CASE("the logits of ignored labels are not read", "[nn][padding]") {
  const std::vector<Input> inputs{{normal({6, 5}, 1)}, labels({6}, {2, -1, 0, 4, -1, 3})};
  const Hidden ignored = [](std::size_t i) { return i / 5 == 1 || i / 5 == 4; };
  for (const auto reduction : {loss::Reduction::mean, loss::Reduction::sum}) {
    check_unread(
        "cross_entropy", inputs,
        [=](const std::vector<Value>& x) {
          return std::vector{loss::CrossEntropy{.ignore_index = -1, .reduction = reduction}(x[0], x[1])};
        },
        ignored);
  }
  check_unread(
      "cross_entropy, smoothed and weighted", inputs,
      [](const std::vector<Value>& x) {
        return std::vector{
            loss::CrossEntropy{.label_smoothing = 0.1F, .weights = {1, 2, 0.5F, 1, 3}, .ignore_index = -1}(x[0], x[1])};
      },
      ignored);
  check_unread(
      "nll", inputs,
      [](const std::vector<Value>& x) {
        return std::vector{loss::Nll{.weights = {1, 2, 0.5F, 1, 3}, .ignore_index = -1}(x[0], x[1])};
      },
      ignored);
}

TEST_CASE("labels that are all ignored give a gradient of zero", "[nn][padding]") {
  const std::vector<Input> inputs{{normal({2, 3}, 1)}, labels({2}, {-1, -1})};
  const auto all = [](std::size_t) { return true; };
  check_unread(
      "cross_entropy", inputs,
      [](const std::vector<Value>& x) { return std::vector{loss::CrossEntropy{.ignore_index = -1}(x[0], x[1])}; }, all);
  check_unread(
      "cross_entropy, weighted", inputs,
      [](const std::vector<Value>& x) {
        return std::vector{loss::CrossEntropy{.weights = {1, 2, 3}, .ignore_index = -1}(x[0], x[1])};
      },
      all);
  check_unread(
      "nll", inputs, [](const std::vector<Value>& x) { return std::vector{loss::Nll{.ignore_index = -1}(x[0], x[1])}; },
      all);
}

TEST_CASE("ctc does not read frames after an input's end", "[nn][padding]") {
  const std::vector<Input> inputs{{normal({6, 3, 4}, 1)},
                                  labels({3, 3}, {1, 2, 99, 3, 3, 1, 2, -7, 0}),
                                  labels({3}, {4, 6, 2}),
                                  labels({3}, {2, 3, 1})};
  const Hidden beyond = [](std::size_t i) {
    const std::size_t t = i / 12, n = i / 4 % 3;
    return t >= (n == 0 ? 4U : n == 1 ? 6U : 2U);
  };
  for (const auto reduction : {loss::Reduction::mean, loss::Reduction::sum}) {
    check_unread(
        "ctc", inputs,
        [=](const std::vector<Value>& x) {
          return std::vector{loss::Ctc{.reduction = reduction}(x[0], x[1], x[2], x[3])};
        },
        beyond);
  }
}

TEST_CASE("an infinite ctc loss has no gradient after its input's end", "[nn][padding]") {
  // Two equal labels need three frames; the sample has two.
  const std::vector<Input> inputs{
      {normal({5, 2, 3}, 1)}, labels({2, 2}, {1, 1, 1, 2}), labels({2}, {2, 3}), labels({2}, {2, 2})};
  for (const DevicePtr& device : devices()) {
    for (const bool zero : {false, true}) {
      INFO("device " << device->info().id << ", zero_infinity " << zero);
      const auto results = run(device, inputs, [=](const std::vector<Value>& x) {
        const Value loss = loss::Ctc{.zero_infinity = zero, .reduction = loss::Reduction::sum}(x[0], x[1], x[2], x[3]);
        return std::vector{loss, gradient(loss, std::vector{x[0]})[0]};
      });
      CHECK(std::isinf(to_array(results[0]).values[0]) == !zero);
      const Array slope = to_array(results[1]);
      for (std::int64_t t = 0; t < 5; ++t) {
        for (std::int64_t c = 0; c < 3; ++c) {
          INFO("frame " << t << ", class " << c);
          if (t < 2 && !zero) CHECK(std::isnan(slope.at({t, 0, c})));
          if (t >= 2 || zero) CHECK(slope.at({t, 0, c}) == 0);
          CHECK(std::isfinite(slope.at({t, 1, c})));
          if (t >= 3) CHECK(slope.at({t, 1, c}) == 0);
        }
      }
    }
  }
}

TEST_CASE("recurrent layers do not read steps after a sequence's end", "[nn][padding]") {
  const std::vector<Input> inputs{{normal({5, 3, 4}, 1)}, labels({3}, {5, 2, 3})};
  const Hidden beyond = [](std::size_t i) {
    const std::size_t t = i / 12, n = i / 4 % 3;
    return t >= (n == 0 ? 5U : n == 1 ? 2U : 3U);
  };
  const auto traced = [](nn::RecurrentLayer& layer) {
    return [&layer](const std::vector<Value>& x) {
      const nn::RecurrentOutput out = layer(x[0], {}, x[1]);
      return std::vector{out.output, out.last.h};
    };
  };
  nn::LSTM lstm(4, 3, {.num_layers = 2, .bidirectional = true});
  nn::GRU gru(4, 3, {});
  nn::RNN rnn(4, 3, {});
  check_unread("lstm", inputs, traced(lstm), beyond, 2);
  check_unread("gru", inputs, traced(gru), beyond, 2);
  check_unread("rnn", inputs, traced(rnn), beyond, 2);
}

TEST_CASE("what is gathered by none, dropped or not chosen is not read", "[nn][padding]") {
  check_unread(
      "gather", {{normal({6, 3}, 1)}, labels({4}, {0, 5, 0, 2})},
      [](const std::vector<Value>& x) { return std::vector{gather(x[0], x[1]) * 2}; },
      [](std::size_t i) { return i / 3 == 1 || i / 3 == 3 || i / 3 == 4; });
  check_unread(
      "where", {{normal({4, 6}, 1)}, {normal({4, 6}, 2)}},
      [](const std::vector<Value>& x) {
        const Value condition =
            pointwise("condition", {full(x[0].graph(), x[0].shape(), 0)}, scalar::less(scalar::coordinate(0), 4.0F));
        return std::vector{square(where(condition, x[0], x[1])), masked_fill(x[0], 1 - condition, 7)};
      },
      [](std::size_t i) { return i % 6 >= 4; }, 2);
  check_unread(
      "slices", {{normal({4, 6}, 1)}},
      [](const std::vector<Value>& x) { return std::vector{square(slice(x[0], 1, 1, 6, 2))}; },
      [](std::size_t i) { return i % 2 == 0; });
  check_unread(
      "pools that leave out an edge", {{normal({1, 2, 5, 5}, 1)}},
      [](const std::vector<Value>& x) {
        return std::vector{max_pool2d(x[0], {.kernel = {2, 2}}), avg_pool2d(x[0], {.kernel = {2, 2}})};
      },
      [](std::size_t i) { return i % 5 == 4 || i / 5 % 5 == 4; }, 2);
}

TEST_CASE("dropout and stochastic depth do not read what they drop", "[nn][padding]") {
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    nn::StochasticDepth depth(0.5F);
    const Build build = [&](const std::vector<Value>& x) {
      std::vector<Value> results{dropout(x[0], 0.5F), depth(x[0])};
      for (const Value& result : std::vector<Value>(results)) {
        results.push_back(gradient(sum(result * x[1]), std::vector{x[0]})[0]);
      }
      return results;
    };
    const Array plain({8, 8}, std::vector<double>(64, 1.0)), strange({8, 8}, std::vector<double>(64, std::nan("")));
    const auto kept = run(device, {{plain}, {plain}}, build);
    const auto values = run(device, {{strange}, {plain}}, build), slopes = run(device, {{plain}, {strange}}, build);
    for (std::size_t k = 0; k < 4; ++k) {
      const Array before = to_array(kept[k]), after = to_array(k < 2 ? values[k] : slopes[k]);
      std::size_t wrong = 0, dropped = 0;
      for (std::size_t i = 0; i < before.values.size(); ++i) {
        dropped += before.values[i] == 0 ? 1 : 0;
        if (before.values[i] == 0 ? after.values[i] != 0 : !std::isnan(after.values[i])) ++wrong;
      }
      INFO("result " << k);
      CHECK(wrong == 0);
      CHECK((dropped > 0 && dropped < 64));
    }
  }
}

TEST_CASE("losses of logits keep their digits where they are small", "[nn][padding]") {
  const std::vector<double> logits{20, -20, 40, -40, 5, 0, 100, -100}, targets{1, 0, 1, 0, 1, 0.25, 0, 1};
  const std::vector<Input> inputs{{Array({8}, logits)}, {Array({8}, targets)}};
  for (const DevicePtr& device : devices()) {
    const auto results = run(device, inputs, [](const std::vector<Value>& x) {
      const Value loss = loss::BceWithLogits{.reduction = loss::Reduction::none}(x[0], x[1]);
      return std::vector{loss, gradient(sum(loss), std::vector{x[0]})[0]};
    });
    const Array loss = to_array(results[0]), slope = to_array(results[1]);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double x = logits[i], t = targets[i];
      const double wanted = std::log1p(std::exp(-std::abs(x))) + (x > 0 ? x * (1 - t) : -x * t);
      const double part = x > 0 ? (1 - t) - 1 / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)) - t;
      INFO("logit " << x << ", target " << t << " on " << device->info().id);
      CHECK(std::abs(loss.values[i] - wanted) <= 1e-6 * wanted);
      CHECK(std::abs(slope.values[i] - part) <= 1e-6 * std::abs(part));
    }
  }
}

}  // namespace
}  // namespace concord::test
