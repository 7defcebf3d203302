// Optimizers, groups and clipping against recorded runs of PyTorch, on every device.
#include "concord/optim/optimizers.hpp"

#include <algorithm>

#include "concord/compare/tolerance/extent.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;
using optim::named;
using optim::vectors;

namespace {

struct Case {
  const char* name;
  optim::Optimizer optimizer;
  optim::MinimizeOptions options = {};
};

Case muon(const char* name, const optim::Muon& muon) {
  const optim::AdamW others{.lr = muon.lr / 2, .weight_decay = 0.01};
  return {name, muon, {.groups = {{.match = vectors(), .optimizer = others}}}};
}

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
      {"adamw amsgrad",
       optim::AdamW{.lr = 0.05, .betas = {0.8, 0.9}, .eps = 1e-6, .weight_decay = 0.02, .amsgrad = true}},
      {"adamax", optim::Adamax{.lr = 0.01}},
      {"adamax decay", optim::Adamax{.lr = 0.02, .betas = {0.8, 0.9}, .eps = 1e-4, .weight_decay = 0.1}},
      {"nadam", optim::NAdam{.lr = 0.01}},
      {"nadam decay",
       optim::NAdam{.lr = 0.01, .betas = {0.8, 0.9}, .eps = 1e-6, .weight_decay = 0.1, .momentum_decay = 0.1}},
      {"nadam decoupled", optim::NAdam{.lr = 0.01, .weight_decay = 0.1, .decoupled_weight_decay = true}},
      {"radam", optim::RAdam{.lr = 0.01}},
      {"radam decay", optim::RAdam{.lr = 0.01, .betas = {0.8, 0.9}, .eps = 1e-4, .weight_decay = 0.1}},
      {"radam decoupled",
       optim::RAdam{.lr = 0.01, .betas = {0.9, 0.99}, .weight_decay = 0.1, .decoupled_weight_decay = true}},
      {"lamb", optim::Lamb{.lr = 0.01}},
      {"lamb bounds",
       optim::Lamb{
           .lr = 0.02, .betas = {0.8, 0.9}, .eps = 1e-4, .weight_decay = 0.1, .least_norm = 0.5, .most_norm = 1.5}},
      {"rmsprop", optim::RMSprop{.lr = 0.01}},
      {"rmsprop centered",
       optim::RMSprop{.lr = 0.01, .alpha = 0.9, .momentum = 0.5, .centered = true, .weight_decay = 0.01}},
      {"rmsprop momentum", optim::RMSprop{.lr = 0.01, .eps = 1e-4, .momentum = 0.5}},
      {"adagrad", optim::Adagrad{.lr = 0.1}},
      {"adagrad decay", optim::Adagrad{.lr = 0.1, .lr_decay = 0.05, .initial_accumulator = 0.1, .weight_decay = 0.01}},
      {"adagrad eps", optim::Adagrad{.lr = 0.1, .eps = 0.01}},
      {"adadelta", optim::Adadelta{}},
      {"adadelta decay", optim::Adadelta{.lr = 0.5, .rho = 0.8, .eps = 1e-4, .weight_decay = 0.1}},
      {"lars", optim::Lars{.lr = 0.5}},
      {"lars decay", optim::Lars{.lr = 0.1, .momentum = 0.5, .weight_decay = 0.1, .trust = 0.02, .eps = 0.01}},
      {"lion", optim::Lion{.lr = 0.01}},
      {"lion decay", optim::Lion{.lr = 0.02, .betas = {0.8, 0.9}, .weight_decay = 0.1}},
      {"adafactor", optim::Adafactor{}},
      {"adafactor decay",
       optim::Adafactor{.lr = 0.3, .beta2_decay = -0.6, .eps1 = 1e-8, .eps2 = 0.2, .d = 1.5, .weight_decay = 0.1}},
      muon("muon", {.lr = 0.02}),
      muon("muon plain", {.lr = 0.02,
                          .weight_decay = 0.01,
                          .momentum = 0.8,
                          .nesterov = false,
                          .coefficients = {2, -1.5, 0.5},
                          .eps = 0.5,
                          .iterations = 3,
                          .rate = optim::Muon::Rate::match_rms_adamw}),
      muon("muon spectral", {.lr = 0.02, .rate = optim::Muon::Rate::spectral}),
      {"groups",
       optim::AdamW{.lr = 0.01, .weight_decay = 0.1},
       {.groups = {{.match = named("0.weight"), .rate_factor = 0.2},
                   {.match = named("0.*"), .weight_decay = 0},
                   {.match = named("*.w??ght"), .frozen = true}}}},
      {"clip norm", optim::Sgd{.lr = 0.1, .momentum = 0.9}, {.clip = {.norm = 0.3}}},
      {"clip value", optim::Sgd{.lr = 0.1, .momentum = 0.9}, {.clip = {.value = 0.05}}},
      {"clip lamb", optim::Lamb{.lr = 0.01}, {.clip = {.norm = 0.3, .value = 0.05}}},
  };
  return all;
}

