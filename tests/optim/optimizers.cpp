// Optimizers, groups and clipping against recorded runs of PyTorch, on every device.
#include "concord/optim/optimizers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "concord/compare/tolerance/magnitude.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;
using optim::named;
using optim::vectors;

namespace {

struct Case {
  std::string name;
  optim::Optimizer optimizer;
  optim::MinimizeOptions options = {};
};

void assign(double& field, const nlohmann::json& value) { field = value.get<double>(); }
void assign(bool& field, const nlohmann::json& value) { field = value.get<bool>(); }
void assign(optim::Betas& field, const nlohmann::json& value) {
  field = {value[0].get<double>(), value[1].get<double>()};
}

/// Sets a parameter by its name; false where this optimizer has none of it.
template <class Parameters>
bool set(Parameters& parameters, const std::string& name, const nlohmann::json& value) {
// clang-format off
#define CONCORD_FIELD(field) \
  if constexpr (requires { parameters.field; }) { \
    if (name == #field) return assign(parameters.field, value), true; \
  }
  // clang-format on
  CONCORD_FIELD(lr)
  CONCORD_FIELD(weight_decay)
  CONCORD_FIELD(decoupled_weight_decay)
  CONCORD_FIELD(eps)
  CONCORD_FIELD(eps1)
  CONCORD_FIELD(eps2)
  CONCORD_FIELD(momentum)
  CONCORD_FIELD(dampening)
  CONCORD_FIELD(nesterov)
  CONCORD_FIELD(momentum_decay)
  CONCORD_FIELD(betas)
  CONCORD_FIELD(amsgrad)
  CONCORD_FIELD(alpha)
  CONCORD_FIELD(centered)
  CONCORD_FIELD(rho)
  CONCORD_FIELD(lr_decay)
  CONCORD_FIELD(initial_accumulator)
  CONCORD_FIELD(beta2_decay)
  CONCORD_FIELD(d)
  CONCORD_FIELD(trust)
  CONCORD_FIELD(least_norm)
  CONCORD_FIELD(most_norm)
#undef CONCORD_FIELD
  return false;
}

/// The optimizer of this name with parameters of these names.
optim::Optimizer made(const std::string& optimizer, const nlohmann::json& options) {
  std::optional<optim::Optimizer> result;
  const auto make_if_named = [&](auto parameters) {
    if (parameters.rule().name != optimizer) return;
    for (const auto& [name, value] : options.items()) {
      INFO(optimizer << ": " << name);
      REQUIRE(set(parameters, name, value));
    }
    result = optim::Optimizer(parameters);
  };
  std::apply([&](const auto&... all) { (make_if_named(all), ...); }, optim::Optimizers{});
  INFO("optimizer " << optimizer);
  REQUIRE(result);
  return *result;
}

Case muon(const char* name, const optim::Muon& muon) {
  const optim::AdamW others{.lr = muon.lr / 2, .weight_decay = 0.01};
  return {name, muon, {.groups = {{.match = vectors(), .optimizer = others}}}};
}

/// The recorded runs: those that name their optimizer as recorded, the others as written here.
std::vector<Case> cases(const nlohmann::json& recorded) {
  std::vector<Case> all{
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
  for (const auto& [name, run] : recorded.at("runs").items()) {
    if (run.contains("optimizer")) all.push_back({name, made(run.at("optimizer"), run.at("options"))});
  }
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
  const std::vector<Case> all = cases(recorded);
  REQUIRE(recorded.at("runs").size() == all.size());
  for (const DevicePtr& device : devices()) {
    for (const Case& c : all) {
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

TEST_CASE("every optimizer has a recorded run", "[optim]") {
  const nlohmann::json recorded = golden("optimizers.json");
  const auto expect_run = [&](const std::string& optimizer) {
    const bool is_there = std::ranges::any_of(
        recorded.at("runs"), [&](const nlohmann::json& run) { return run.value("optimizer", "") == optimizer; });
    INFO(optimizer);
    CHECK((is_there || recorded.at("runs").contains(optimizer)));
  };
  std::apply([&](const auto&... all) { (expect_run(all.rule().name), ...); }, optim::Optimizers{});
}

TEST_CASE("updates in groups give the bits of updates one by one", "[optim]") {
  const nlohmann::json recorded = golden("optimizers.json");
  for (const DevicePtr& device : devices()) {
    for (const Case& c : cases(recorded)) {
      Run grouped(device, recorded.at("start"), c.optimizer, c.options);
      Run single(device, recorded.at("start"), c.optimizer, c.options, {.retain = Retain::all});
      INFO(c.name << " on " << device->info().id);
      // Its products round otherwise where formulas are fused into them.
      const bool has_products = c.name.starts_with("muon");
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
