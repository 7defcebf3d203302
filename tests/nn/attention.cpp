// Attention layers beyond PyTorch's: shared heads, rotary and other positions, and the cache of keys and values.
#include "concord/nn/attention.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/nn/positions.hpp"
#include "concord/nn/transformer.hpp"
#include "goldens.hpp"
#include "ops/op_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Tensor random_tensor(const Shape& shape, std::uint32_t seed) {
  const Array array = normal(shape, seed);
  return Tensor::of(shape, std::vector<float>(array.values.begin(), array.values.end()));
}

/// Tokens [begin, end) of x (B, T, E).
Tensor tokens_of(const Tensor& x, std::int64_t begin, std::int64_t end) {
  const std::int64_t batch = x.shape()[0], tokens = x.shape()[1], width = x.shape()[2];
  std::vector<float> values;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto* row = x.values<float>().data() + b * tokens * width;
    values.insert(values.end(), row + begin * width, row + end * width);
  }
  return Tensor::of(Shape{batch, end - begin, width}, values);
}

/// A network of attention, called with all tokens or with those that continue its caches.
struct Continued {
  std::function<Value(Value)> all;
  std::function<Value(Value)> next;
};

/// Runs all tokens at once, then a prompt of three and the others one by one.
void check_continuation(const Continued& network, std::int64_t width) {
  constexpr std::int64_t kBatch = 2, kTokens = 7, kPrompt = 3;
  const Tensor x = random_tensor(Shape{kBatch, kTokens, width}, 1);
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto variables = std::make_shared<Variables>(device, 3);
    const auto program_of = [&](const std::function<Value(Value)>& call, std::int64_t tokens) {
      Graph graph;
      graph.set_training(false);
      const Value out = call(graph.input("x", {DType::f32, Shape{kBatch, tokens, width}}));
      graph.rename(out, "out");
      return compile(graph, std::vector{graph.find("out")}, variables);
    };
    Program whole = program_of(network.all, kTokens);
    whole.write("x", x);
    whole.run();
    const Tensor expected = whole.read("out");
    Program prompt = program_of(network.next, kPrompt);
    Program step = program_of(network.next, 1);
    for (std::int64_t begin = 0; begin < kTokens;) {
      Program& program = begin == 0 ? prompt : step;
      const std::int64_t end = begin == 0 ? kPrompt : begin + 1;
      program.write("x", tokens_of(x, begin, end));
      program.run();
      INFO("tokens from " << begin);
      CHECK(test::difference(program.read("out").values<float>(), tokens_of(expected, begin, end).values<float>()) <
            1e-5);
      begin = end;
    }
  }
}

Array rotary_of(const Array& x, bool interleaved, double first) {
  Array y(x.shape);
  const std::int64_t rows = x.shape[0], tokens = x.shape[1], width = x.shape[2];
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t i = 0; i < width / 2; ++i) {
        const double angle = (static_cast<double>(t) + first) *
                             std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(width));
        const std::int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + width / 2;
        y.at({r, t, a}) = x.at({r, t, a}) * std::cos(angle) - x.at({r, t, b}) * std::sin(angle);
        y.at({r, t, b}) = x.at({r, t, b}) * std::cos(angle) + x.at({r, t, a}) * std::sin(angle);
      }
    }
  }
  return y;
}

}  // namespace

TEST_CASE("rotary positions", "[nn][attention]") {
  for (const bool interleaved : {false, true}) {
    for (const int offset : {0, 5}) {
      concord::test::check(
          {.name = fmt::format("interleaved {} offset {}", interleaved, offset),
           .inputs = {{normal({2, 3, 6}, 1)}, {Array({1}, {static_cast<double>(offset)}), DType::i32}},
           .build =
               [=](const std::vector<Value>& x) {
                 const Value first = offset == 0 ? Value() : x[1];
                 return std::vector{nn::rotary(x[0], {.base = 100, .interleaved = interleaved, .offset = first})};
               },
           .reference =
               [=](const std::vector<Array>& x) { return std::vector{rotary_of(x[0], interleaved, offset)}; }});
    }
  }
  Graph graph;
  CHECK_THROWS_WITH(nn::rotary(graph.input("x", {DType::f32, Shape{2, 3, 5}})), contains("[2, 3, 5]"));
}

TEST_CASE("sinusoidal and learned positions", "[nn][attention]") {
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{1, 3, 6}});
    const Value offset = graph.input("offset", {DType::i32, Shape{1}});
    nn::LearnedPositions learned(5, 6);
    const std::vector<Value> outputs{nn::SinusoidalPositions()(x), nn::sinusoidal_positions(graph, 3, 6, offset),
                                     learned(x), learned(x, offset)};
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, outputs, variables);
    program.write("x", Tensor(DType::f32, Shape{1, 3, 6}));
    program.write("offset", Tensor::of<std::int32_t>(Shape{1}, std::vector<std::int32_t>{2}));
    program.run();
    const Tensor table = variables->read("weight");
    for (std::size_t k = 0; k < 4; ++k) {
      const Tensor got = program.read(outputs[k]);
      for (std::int64_t i = 0; i < 18; ++i) {
        const std::int64_t t = i / 6 + (k % 2 == 1 ? 2 : 0), column = i % 6;
        const double angle = static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(column / 2 * 2) / 6);
        const double wave = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
        const double expected = k < 2 ? wave : table.values<float>()[static_cast<std::size_t>(t * 6 + column)];
        CHECK(got.values<float>()[static_cast<std::size_t>(i)] == Approx(expected).margin(1e-6));
      }
    }
  }
  Graph graph;
  nn::LearnedPositions learned(5, 6);
  CHECK_THROWS_WITH(learned(graph.input("x", {DType::f32, Shape{1, 6, 6}})), contains("5") && contains("[1, 6, 6]"));
}

