// Ordinary mistakes with sizes, types and indices: each throws an error that says what is wrong.
#include <functional>
#include <vector>

#include "concord_test.hpp"
#include "core/thrown.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("sizes that make no sense are refused where the layer is made or called", "[core][misuse]") {
  Graph graph;
  const Value image = graph.input("image", {DType::f32, Shape{2, 4, 8, 8}});
  const Value rows = graph.input("rows", {DType::f32, Shape{2, 4}});
  const Value steps = graph.input("steps", {DType::f32, Shape{3, 2, 4}});
  const std::vector<std::function<void()>> layers{
      [&] {
        nn::Conv2d{0, 4, 3}(image);
      },
      [&] {
        nn::Conv2d{4, 0, 3}(image);
      },
      [&] {
        nn::Conv2d{-4, 4, 3}(image);
      },
      [&] {
        nn::Conv2d{4, 4, 0}(image);
      },
      [&] {
        nn::Conv2d{4, 4, -3}(image);
      },
      [&] {
        nn::Conv2d{4, 4, 3, {.stride = 0}}(image);
      },
      [&] {
        nn::Conv2d{4, 4, 3, {.padding = -1}}(image);
      },
      [&] {
        nn::Conv2d{4, 4, 3, {.dilation = 0}}(image);
      },
      [&] {
        nn::Conv2d{4, 4, 3, {.groups = 0}}(image);
      },
      [&] {
        nn::Conv2d{4, 4, 3, {.groups = 3}}(image);
      },
      [&] {
        nn::Conv2d{4, 4, 99}(image);
      },
      [&] {
        nn::ConvTranspose2d{4, 4, 3, {.stride = 0}}(image);
      },
      [&] {
        nn::ConvTranspose2d{4, 4, 3, {.groups = 0}}(image);
      },
      [&] { nn::MaxPool2d{0}(image); },
      [&] { nn::MaxPool2d{-2}(image); },
      [&] { nn::AvgPool2d{0}(image); },
      [&] { nn::AvgPool2d{99}(image); },
      [&] {
        nn::Linear{0, 3}(rows);
      },
      [&] {
        nn::Linear{4, -3}(rows);
      },
      [&] {
        nn::Linear{5, 3}(rows);
      },
      [&] { nn::BatchNorm2d{0}(image); },
      [&] { nn::BatchNorm2d{3}(image); },
      [&] {
        nn::GroupNorm{0, 4}(image);
      },
      [&] {
        nn::GroupNorm{3, 4}(image);
      },
      [&] { nn::LayerNorm{std::int64_t{0}}(rows); },
      [&] { nn::LayerNorm{std::int64_t{5}}(rows); },
      [&] {
        nn::LSTM{0, 3}(steps);
      },
      [&] {
        nn::LSTM{4, 0}(steps);
      },
      [&] {
        nn::GRU{-4, 3}(steps);
      },
      [&] {
        nn::Embedding{0, 3};
      },
      [&] {
        nn::Embedding{3, -1};
      },
      [&] {
        nn::MultiheadAttention{0, 1};
      },
      [&] {
        nn::MultiheadAttention{10, 3};
      },
      [&] {
        nn::MultiheadAttention{8, 0};
      },
      [&] { nn::Dropout{-0.5F}(rows); },
      [&] { nn::Dropout{2}(rows); },
      [&] {
        static_cast<void>(Shape{-1, 2});
      },
      [&] { static_cast<void>(Tensor(DType::f32, Shape{std::int64_t{1} << 50})); },
      [&] {
        static_cast<void>(reshape(rows, Shape{3, 3}));
      },
      [&] { static_cast<void>(slice(rows, 0, 5, 9)); },
      [&] { static_cast<void>(slice(rows, 7, 0, 1)); },
      [&] {
        static_cast<void>(transpose(rows, {0, 0}));
      },
      [&] { static_cast<void>(softmax(rows, 9)); },
      [&] { static_cast<void>(top_k(rows, 0)); },
      [&] { static_cast<void>(top_k(rows, 99)); },
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string message = thrown(layers[i]);
    INFO("layer " << i << ": " << message);
    CHECK((message != "nothing" && !message.starts_with("no Error")));
  }
}

