// Optimizers on gradients of every size of fp32: weights and states stay numbers, and an update that does not depend on
// the size of the gradients does not, whether or not their squares leave fp32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::int64_t kRows = 4, kColumns = 3;
constexpr std::size_t kElements = kRows * kColumns;

struct Pattern {
  const char* name;
  std::function<double(std::size_t step, std::size_t element)> gradient;
};

Pattern constant(const char* name, double value) {
  return {name, [value](std::size_t, std::size_t) { return value; }};
}
Pattern alternating(const char* name, double value) {
  return {name, [value](std::size_t step, std::size_t) { return step % 2 == 0 ? value : -value; }};
}

std::vector<Pattern> patterns() {
  const auto mixed = [](std::size_t step, std::size_t element) {
    constexpr std::array<double, 9> kSizes{0, 1e-38, -1e-20, 1e-3, -2, 1e10, -1e20, 1e30, -3e38};
    return kSizes[(7 * step + 5 * element) % kSizes.size()];
  };
  const auto falling = [](std::size_t step, std::size_t) { return step < 3 ? 1e25 : 1e-5; };
  const auto rising = [](std::size_t step, std::size_t) { return std::pow(10.0, -37 + static_cast<double>(step) / 2); };
  const auto sparse = [](std::size_t step, std::size_t element) { return (step + element) % 5 == 0 ? 1e22 : 0; };
  return {constant("0", 0),
          constant("1000.1", 1000.1),
          constant("1e-38", 1e-38),
          constant("1e-30", 1e-30),
          constant("1e-20", 1e-20),
          constant("1e20", 1e20),
          constant("1e30", 1e30),
          constant("3e38", 3e38),
          alternating("±1000.1", 1000.1),
          alternating("±1e-25", 1e-25),
          alternating("±3e38", 3e38),
          {"mixed", mixed},
          {"falling", falling},
          {"rising", rising},
          {"sparse", sparse}};
}

/// A weight for each pattern, of a loss whose gradient is what is written and whose value is 0.
class Trained {
 public:
  Trained(const DevicePtr& device, std::vector<Pattern> gradients, const optim::Optimizer& optimizer,
          const optim::MinimizeOptions& options = {})
      : patterns_(std::move(gradients)), variables_(std::make_shared<Variables>(device, 5)) {
    Graph graph;
    Value loss;
    for (std::size_t p = 0; p < patterns_.size(); ++p) {
      const TensorSpec spec{DType::f32, Shape{kRows, kColumns}};
      const auto variable = std::make_shared<Variable>(
          Variable{fmt::format("w{}", p), spec, {Initializer::Kind::constant, 1, 0}, true, {}});
      const Value weight = graph.variable(variable);
      const Value one = sum((weight - stop_gradient(weight)) * graph.input(fmt::format("g{}", p), spec));
      loss = loss ? loss + one : one;
    }
    optim::minimize(loss, optimizer, options);
    program_ = std::make_unique<Program>(compile(graph, {{loss}}, variables_));
  }

  void run(std::size_t steps) {
    Tensor gradient(DType::f32, Shape{kRows, kColumns});
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t p = 0; p < patterns_.size(); ++p) {
        for (std::size_t i = 0; i < kElements; ++i) {
          gradient.values<float>()[i] = static_cast<float>(patterns_[p].gradient(step, i));
        }
        program_->write(fmt::format("g{}", p), gradient);
      }
      program_->run();
    }
  }

  [[nodiscard]] std::vector<float> weight(std::size_t pattern) const {
    const Tensor tensor = variables_->read(fmt::format("w{}", pattern));
    return {tensor.values<float>().begin(), tensor.values<float>().end()};
  }

  void check_finite() const {
    for (const auto& [name, tensor] : variables_->read_all()) {
      if (tensor.dtype() != DType::f32) continue;
      const auto values = tensor.values<float>();
      INFO(name << " = " << values[0]);
      CHECK(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }));
    }
    CHECK(variables_->read(optim::kOk).values<float>()[0] == 1);
  }

 private:
  std::vector<Pattern> patterns_;
  VariablesPtr variables_;
  std::unique_ptr<Program> program_;
};

struct Case {
  std::string name;
  optim::Optimizer optimizer;
  optim::MinimizeOptions options = {};
};

