// Attention: the fused operator and its gradients against plain loops, its masks, grouped heads, memory; and the
// composed reference. A kernel is compiled for its width and options, so cases share these with each other and with
// those of attention_edges.cpp and attention_dropout.cpp where that hides nothing.
#include <cmath>

#include "ops/attention_loops.hpp"

namespace concord::test {
namespace {

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
  check(
      case_of({.name = "last, more queries", .sizes = {1, 2, 1, 9, 5, 5}, .causal = Causal::last, .logsumexp = false}));
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
}

TEST_CASE("attention of narrow heads over several tiles", "[ops][attention]") {
  check(case_of({.name = "plain", .sizes = {1, 2, 1, 67, 35, 5}, .analytic = true}));
  check(case_of({.name = "causal", .sizes = {1, 2, 1, 66, 66, 5}, .causal = Causal::first, .analytic = true}));
  check(case_of({.name = "last key of each length",
                 .sizes = {2, 2, 1, 33, 100, 5},
                 .causal = Causal::last,
                 .lengths = {100, 61},
                 .analytic = true}));
  check(case_of({.name = "mask", .sizes = {1, 2, 1, 19, 35, 5}, .mask = Shape{1, 2, 19, 35}, .analytic = true}));
}

TEST_CASE("attention of wide heads", "[ops][attention]") {
  check(case_of({.name = "width 128", .sizes = {1, 2, 1, 35, 40, 128}, .causal = Causal::last, .analytic = true}));
  check(case_of({.name = "width 256", .sizes = {1, 1, 1, 19, 35, 256}, .analytic = true}));
}

TEST_CASE("attention with tokens before heads", "[ops][attention]") {
  check(case_of({.name = "grouped heads", .sizes = {2, 6, 2, 3, 4, 5}, .tokens_first = true}));
  check(case_of({.name = "an empty length",
                 .sizes = {2, 2, 1, 4, 9, 5},
                 .lengths = {0, 5},
                 .logsumexp = false,
                 .tokens_first = true}));
  check(case_of({.name = "all options",
                 .sizes = {2, 4, 2, 70, 70, 64},
                 .causal = Causal::first,
                 .lengths = {70, 37},
                 .mask = Shape{2, 1, 70, 70},
                 .tokens_first = true,
                 .analytic = true}));
}

TEST_CASE("attention says which axes it expects", "[ops][attention]") {
  Graph graph;
  const auto input = [&](const char* name, const Shape& shape) { return graph.input(name, {DType::f32, shape}); };
  const Value q = input("q", {2, 3, 4, 8});
  CHECK_THROWS_WITH(attention(q, input("k", {2, 5, 4, 8}), input("v", {2, 5, 4, 8})),
                    contains("k must be (2, a divisor of 3, keys, 8), got"));
  AttentionOptions by_tokens;
  by_tokens.layout = ops::HeadLayout::tokens_first;
  CHECK_THROWS_WITH(attention(q, input("keys", {2, 5, 3, 8}), input("values", {2, 5, 3, 8}), by_tokens),
                    contains("k must be (2, keys, a divisor of 4, 8), got"));
  CHECK_THROWS_WITH(attention(input("flat", {2, 24}), q, q, by_tokens),
                    contains("q must be (batch, length, heads, width), got"));
}

TEST_CASE("a row that sees no key gives zeros and a logsumexp of minus infinity", "[ops][attention]") {
  const std::vector<Input> inputs{
      {normal({1, 1, 2, 5}, 1)}, {normal({1, 1, 3, 5}, 2)}, {normal({1, 1, 3, 5}, 3)}, {Array({1}, {0}), DType::i32}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, inputs, [](const std::vector<Value>& x) {
      const Value dst = attention(x[0], x[1], x[2], {.lengths = x[3]});
      return std::vector{dst, Value(&dst.graph(), dst.node_id(), 1)};
    });
    for (const double v : to_array(results[0]).values) CHECK(v == 0);
    for (const double v : to_array(results[1]).values) CHECK(v == -INFINITY);
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

TEST_CASE("the composed form has a gradient through its mask", "[ops][attention]") {
  const AttentionSetting plain{.name = "mask as operand", .sizes = {1, 2, 1, 3, 4, 5}, .logsumexp = false};
  check({.name = plain.name,
         .inputs = {{normal({1, 2, 3, 5}, 1)},
                    {normal({1, 1, 4, 5}, 2)},
                    {normal({1, 1, 4, 5}, 3)},
                    {normal({1, 2, 3, 4}, 4)}},
         .build =
             [](const std::vector<Value>& x) {
               return std::vector{attention_reference(x[0], x[1], x[2], {.mask = x[3]})};
             },
         .reference =
             [plain](const std::vector<Array>& x) {
               AttentionSetting setting = plain;
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

TEST_CASE("attention gives the same bits each time, over many blocks", "[ops][attention]") {
  const std::vector<Input> inputs{{normal({1, 8, 600, 5}, 1)}, {normal({1, 8, 600, 5}, 2)}};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = [&] {
      return run(device, inputs, [](const std::vector<Value>& x) {
        std::vector<Value> all{attention(x[0], x[1], x[1]), attention_reference(x[0], x[1], x[1])};
        for (const Value& diff : gradient(sum(square(all[0])), x)) all.push_back(diff);
        return all;
      });
    };
    const std::vector<Tensor> first = results();
    const Array fused = to_array(first[0]), composed = to_array(first[1]);
    double worst = 0;
    for (std::size_t i = 0; i < fused.values.size(); ++i) {
      worst = std::max(worst, std::abs(fused.values[i] - composed.values[i]));
    }
    CHECK(worst < 1e-5);
    for (int again = 0; again < 3; ++again) {
      const std::vector<Tensor> next = results();
      for (std::size_t k = 0; k < first.size(); ++k) CHECK(difference(next[k], first[k]) == "");
    }
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
  CHECK_THAT(error_of({2, 0, 7, 5}, {2, 4, 9, 5}, {2, 4, 9, 5}), contains("q [2, 0, 7, 5] needs at least one head"));
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
