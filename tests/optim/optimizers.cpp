// Optimizers and clipping against recorded PyTorch runs, on every device.
#include "concord/optim/optimizers.hpp"

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

struct Case {
  const char* name;
  optim::Optimizer optimizer;
  optim::Clip clip = {};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"sgd", optim::Sgd{.lr = 0.1}},
      {"sgd momentum", optim::Sgd{.lr = 0.1, .momentum = 0.9}},
      {"sgd nesterov", optim::Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01}},
      {"sgd dampening", optim::Sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01}},
      {"adam", optim::Adam{.lr = 0.01}},
      {"adam amsgrad", optim::Adam{.lr = 0.05, .betas = {0.8, 0.9}, .amsgrad = true}},
      {"adam decay", optim::Adam{.lr = 0.01, .eps = 1e-6, .weight_decay = 0.1}},
      {"adamw", optim::AdamW{.lr = 0.01, .weight_decay = 0.1}},
      {"rmsprop", optim::RMSprop{.lr = 0.01}},
      {"rmsprop centered",
       optim::RMSprop{.lr = 0.01, .alpha = 0.9, .momentum = 0.5, .centered = true, .weight_decay = 0.01}},
      {"adagrad", optim::Adagrad{.lr = 0.1}},
      {"adagrad decay", optim::Adagrad{.lr = 0.1, .lr_decay = 0.05, .initial_accumulator = 0.1, .weight_decay = 0.01}},
      {"clip norm", optim::Sgd{.lr = 0.1, .momentum = 0.9}, {.norm = 0.3}},
      {"clip value", optim::Sgd{.lr = 0.1, .momentum = 0.9}, {.value = 0.05}},
  };
  return all;
}

}  // namespace

TEST_CASE("optimizers reproduce PyTorch's updates", "[optim]") {
  const nlohmann::json recorded = golden("optimizers.json");
  const nlohmann::json& start = recorded.at("start");
  REQUIRE(recorded.at("runs").size() == cases().size());
  for (const DevicePtr& device : devices()) {
    for (const Case& c : cases()) {
      nn::Linear layer{5, 3};
      layer.weight()->value = tensor_of(Shape{3, 5}, start.at("weight"));
      layer.bias()->value = tensor_of(Shape{3}, start.at("bias"));
      Graph graph;
      const Value x = graph.input("x", {DType::f32, Shape{16, 5}});
      const Value y = graph.input("y", {DType::f32, Shape{16, 3}});
      const Value loss = loss::mse(tanh(layer(x)), y);
      optim::minimize(loss, c.optimizer, {.clip = c.clip});
      const auto variables = std::make_shared<Variables>(device, 0);
      Program program = compile(graph, {{loss}}, variables);
      program.write("x", tensor_of(Shape{16, 5}, start.at("x")));
      program.write("y", tensor_of(Shape{16, 3}, start.at("y")));
      for (int step = 1; step <= 20; ++step) {
        program.run();
        const auto expected = recorded.at("runs").at(c.name).find(std::to_string(step));
        if (expected == recorded.at("runs").at(c.name).end()) continue;
        INFO(c.name << ", step " << step << " on " << device->info().id);
        const double tolerance = step == 20 ? 1e-5 : 1e-6;
        CHECK(difference(variables->read("weight"), expected->at("weight")) < tolerance);
        CHECK(difference(variables->read("bias"), expected->at("bias")) < tolerance);
      }
    }
  }
}

TEST_CASE("optimizers refuse parameters out of range", "[optim]") {
  CHECK_THROWS_AS(optim::Sgd{.lr = -1}.rule(), ArgumentError);
  CHECK_THROWS_AS((optim::Sgd{.nesterov = true}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Adam{.betas = {0.9, 1.0}}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Adagrad{.eps = -1e-10}.rule()), ArgumentError);
}