std::vector<Case> rows() {
  using namespace optim;
  return {{"sgd", Sgd{.lr = 0.1}},
          {"sgd momentum", Sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.1}},
          {"sgd nesterov", Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01}},
          {"adam", Adam{.lr = 0.01}},
          {"adam eps 0", Adam{.lr = 0.01, .betas = {0.5, 0.9}, .eps = 0, .amsgrad = true}},
          {"adamw", AdamW{.lr = 0.01, .eps = 0}},
          {"rmsprop", RMSprop{.lr = 0.01, .eps = 0, .momentum = 0.9}},
          {"rmsprop centered", RMSprop{.lr = 0.01, .alpha = 0.5, .centered = true}},
          {"rmsprop centered eps 0", RMSprop{.lr = 0.01, .eps = 0, .momentum = 0.5, .centered = true}},
          {"adagrad", Adagrad{.lr = 0.1}},
          {"adagrad eps 0", Adagrad{.lr = 0.1, .lr_decay = 0.01, .eps = 0}},
          {"adadelta", Adadelta{}},
          {"adadelta eps 0", Adadelta{.eps = 0}},
          {"adamax", Adamax{.lr = 0.01}},
          {"adamax eps 0", Adamax{.lr = 0.01, .eps = 0}},
          {"nadam", NAdam{.lr = 0.01, .eps = 0}},
          {"radam", RAdam{.lr = 0.01, .betas = {0.9, 0.99}, .eps = 0}},
          {"lars", Lars{.lr = 0.1, .weight_decay = 0.01}},
          {"lamb", Lamb{.lr = 0.01, .eps = 0}},
          {"lion", Lion{.lr = 0.01, .betas = {0.5, 0.5}}},
          {"adafactor", Adafactor{}},
          {"adafactor eps 0", Adafactor{.eps1 = 0}},
          {"muon", Muon{.lr = 0.01}},
          {"clip norm", Adam{.lr = 0.01}, {.clip = {.norm = 1}}},
          {"clip value", RMSprop{.lr = 0.01, .alpha = 0.5, .centered = true}, {.clip = {.value = 10}}},
          {"accumulated, averaged", AdamW{.lr = 0.01}, {.accumulate = 2, .ema_decay = 0.9}},
          {"checked", Sgd{.lr = 0.1, .momentum = 0.9}, {.check_gradients = true, .ema_decay = 0.5}}};
}

/// The rows, and the optimizers without one: as they come, and with the least eps.
std::vector<Case> cases() {
  std::vector<Case> all = rows();
  const auto add_unless_there = [&](auto parameters) {
    const std::string name = parameters.rule().name;
    if (std::ranges::any_of(all, [&](const Case& row) { return row.name.starts_with(name); })) return;
    all.push_back({name, parameters});
    if constexpr (requires { parameters.eps; }) {
      parameters.eps = 0;
      all.push_back({name + " eps 0", parameters});
    }
  };
  std::apply([&](const auto&... optimizers) { (add_unless_there(optimizers), ...); }, optim::Optimizers{});
  return all;
}

}  // namespace

TEST_CASE("no optimizer leaves the numbers for finite gradients", "[optim][range]") {
  for (const DevicePtr& device : devices()) {
    for (const Case& test : cases()) {
      INFO(test.name << " on " << device->info().id);
      Trained trained(device, patterns(), test.optimizer, test.options);
      trained.run(100);
      trained.check_finite();
    }
  }
}

TEST_CASE("gradients beyond the scale of the loss leave the weights as they are", "[optim][range]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trained trained(device, {constant("1e36", 1e36)}, optim::Adam{.lr = 0.01}, {.loss_scale = 65536});
    trained.run(60);
    trained.check_finite();
    CHECK(trained.weight(0)[0] < 0.9F);  // the scale has come down
  }
}

