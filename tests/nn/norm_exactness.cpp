// Layers and losses that divide by norms and deviations, on numbers far from 0 and of sizes whose squares leave fp32.
#include <cmath>

#include "concord/nn/batch_norm.hpp"
#include "concord/nn/instance_norm.hpp"
#include "concord/nn/local_norm.hpp"
#include "concord/nn/weight_norm.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Tensor tensor(Shape shape, const std::function<double(std::size_t)>& value) {
  Tensor result(DType::f32, std::move(shape));
  auto values = result.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(value(i));
  return result;
}

}  // namespace

// PyTorch 2.15 multiplies by a factor and adds beta − mean·factor: 4e-4 off here.
TEST_CASE("batch normalisation in evaluation subtracts the mean first", "[nn][exactness]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::BatchNorm2d layer{2};
    const auto variables = std::make_shared<Variables>(device, 0);
    Graph graph;
    graph.set_training(false);
    const TensorSpec spec{DType::f32, Shape{2, 2, 5, 7}};
    const Value y = layer(graph.input("x", spec));
    Program program = compile(graph, {{y}}, variables);
    const float mean = 10000.1F;
    variables->write("running_mean", Tensor::of<float>(Shape{2}, std::vector<float>{mean, -mean}));
    variables->write("running_var", Tensor::of<float>(Shape{2}, std::vector<float>{0.01F, 0.01F}));
    const auto sign = [](std::size_t i) { return i / 35 % 2 == 0 ? 1 : -1; };
    const Tensor x = tensor(spec.shape, [&](std::size_t i) {
      return sign(i) * (static_cast<double>(mean) + 0.1 * std::sin(static_cast<double>(i)));
    });
    program.write("x", x);
    program.run();
    const Tensor got = program.read(y);
    for (std::size_t i = 0; i < 140; ++i) {
      const double away = static_cast<double>(x.values<float>()[i]) - sign(i) * static_cast<double>(mean);
      CHECK(std::abs(static_cast<double>(got.values<float>()[i]) - away / std::sqrt(0.01F + 1e-5F)) < 1e-6);
    }
  }
}

TEST_CASE("running statistics stay exact over a long time", "[nn][exactness]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::BatchNorm2d batch{1};
    nn::InstanceNorm2d instance{1, {.track_running_stats = true}};
    const auto variables = std::make_shared<Variables>(device, 0);
    Graph graph;
    const TensorSpec spec{DType::f32, Shape{2, 1, 6, 6}};
    const Value x = graph.input("x", spec);
    Value first, second;
    {
      const Scope scope(graph, "batch");
      first = batch(x);
    }
    {
      const Scope scope(graph, "instance");
      second = instance(x);
    }
    Program program = compile(graph, {{first, second}}, variables);
    // Deviations of 1e-4 around 777.7: 72 numbers, the same in both samples.
    const Tensor values =
        tensor(spec.shape, [](std::size_t i) { return 777.7 + 6.2e-5 * static_cast<double>(i % 36 % 5); });
    double mean = 0, squares = 0;
    for (const float value : values.values<float>()) mean += static_cast<double>(value) / 72;
    for (const float value : values.values<float>()) squares += std::pow(static_cast<double>(value) - mean, 2);
    program.write("x", values);
    for (int step = 0; step < 300; ++step) program.run();
    const auto read = [&](const std::string& name) {
      for (const auto& [key, held] : variables->read_all()) {
        if (key.ends_with(name)) return static_cast<double>(held.values<float>()[0]);
      }
      return std::nan("");
    };
    // A mean that moves by a tenth stops as soon as a tenth of what is left is less than half an ULP, in PyTorch too.
    CHECK(read("batch.running_mean") == Approx(mean).epsilon(7e-7));
    CHECK(read("batch.running_var") == Approx(squares / 71).epsilon(2e-5));
    CHECK(read("instance.running_mean") == Approx(mean).epsilon(7e-7));
    CHECK(read("instance.running_var") == Approx(squares / 2 / 35).epsilon(2e-3));
  }
}

