// MinimizeOptions::loss_scale: the same training as without where nothing overflows, and what a step does where it
// does.
#include <cmath>

#include "concord/optim/minimize.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// loss = mean((w·x)²)·factor, trained on one batch again and again.
struct Training {
  Training(const DevicePtr& device, const optim::MinimizeOptions& options, const optim::Optimizer& optimizer)
      : variables(std::make_shared<Variables>(device, 5)) {
    factor = graph.input("factor", {DType::f32, Shape{}});
    loss = mean(square(net(graph.input("x", {DType::f32, Shape{4, 3}})))) * factor;
    optim::minimize(loss, optimizer, options);
    program = std::make_unique<Program>(compile(graph, {{loss}}, variables));
    Tensor x(DType::f32, Shape{4, 3});
    for (std::size_t i = 0; i < 12; ++i) x.values<float>()[i] = std::sin(static_cast<float>(i));
    program->write("x", x);
  }
  void step(float by = 1) {
    program->write("factor", Tensor::of<float>(Shape{}, std::vector<float>{by}));
    program->run();
  }
  [[nodiscard]] float number(const char* name) const { return variables->read(name).values<float>()[0]; }
  [[nodiscard]] std::int32_t count(const char* name) const { return variables->read(name).values<std::int32_t>()[0]; }
  [[nodiscard]] std::vector<float> weights() const {
    const Tensor tensor = variables->read("weight");
    return {tensor.values<float>().begin(), tensor.values<float>().end()};
  }

  nn::Linear net{3, 2, {.bias = false}};
  Graph graph;
  Value factor, loss;
  VariablesPtr variables;
  std::unique_ptr<Program> program;
};

constexpr float kOverflowing = 1e37F;  // times the scale, above what f32 holds

}  // namespace

TEST_CASE("a scaled loss trains as a plain one", "[optim]") {
  for (const DevicePtr& device : devices()) {
    for (const int accumulate : {1, 2}) {
      INFO(device->info().id << ", " << accumulate << " runs an update");
      const optim::MinimizeOptions options{.clip = {.norm = 0.5}, .accumulate = accumulate};
      optim::MinimizeOptions scaled = options;
      scaled.loss_scale = 1024;
      Training plain(device, options, optim::Adam{.lr = 0.1}), other(device, scaled, optim::Adam{.lr = 0.1});
      for (int i = 0; i < 6; ++i) {
        plain.step();
        other.step();
      }
      const std::vector<float> expected = plain.weights(), got = other.weights();
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(got[i] - expected[i]) < 1e-6F);
      CHECK(other.count(optim::kStep) == 6 / accumulate);
      CHECK(other.number(optim::kScale) == 1024);
      CHECK(other.count(optim::kScaleSteps) == 6);
    }
  }
}

TEST_CASE("a step whose scaled gradients overflow is left out and halves the scale", "[optim]") {
  for (const DevicePtr& device : devices()) {
    for (const int accumulate : {1, 2}) {
      INFO(device->info().id << ", " << accumulate << " runs an update");
      Training training(device, {.accumulate = accumulate, .loss_scale = 1024}, optim::Sgd{.lr = 0.1, .momentum = 0.9});
      training.step();
      if (accumulate == 2) training.step();
      const std::vector<float> before = training.weights();
      training.step(kOverflowing);
      CHECK(training.weights() == before);
      CHECK(training.number(optim::kOk) == 1);
      CHECK(training.number(optim::kScale) == 512);
      CHECK(training.count(optim::kScaleSteps) == 0);
      CHECK(training.count(optim::kStep) == 1);
      for (int i = 0; i < accumulate; ++i) training.step();
      CHECK(training.weights() != before);
      CHECK(std::isfinite(training.weights()[0]));
      CHECK(training.count(optim::kStep) == 2);
    }
  }
}

TEST_CASE("the scale grows after many good steps, and a step that fails at scale 1 has failed", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Training training(device, {.loss_scale = 2}, optim::Sgd{.lr = 1e-4});
    for (int i = 0; i < optim::kScaleInterval; ++i) training.step();
    CHECK(training.number(optim::kScale) == 4);
    CHECK(training.count(optim::kScaleSteps) == 0);

    Training failing(device, {.loss_scale = 2}, optim::Sgd{.lr = 1e-4});
    const std::vector<float> before = failing.weights();
    failing.step(3e38F);
    CHECK(failing.number(optim::kOk) == 1);
    CHECK(failing.number(optim::kScale) == 1);
    failing.step(INFINITY);
    CHECK(failing.number(optim::kOk) == 0);
    CHECK(failing.weights() == before);
  }
  const auto with_scale = [](double scale) {
    nn::Linear net{3, 2};
    Graph graph;
    optim::minimize(mean(net(graph.input("x", {DType::f32, Shape{4, 3}}))), optim::Sgd{}, {.loss_scale = scale});
  };
  CHECK_THROWS_AS(with_scale(0.5), ArgumentError);
  CHECK_THROWS_AS(with_scale(1e9), ArgumentError);
}