TEST_CASE("grouped-query attention names its projections and equals attention of repeated heads", "[nn][attention]") {
  nn::GroupedQueryAttention layer(12, 6, {.key_heads = 2, .rotary_base = std::nullopt});
  const Tensor x = random_tensor(Shape{2, 5, 12}, 1);
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    Graph graph;
    const Value in = graph.input("x", x.spec());
    const Value out = layer(in);
    const auto parameter = [&](const std::string& name) { return graph.find(name + "_proj.weight"); };
    const auto heads = [](Value v, std::int64_t count) {
      return transpose(reshape(v, Shape{2, 5, count, 2}), {0, 2, 1, 3});
    };
    const auto repeated = [&](const std::string& name) {
      const Value v = heads(matmul(in, parameter(name), false, true), 2);
      std::vector<Value> each;
      for (std::int64_t h = 0; h < 6; ++h) each.push_back(slice(v, 1, h / 3, h / 3 + 1));
      return concat(each, 1);
    };
    const Value q = heads(matmul(in, parameter("q"), false, true), 6);
    const Value attended = attention_reference(q, repeated("k"), repeated("v"), {.causal = ops::Causal::first});
    const Value expected =
        matmul(reshape(transpose(attended, {0, 2, 1, 3}), Shape{2, 5, 12}), parameter("o"), false, true);
    CHECK(parameter("k").shape() == Shape{4, 12});
    Program program = compile(graph, std::vector{out, expected}, std::make_shared<Variables>(device, 1));
    program.write("x", x);
    program.run();
    CHECK(test::difference(program.read(out).values<float>(), program.read(expected).values<float>()) < 1e-5);
  }
}

TEST_CASE("token by token on a cache equals the whole causal run: grouped-query with rotary positions",
          "[nn][attention]") {
  nn::GroupedQueryAttention layer(12, 6, {.key_heads = 2});
  nn::KeyValueCache cache = layer.make_cache(2, 9);
  check_continuation({[&](Value x) { return layer(x); }, [&](Value x) { return layer(x, cache); }}, 12);
}

TEST_CASE("token by token on a cache equals the whole causal run: a transformer", "[nn][attention]") {
  nn::TransformerEncoder encoder(2, 12, 3, {.feed_forward = 20});
  std::vector<nn::KeyValueCache> caches = encoder.make_caches(2, 7);
  check_continuation({[&](Value x) { return encoder(x, nn::AttentionMask{.causal = ops::Causal::first}); },
                      [&](Value x) { return encoder(x, caches); }},
                     12);
}

TEST_CASE("a cache begins anew at position 0, and gives NaN beyond its end", "[nn][attention]") {
  const Tensor x = random_tensor(Shape{1, 2, 12}, 1);
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    nn::MultiheadAttention layer(12, 3);
    nn::KeyValueCache cache = layer.make_cache(1, 3);
    Graph graph;
    graph.set_training(false);
    const Value out = layer(graph.input("x", x.spec()), cache);
    const auto variables = std::make_shared<Variables>(device, 1);
    cache.reset(*variables);  // nothing there yet
    Program program = compile(graph, std::vector{out}, variables);
    program.write("x", x);
    program.run();
    const Tensor first = program.read(out);
    program.run();  // four tokens in a cache of three
    CHECK(std::isnan(program.read(out).values<float>()[0]));
    cache.reset(*variables);
    program.run();
    CHECK(concord::test::difference(program.read(out), first) == "");
  }
}

TEST_CASE("attention layers and caches refuse what does not fit", "[nn][attention]") {
  CHECK_THROWS_AS(nn::MultiheadAttention(10, 3), ArgumentError);
  CHECK_THROWS_AS(nn::GroupedQueryAttention(12, 6, {.key_heads = 4}), ArgumentError);
  CHECK_THROWS_AS(nn::KeyValueCache(1, 2, 0, 4), ArgumentError);
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{2, 5, 12}});
  const Value mask = graph.input("mask", {DType::f32, Shape{5, 4}});
  nn::MultiheadAttention layer(12, 3);
  CHECK_THROWS_WITH(layer(x, nn::AttentionMask{.mask = mask}), contains("[2, 3, 5, 5]") && contains("[1, 1, 5, 4]"));
  nn::KeyValueCache small = layer.make_cache(2, 4);
  CHECK_THROWS_WITH(layer(x, small), contains("at most 4 tokens") && contains("[2, 3, 5, 4]"));
  nn::KeyValueCache other = layer.make_cache(1, 8);
  CHECK_THROWS_AS(layer(x, other), ShapeError);
}