TEST_CASE("local contrast normalisation makes 0 of a constant image", "[nn][exactness]") {
  for (const DevicePtr& device : devices()) {
    for (const double value : {777.7, 10000.1, -3.3e7}) {
      INFO(device->info().id << " " << value);
      nn::LocalContrastNorm layer;
      Graph graph;
      const TensorSpec spec{DType::f32, Shape{2, 3, 9, 11}};
      const Value y = layer(graph.input("x", spec));
      Program program = compile(graph, {{y}}, std::make_shared<Variables>(device, 0));
      program.write("x", tensor(spec.shape, [&](std::size_t) { return value; }));
      program.run();
      const Tensor got = program.read(y);
      CHECK(std::ranges::all_of(got.values<float>(), [](float v) { return v == 0; }));
    }
  }
}

TEST_CASE("cosines keep the range of fp32", "[nn][exactness]") {
  for (const DevicePtr& device : devices()) {
    for (const double size : {1e-25, 1.0, 1e25}) {
      INFO(device->info().id << " " << size);
      Graph graph;
      const TensorSpec spec{DType::f32, Shape{2, 3}};
      const Value a = graph.input("a", spec), b = graph.input("b", spec), target = graph.input("t", {DType::f32, {2}});
      const Value cosine = loss::CosineEmbedding{.reduction = loss::Reduction::none}(a, b, target);
      const Value slope = gradient(sum(cosine), std::vector{a})[0];
      Program program = compile(graph, {{cosine, slope}}, std::make_shared<Variables>(device, 0));
      program.write("a", tensor(spec.shape, [&](std::size_t i) { return size * (i % 3 == 0 ? 3 : i % 3 == 1 ? 4 : 0); }));
      program.write("b", tensor(spec.shape, [&](std::size_t i) { return size * (i % 3 == 0 ? 1 : 0); }));
      program.write("t", Tensor::of<float>(Shape{2}, std::vector<float>{1, 1}));
      program.run();
      // Far below 1e-6 the cosine is 0, as PyTorch defines it.
      const float expected = size < 1e-6 ? 1.0F : 0.4F;
      CHECK(program.read(cosine).values<float>()[0] == Approx(expected).epsilon(1e-5));
      // d(1 − cos)/da = −(b/|b| − cos·a/|a|)/|a| = −(1 − 0.36, −0.48, 0)/(5·size)
      if (size >= 1) CHECK(static_cast<double>(program.read(slope).values<float>()[0]) * size == Approx(-0.128).epsilon(1e-4));
    }
  }
}

TEST_CASE("distances and normalised weights keep the range of fp32", "[nn][exactness]") {
  for (const DevicePtr& device : devices()) {
    for (const double size : {1e-30, 1.0, 1e30}) {
      INFO(device->info().id << " " << size);
      Graph graph;
      const TensorSpec spec{DType::f32, Shape{2, 3}};
      const Value a = graph.input("a", spec), p = graph.input("p", spec), n = graph.input("n", spec);
      const Value distances = loss::TripletMargin{.margin = 0, .eps = 0, .reduction = loss::Reduction::none}(a, p, n);
      nn::WeightNorm<nn::Linear> layer{nn::Linear{3, 2, {.bias = false}}};
      const auto variables = std::make_shared<Variables>(device, 0);
      const Value y = layer(graph.input("x", {DType::f32, Shape{1, 3}}));
      Program program = compile(graph, {{distances, y}}, variables);
      const auto of = [&](double x, double y2) {
        return tensor(spec.shape, [&, x, y2](std::size_t i) { return size * (i % 3 == 0 ? x : i % 3 == 1 ? y2 : 0); });
      };
      program.write("a", of(0, 0));
      program.write("p", of(3, 4));
      program.write("n", of(1, 0));
      program.write("x", Tensor::of<float>(Shape{1, 3}, std::vector<float>{1, 1, 1}));
      for (const auto& [name, held] : variables->read_all()) {
        if (name.ends_with("original1")) variables->write(name, of(3, 4));
        if (name.ends_with("original0")) variables->write(name, tensor(held.shape(), [](std::size_t) { return 2; }));
      }
      program.run();
      CHECK(static_cast<double>(program.read(distances).values<float>()[0]) / size == Approx(4).epsilon(1e-5));
      CHECK(program.read(y).values<float>()[0] == Approx(2.8).epsilon(1e-5));
    }
  }
}
