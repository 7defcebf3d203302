// Steps whose gradients are not finite: not applied, named, and what a scaled loss makes of them.
#include <cmath>

#include "concord/optim/failure.hpp"
#include "files.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// loss = mean(sqrt(square(w·x)) + norm(x)): finite for x = 0, where its gradient is not.
struct Training {
  explicit Training(const DevicePtr& device, const optim::MinimizeOptions& options = {},
                    const optim::Optimizer& optimizer = optim::Adam{.lr = 0.1})
      : variables(std::make_shared<Variables>(device, 5)) {
    net.push("layer", nn::Linear{3, 2, {.bias = false}});
    other.push("other", nn::BatchNorm1d{3});
    const Value x = graph.input("x", {DType::f32, Shape{4, 3}});
    loss = mean(sqrt(square(net(x)))) + mean(square(other(x)));
    optim::minimize(loss, optimizer, options);
    program = std::make_unique<Program>(compile(graph, {{loss}}, variables));
  }
  void step(float scale) {
    Tensor x(DType::f32, Shape{4, 3});
    for (std::size_t i = 0; i < 12; ++i) x.values<float>()[i] = scale * std::sin(static_cast<float>(i + 1));
    program->write("x", x);
    program->run();
  }
  [[nodiscard]] float number(const char* name) const { return variables->read(name).values<float>()[0]; }
  [[nodiscard]] std::map<std::string, std::vector<std::byte>> bytes() const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const auto& [name, tensor] : variables->read_all()) {
      if (name != optim::kOk) all[name].assign(tensor.bytes().begin(), tensor.bytes().end());
    }
    return all;
  }

  nn::Sequential net, other;
  Graph graph;
  Value loss;
  VariablesPtr variables;
  std::unique_ptr<Program> program;
};

}  // namespace

TEST_CASE("a step whose gradients are not finite changes no bit and is explained", "[optim]") {
  const std::vector<optim::MinimizeOptions> ways{
      {},
      {.clip = {.norm = 1}},
      {.clip = {.value = 0.1}},
      {.groups = {{.match = optim::named("other.*"), .frozen = true}}},
      {.groups = {{.match = optim::vectors(), .optimizer = optim::Sgd{.lr = 0.1, .momentum = 0.9}}}},
      {.accumulate = 2},
      {.accumulate = 3, .ema_decay = 0.9},
      {.ema_decay = 0.9},
  };
  for (const DevicePtr& device : devices()) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      INFO(device->info().id << ", way " << i);
      Training training(device, ways[i]);
      for (int step = 0; step < 4; ++step) training.step(1);
      CHECK_NOTHROW(optim::require_applied(training.graph, *training.program));
      const auto before = training.bytes();
      training.step(0);
      CHECK(std::isfinite(training.program->read(training.loss).values<float>()[0]));
      CHECK(training.number(optim::kOk) == 0);
      CHECK(training.bytes() == before);
      const std::string message =
          message_of<NonFinite>([&] { optim::require_applied(training.graph, *training.program); });
      INFO(message);
      for (const char* part : {"'layer.weight' (6 of 6 elements)", "sqrt", "--clip-norm"}) {
        CHECK(contains(message, part));
      }
      training.step(1);
      CHECK(training.bytes() == before);  // it stays ended
    }
  }
}

TEST_CASE("with a scaled loss gradients that are not finite fail at scale 1", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Training training(device, {.loss_scale = 4});
    training.step(1);
    const Tensor weight = training.variables->read("layer.weight");
    for (const float scale : {2.0F, 1.0F}) {
      training.step(0);
      CHECK(training.number(optim::kOk) == 1);
      CHECK(training.number(optim::kScale) == scale);
    }
    training.step(0);
    CHECK(training.number(optim::kOk) == 0);
    CHECK(std::ranges::equal(training.variables->read("layer.weight").bytes(), weight.bytes()));
    CHECK(training.variables->read(optim::kStep).values<std::int32_t>()[0] == 1);
  }
}

TEST_CASE("gradients whose squares overflow are finite", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Linear layer{1, 1, {.bias = false}};
    layer.weight()->value = Tensor::of<float>(Shape{1, 1}, std::vector<float>{3});
    Graph graph;
    const Value loss = sum(layer(graph.input("x", {DType::f32, Shape{1, 1}})));
    optim::minimize(loss, optim::Sgd{.lr = 1e-30});
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, {{loss}}, variables);
    program.write("x", Tensor::of<float>(Shape{1, 1}, std::vector<float>{1e30F}));
    program.run();
    CHECK(variables->read(optim::kOk).values<float>()[0] == 1);
    CHECK(variables->read("weight").values<float>()[0] == Approx(2));
  }
}

TEST_CASE("the check of gradients can be left out", "[optim]") {
  const DevicePtr& device = devices().front();
  Training training(device, {.check_gradients = false});
  training.step(0);
  CHECK(training.number(optim::kOk) == 1);
  CHECK(std::isnan(training.number("layer.weight")));
}

TEST_CASE("a group of accumulated runs ends early where the host says so", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Linear layer{1, 1, {.bias = false}};
    layer.weight()->value = Tensor::of<float>(Shape{1, 1}, std::vector<float>{10});
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{2, 1}});
    optim::minimize(loss::total(sum(layer(x))), optim::Sgd{.lr = 1}, {.accumulate = 3});
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, {}, variables);
    const auto weight_after = [&](float a, float b, float flush) {
      variables->write(optim::kFlush, Tensor::of<float>(Shape{}, std::vector<float>{flush}));
      program.write("x", Tensor::of<float>(Shape{2, 1}, std::vector<float>{a, b}));
      program.run();
      return variables->read("weight").values<float>()[0];
    };
    CHECK(weight_after(1, 1, 0) == 10);
    CHECK(weight_after(1, 0, 1) == 7);  // a total is not divided
    CHECK(weight_after(1, 0, 0) == 7);
    CHECK(weight_after(1, 0, 0) == 7);
    CHECK(weight_after(1, 0, 0) == 4);
  }
}
