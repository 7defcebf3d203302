// The float64 references of operators on sequences and along an axis.
#include <cmath>

#include "compare/float64_test.hpp"

namespace concord::test {
namespace {

Value recurrent_layer(Operators& o, ops::RecurrentCell cell, bool reverse) {
  const std::int64_t steps = 3, batch = 2, hidden = 5, gates = ops::gates_of(cell);
  RecurrentOperands operands{o.input({steps, batch, gates * hidden}), o.input({gates * hidden, hidden}),
                             o.input({batch, hidden})};
  if (cell == ops::RecurrentCell::lstm) operands.c0 = o.input({batch, hidden});
  if (cell == ops::RecurrentCell::gru) operands.bias = o.input({3 * hidden});
  const RecurrentResult result = recurrent(cell, operands, reverse);
  const Value states = sum(square(result.y)) + sum(result.hn);
  return cell == ops::RecurrentCell::lstm ? states + sum(square(result.cn)) : states;
}

}  // namespace

TEST_CASE("float64: operators along an axis", "[compare]") {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      check("cumsum",
            [&](Operators& o) {
              return cumsum(o.input({3, 5, 2}), 1, {.exclusive = exclusive, .reverse = reverse});
            },
            {"cumsum"});
    }
  }
  for (const bool largest : {false, true}) {
    check("top_k", [&](Operators& o) { return top_k(o.input({2, 7, 3}), 3, 1, largest).values; }, {"top_k"});
  }
  check("by index",
        [](Operators& o) {
          const Value index = o.indices({2, 4}, {3, 0, 2, 2, 1, 1, 0, 3});
          return scatter_add_along(gather_along(o.input({2, 5}), index, 1), index, 1, 4);
        },
        {"gather_along", "scatter_add_along"});
  check("resampled",
        [](Operators& o) {
          const Value larger = interpolate(o.input({1, 2, 5, 4}), {.size = {7, 9}, .mode = Interpolation::cubic});
          return gaussian_blur(larger, 3, 0.8) +
                 interpolate(o.input({1, 2, 3, 3}), {.size = {7, 9}, .mode = Interpolation::linear});
        },
        {"resample"});
}

TEST_CASE("float64: ctc with repeated labels, unequal lengths and targets that cannot be", "[compare]") {
  for (const bool zero_infinity : {false, true}) {
    for (const DevicePtr& device : devices()) {
      INFO(device->info().id);
      Operators o;
      const Value log_p = log_softmax(o.input({6, 5, 4}), 2);
      const Value targets = o.indices({5, 3}, {1, 1, 2, 3, 0, 0, 2, 2, 2, 1, 9, 0, 2, 1, 3});
      const Value losses =
          ctc(log_p, targets, o.indices({5}, {6, 4, 3, 6, 0}), o.indices({5}, {3, 1, 3, 2, 0}), 0, zero_infinity);
      std::vector<std::string> seen;
      o.run(device, losses, [&](const ReplayedNode& node) {
        if (node.entry.op != "ctc") return;
        const float64::Results exact = float64::evaluate(node);
        REQUIRE(exact);
        for (std::size_t k : {0, 1}) CHECK(largest_difference(node.results[k], (*exact)[k]) <= tolerance_of(node, k));
        CHECK(std::isinf((*exact)[0][2]) != zero_infinity);
        CHECK(std::isnan((*exact)[0][3]));
        CHECK((*exact)[0][4] == 0);
        seen.push_back(node.entry.op);
      });
      CHECK(seen.size() == 1);
    }
  }
}

TEST_CASE("float64: ctc of as many steps as a long utterance has", "[compare]") {
  constexpr std::int64_t kSteps = 800, kLabels = 100, kClasses = 29;
  std::vector<std::int32_t> labels(kLabels);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(1 + i * i % (kClasses - 1));
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Operators o;
    // Log-probabilities go to -2600, where the last place of an f32 is 2e-4.
    const Value log_p = log_softmax(o.input({kSteps, 1, kClasses}) * 3.0F, 2);
    const Value losses =
        ctc(log_p, o.indices({1, kLabels}, labels), o.indices({1}, {kSteps}), o.indices({1}, {kLabels}), 0, false);
    std::size_t seen = 0;
    o.run(device, losses, [&](const ReplayedNode& node) {
      if (node.entry.op != "ctc") return;
      const float64::Results exact = float64::evaluate(node);
      REQUIRE(exact);
      CHECK((*exact)[0][0] > 1000);
      CHECK(largest_difference(node.results[0], (*exact)[0]) <= 4 * 0x1p-24 * (*exact)[0][0]);
      CHECK(largest_difference(node.results[1], (*exact)[1]) <= 4e-6);
      ++seen;
    });
    CHECK(seen == 1);
  }
}

TEST_CASE("float64: attention with masks, lengths, shared keys and dropout", "[compare]") {
  const std::vector<std::string> all{"attention", "attention_backward_query", "attention_backward_key_value"};
  for (const ops::Causal causal : {ops::Causal::none, ops::Causal::first, ops::Causal::last}) {
    check(
        "causal",
        [&](Operators& o) {
          return attention(o.input({2, 4, 3, 8}), o.input({2, 2, 5, 8}), o.input({2, 2, 5, 8}),
                           {.lengths = o.indices({2}, {5, 4}), .causal = causal});
        },
        all);
  }
  check(
      "mask and dropout",
      [](Operators& o) {
        const Value mask =
            pointwise("mask", {full(o.graph(), Shape{1, 1, 1, 1}, 0)},
                      scalar::coordinate(0) * 0.3F - scalar::coordinate(1), DType::f32, Shape{1, 1, 3, 6});
        return attention(o.input({2, 2, 3, 8}), o.input({2, 2, 6, 8}), o.input({2, 2, 6, 8}),
                         {.mask = mask, .dropout = 0.3F, .scale = 0.7F});
      },
      all);
}

TEST_CASE("float64: attention with tokens before heads", "[compare]") {
  check("tokens first",
        [&](Operators& o) {
          return attention(o.input({2, 3, 4, 8}), o.input({2, 5, 2, 8}), o.input({2, 5, 2, 8}),
                           {.lengths = o.indices({2}, {5, 4}),
                            .causal = ops::Causal::last,
                            .layout = ops::HeadLayout::tokens_first,
                            .dropout = 0.3F});
        },
        {"attention", "attention_backward_query", "attention_backward_key_value"});
}

TEST_CASE("float64: recurrent layers in both directions", "[compare]") {
  using ops::RecurrentCell;
  for (const RecurrentCell cell :
       {RecurrentCell::rnn_tanh, RecurrentCell::rnn_relu, RecurrentCell::lstm, RecurrentCell::gru}) {
    for (const bool reverse : {false, true}) {
      check(std::string(name_of(cell)), [&](Operators& o) { return recurrent_layer(o, cell, reverse); },
            {"recurrent", "recurrent_backward"});
    }
  }
}

}  // namespace concord::test