/// tanh(x·Aᵀ + a)·Bᵀ + b with the recorded start, trained on the recorded data.
struct Run {
  Run(const DevicePtr& device, const nlohmann::json& start, const optim::Optimizer& optimizer,
      const optim::MinimizeOptions& options, const CompileOptions& compiled = {})
      : variables(std::make_shared<Variables>(device, 0)) {
    first.weight()->value = tensor_of(Shape{4, 3}, start.at("0.weight"));
    first.bias()->value = tensor_of(Shape{4}, start.at("0.bias"));
    second.weight()->value = tensor_of(Shape{2, 4}, start.at("2.weight"));
    second.bias()->value = tensor_of(Shape{2}, start.at("2.bias"));
    const Value x = graph.input("x", {DType::f32, Shape{16, 3}});
    const Value y = graph.input("y", {DType::f32, Shape{16, 2}});
    const Value loss = loss::mse(nn::Sequential{first, nn::Tanh{}, second}(x), y);
    optim::minimize(loss, optimizer, options);
    program = std::make_unique<Program>(compile(graph, {{loss}}, variables, compiled));
    program->write("x", tensor_of(Shape{16, 3}, start.at("x")));
    program->write("y", tensor_of(Shape{16, 2}, start.at("y")));
  }

  nn::Linear first{3, 4}, second{4, 2};
  Graph graph;
  VariablesPtr variables;
  std::unique_ptr<Program> program;
};

}  // namespace

TEST_CASE("optimizers reproduce PyTorch's updates", "[optim]") {
  const nlohmann::json recorded = golden("optimizers.json");
  REQUIRE(recorded.at("runs").size() == cases().size());
  for (const DevicePtr& device : devices()) {
    for (const Case& c : cases()) {
      Run run(device, recorded.at("start"), c.optimizer, c.options);
      for (int step = 1; step <= 20; ++step) {
        run.program->run();
        const auto expected = recorded.at("runs").at(c.name).find(std::to_string(step));
        if (expected == recorded.at("runs").at(c.name).end()) continue;
        for (const auto& [name, numbers] : expected->items()) {
          INFO(c.name << ": " << name << " after step " << step << " on " << device->info().id);
          CHECK(difference(run.variables->read(name), numbers) < (step == 20 ? 1e-5 : 1e-6));
        }
      }
    }
  }
}

TEST_CASE("updates in groups give the bits of updates one by one", "[optim]") {
  const nlohmann::json recorded = golden("optimizers.json");
  for (const DevicePtr& device : devices()) {
    for (const Case& c : cases()) {
      Run grouped(device, recorded.at("start"), c.optimizer, c.options);
      Run single(device, recorded.at("start"), c.optimizer, c.options, {.keep_all = true});
      INFO(c.name << " on " << device->info().id);
      // Its products round otherwise where formulas are fused into them.
      const bool has_products = std::string_view(c.name).starts_with("muon");
      CHECK(grouped.program->launches() <= single.program->launches());
      for (int step = 0; step < 5; ++step) {
        grouped.program->run();
        single.program->run();
      }
      for (const std::string& name : single.variables->names()) {
        INFO(name);
        const Tensor a = grouped.variables->read(name), b = single.variables->read(name);
        CHECK(largest_difference(a, b) <= (has_products ? 1e-4 : 0));
      }
    }
  }
}

TEST_CASE("optimizers refuse parameters out of range", "[optim]") {
  CHECK_THROWS_AS(optim::Sgd{.lr = -1}.rule(), ArgumentError);
  CHECK_THROWS_AS((optim::Sgd{.nesterov = true}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Adam{.betas = {0.9, 1.0}}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Adagrad{.eps = -1e-10}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Adadelta{.rho = 1.5}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Lamb{.least_norm = 2, .most_norm = 1}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Adafactor{.d = 0.5}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Adafactor{.beta2_decay = 0.8}.rule()), ArgumentError);
  CHECK_THROWS_AS((optim::Muon{.iterations = 0}.rule()), ArgumentError);
}