TEST_CASE("an integer sum, difference and product are integers", "[core][misuse]") {
  for (const DevicePtr& each : devices()) {
    Graph graph;
    const Value a = graph.input("a", {DType::i32, Shape{3}}), b = graph.input("b", {DType::i32, Shape{3}});
    const Value x = graph.input("x", {DType::f32, Shape{3}});
    CHECK((a * x).dtype() == DType::f32);
    CHECK((a / b).dtype() == DType::f32);
    CHECK((a + 0.5F).dtype() == DType::f32);
    const std::vector<Value> outputs{a + b, a - b, a * b, -a, minimum(a, b), maximum(a, b)};
    for (const Value& output : outputs) CHECK(output.dtype() == DType::i32);
    Program program = compile(graph, outputs, std::make_shared<Variables>(each, 1));
    program.write("a", Tensor::of(Shape{3}, std::vector<std::int32_t>{1, -7, 1000000}));
    program.write("b", Tensor::of(Shape{3}, std::vector<std::int32_t>{2, 3, -8}));
    program.run();
    const auto values = [&](std::size_t i) {
      const Tensor result = program.read(outputs[i]);
      return std::vector<std::int32_t>(result.values<std::int32_t>().begin(), result.values<std::int32_t>().end());
    };
    CHECK(values(0) == std::vector<std::int32_t>{3, -4, 999992});
    CHECK(values(1) == std::vector<std::int32_t>{-1, -10, 1000008});
    CHECK(values(2) == std::vector<std::int32_t>{2, -21, -8000000});
    CHECK(values(3) == std::vector<std::int32_t>{-1, 7, -1000000});
    CHECK(values(4) == std::vector<std::int32_t>{1, -7, -8});
    CHECK(values(5) == std::vector<std::int32_t>{2, 3, 1000000});
  }
}

TEST_CASE("cross_entropy says what to do about classes that come last", "[core][misuse]") {
  Graph graph;
  const Value sequences = graph.input("p", {DType::f32, Shape{2, 5, 7}});
  const Value labels = graph.input("t", {DType::i32, Shape{2, 5}});
  CHECK_THAT(thrown([&] { static_cast<void>(loss::cross_entropy(sequences, labels)); }),
             contains("The classes are the second dimension here") && contains("reshape(prediction, {-1, 7})"));
  CHECK(loss::cross_entropy(reshape(sequences, Shape{10, 7}), reshape(labels, Shape{10})).shape() == Shape{});
  CHECK(loss::cross_entropy(transpose(sequences, {0, 2, 1}), labels).shape() == Shape{});
}

TEST_CASE("an index outside a table is told by sample, index and limit", "[core][misuse]") {
  struct Words : nn::Module {
    nn::Embedding table{5, 4};
    nn::Linear head{4, 3};
    Value forward(Value x) override { return head(mean(table(x), {1})); }
  };
  std::vector<std::int32_t> words(6 * 4, 2), labels(6, 1);
  words[3 * 4 + 2] = 99;
  const Dataset data = data::from_arrays(Tensor::of(Shape{6, 4}, words), Tensor::of(Shape{6}, labels), 3);
  for (const DevicePtr& each : devices()) {
    INFO(each->info().id);
    for (const double resident : {0.4, 0.0}) {
      Trainer training{Words{}, loss::cross_entropy, optim::Sgd{.lr = 0.1}, each, {.resident_fraction = resident}};
      const std::string message = thrown([&] { training.fit(data, {.batch = 6, .shuffle = false}); });
      INFO(message);
      CHECK_THAT(message, contains("index 99 of sample 3") && contains("outside [0, 5)"));
    }
  }
}