TEST_CASE("an update that does not depend on the gradients' size does not at any size", "[optim][range]") {
  using namespace optim;
  const std::vector<Case> same{{"adam", Adam{.lr = 0.01, .eps = 0}},
                               {"adam amsgrad", Adam{.lr = 0.01, .betas = {0.8, 0.9}, .eps = 0, .amsgrad = true}},
                               {"rmsprop", RMSprop{.lr = 0.01, .alpha = 0.9, .eps = 0}},
                               {"rmsprop centered", RMSprop{.lr = 0.01, .alpha = 0.9, .eps = 0, .centered = true}},
                               {"adagrad", Adagrad{.lr = 0.1, .eps = 0}},
                               {"adamax", Adamax{.lr = 0.01, .eps = 0}},
                               {"nadam", NAdam{.lr = 0.01, .eps = 0}},
                               {"lamb", Lamb{.lr = 0.01, .eps = 0, .weight_decay = 0}},
                               {"lars", Lars{.lr = 0.1}},
                               {"lion", Lion{.lr = 0.01}},
                               {"adafactor", Adafactor{.eps1 = 0}}};
  // Sizes are powers of two, so that nothing else is rounded.
  std::vector<Pattern> sized;
  for (const int exponent : {0, -100, -80, -50, 50, 80, 120}) {
    sized.push_back({"", [exponent](std::size_t step, std::size_t i) {
                       return std::ldexp(1 + std::sin(static_cast<double>(3 * step + i)), exponent);
                     }});
  }
  for (const DevicePtr& device : devices()) {
    for (const Case& test : same) {
      INFO(test.name << " on " << device->info().id);
      Trained trained(device, sized, test.optimizer, test.options);
      trained.run(30);
      trained.check_finite();
      const std::vector<float> usual = trained.weight(0);
      CHECK(std::abs(usual[0] - 1) > 1e-3F);
      for (std::size_t p = 1; p < sized.size(); ++p) {
        const std::vector<float> got = trained.weight(p);
        for (std::size_t i = 0; i < kElements; ++i) {
          INFO("size " << p << ", element " << i << ": " << got[i] << ", at size 1 " << usual[i]);
          CHECK(std::abs(got[i] - usual[i]) <= 2e-4F * std::abs(usual[i] - 1) + 1e-6F);
        }
      }
    }
  }
}

TEST_CASE("the norm that gradients are clipped to keeps the range of fp32", "[optim][range]") {
  for (const DevicePtr& device : devices()) {
    for (const double size : {1e-30, 1e-22, 1e-3, 1e3, 1e20, 1e30, 1e36}) {
      INFO(size << " on " << device->info().id);
      // The norm of three weights of 12 elements each is 6 times the size of one.
      const Pattern pattern = constant("", size);
      Trained trained(device, {pattern, pattern, pattern}, optim::Sgd{.lr = 1}, {.clip = {.norm = 0.5}});
      trained.run(1);
      const double moved = std::min(0.5 / 6, size);
      CHECK(static_cast<double>(1 - trained.weight(2)[0]) == Approx(moved).epsilon(1e-4).margin(1e-7));
    }
    // Beyond fp32 the norm is the largest number of it; no gradient vanishes and no weight leaves the numbers.
    Trained trained(device, {constant("", 3e38)}, optim::Sgd{.lr = 1}, {.clip = {.norm = 1}});
    trained.run(1);
    trained.check_finite();
    CHECK(trained.weight(0)[0] < 1);
    CHECK(trained.weight(0)[0] > -5);
  }
}

TEST_CASE("a moment whose square fp32 does not hold is kept as its negated root", "[optim][range]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const auto weight = std::make_shared<Variable>(
        Variable{"w", {DType::f32, Shape{2}}, {Initializer::Kind::constant, 1, 0}, true, {}});
    const Value w = graph.variable(weight), g = graph.input("g", {DType::f32, Shape{2}});
    const Value loss = sum((w - stop_gradient(w)) * g);
    optim::minimize(loss, optim::Adam{.lr = 0.01, .betas = {0.9, 0.75}});
    const auto variables = std::make_shared<Variables>(device, 5);
    Program program = compile(graph, {{loss}}, variables);
    program.write("g", Tensor::of<float>(Shape{2}, std::vector<float>{1e25F, 3}));
    program.run();
    const Tensor state = variables->read("optim.w.exp_avg_sq");
    CHECK(state.values<float>()[0] == Approx(-0.5e25));
    CHECK(state.values<float>()[1] == Approx(0.25 * 9));
    // Back in fp32, it is the square again: 40 steps of 0 halve the root 40 times.
    program.write("g", Tensor(DType::f32, Shape{2}));
    for (int step = 0; step < 60; ++step) program.run();
    const double later = 0.25 * 1e50 * std::pow(0.75, 60);
    const float kept = variables->read("optim.w.exp_avg_sq").values<float>()[0];
    if (later < 1e36) CHECK(static_cast<double>(kept) == Approx(later).epsilon(1e-3));
    if (later >= 1e36) CHECK(static_cast<double>(kept) == Approx(-std::sqrt(later)).epsilon(1e-3));
  }
}
