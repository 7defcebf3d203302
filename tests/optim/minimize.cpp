// minimize: what a loss that is not finite leaves behind, and the counters.
#include "concord/optim/minimize.hpp"

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// loss = mean(w · x) with batch statistics and dropout on the way.
struct Training {
  explicit Training(const DevicePtr& device, const optim::MinimizeOptions& options = {})
      : variables(std::make_shared<Variables>(device, 5)) {
    const Value x = graph.input("x", {DType::f32, Shape{4, 2, 3, 3}});
    loss = mean(square(net(x)));
    optim::minimize(loss, optim::Adam{.lr = 0.1}, options);
    program = std::make_unique<Program>(compile(graph, {{loss}}, variables));
  }
  void step(float value) {
    Tensor x(DType::f32, Shape{4, 2, 3, 3});
    for (std::size_t i = 0; i < x.values<float>().size(); ++i) {
      x.values<float>()[i] = std::sin(static_cast<float>(i));
    }
    x.values<float>()[0] = value;
    program->write("x", x);
    program->run();
  }

  nn::Sequential net{nn::BatchNorm2d{2}, nn::Dropout{0.5F}, nn::Conv2d{2, 3, 2}};
  Graph graph;
  Value loss;
  VariablesPtr variables;
  std::unique_ptr<Program> program;
};

std::map<std::string, std::vector<std::byte>> bytes_of(const Variables& variables) {
  std::map<std::string, std::vector<std::byte>> all;
  for (const auto& [name, tensor] : variables.read_all())
    all[name].assign(tensor.bytes().begin(), tensor.bytes().end());
  return all;
}

}  // namespace

TEST_CASE("random numbers go on beyond the largest step that is exact as a number", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Training training(device);
    training.step(1);
    Tensor state = training.variables->read("random.state");
    state.values<std::int32_t>()[2] = optim::kMostSteps - 1;
    training.variables->write("random.state", state);
    training.step(1);
    CHECK(training.variables->read("random.state").values<std::int32_t>()[2] == 0);
    training.step(1);
    CHECK(training.variables->read("random.state").values<std::int32_t>()[2] == 1);
  }
}

TEST_CASE("nothing changes from the first loss on that is not finite", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Training training(device);
    training.step(1);
    training.step(2);
    auto before = bytes_of(*training.variables);
    CHECK(training.variables->read(optim::kStep).values<std::int32_t>()[0] == 2);
    CHECK(training.variables->read("random.state").values<std::int32_t>()[2] == 2);
    CHECK(training.variables->read(optim::kOk).values<float>()[0] == 1);
    training.step(NAN);
    training.step(1);  // a good batch does not bring it back to life
    CHECK(training.variables->read(optim::kOk).values<float>()[0] == 0);
    auto after = bytes_of(*training.variables);
    before.erase(optim::kOk);
    after.erase(optim::kOk);
    for (const auto& [name, bytes] : before) {
      INFO(name);
      CHECK(bytes == after.at(name));
    }
  }
}

TEST_CASE("gradients can be checked too", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Linear layer{1, 1, {.bias = false}};
    layer.weight()->value = Tensor::of<float>(Shape{1, 1}, std::vector<float>{0});
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{1, 1}});
    const Value loss = sum(sqrt(layer(x)));  // finite at 0, its slope is not
    optim::minimize(loss, optim::Sgd{.lr = 0.1}, {.check_gradients = true});
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, {{loss}}, variables);
    program.write("x", Tensor::of<float>(Shape{1, 1}, std::vector<float>{1}));
    program.run();
    CHECK(program.read(loss).values<float>()[0] == 0);
    CHECK(variables->read(optim::kOk).values<float>()[0] == 0);
    CHECK(variables->read("weight").values<float>()[0] == 0);
  }
}

TEST_CASE("gradients of several runs make one update", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Linear layer{1, 1, {.bias = false}};
    layer.weight()->value = Tensor::of<float>(Shape{1, 1}, std::vector<float>{3});
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{1, 1}});
    const Value loss = sum(layer(x));  // its gradient is x
    optim::minimize(loss, optim::Sgd{.lr = 1}, {.clip = {.norm = 4}, .accumulate = 3});
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, {{loss}}, variables);
    const auto weight_after = [&](float value) {
      program.write("x", Tensor::of<float>(Shape{1, 1}, std::vector<float>{value}));
      program.run();
      return variables->read("weight").values<float>()[0];
    };
    CHECK(weight_after(3) == 3);
    CHECK(weight_after(-6) == 3);
    CHECK(weight_after(6) == Approx(2));  // 3 − (3 − 6 + 6)/3
    CHECK(weight_after(30) == Approx(2));
    CHECK(weight_after(0) == Approx(2));
    CHECK(variables->read("optim.weight.accumulated").values<float>()[0] == Approx(10));
    CHECK(weight_after(0) == Approx(-2));  // a mean of 10, clipped to 4
    CHECK(variables->read(optim::kStep).values<std::int32_t>()[0] == 2);
    CHECK(variables->read("optim.weight.accumulated").values<float>()[0] == 0);
  }
}

TEST_CASE("programs that train parts of the same variables count for themselves under a name", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Sequential ahead, behind;
    ahead.push("ahead", nn::Linear{1, 1, {.bias = false}});
    behind.push("behind", nn::Linear{1, 1, {.bias = false}});
    const auto variables = std::make_shared<Variables>(device, 1);
    const auto training = [&](const std::string& name, const std::string& other, const optim::Optimizer& optimizer) {
      Graph graph;
      const Value loss = mean(square(behind(ahead(full(graph, Shape{4, 1}, 1))) - 1.0F));
      optim::minimize(loss, optimizer,
                      {.groups = {{.match = optim::named(other + ".*"), .frozen = true}}, .name = name});
      return compile(graph, {{loss}}, variables);
    };
    Program first = training("ahead", "behind", optim::NAdam{.lr = 0.25});
    Program second = training("behind", "ahead", optim::NAdam{.lr = 0.5});
    const auto weight = [&](const char* name) { return variables->read(name).values<float>()[0]; };
    const float before = weight("behind.weight");
    first.run();
    first.run();
    CHECK(weight("behind.weight") == before);
    second.run();
    CHECK(weight("behind.weight") != before);
    CHECK(variables->read("optim.ahead.step").values<std::int32_t>()[0] == 2);
    CHECK(variables->read("optim.behind.step").values<std::int32_t>()[0] == 1);
    CHECK(weight("optim.ahead.lr") == 0.25F);
    CHECK(weight("optim.behind.lr") == 0.5F);
    for (const char* unnamed : {optim::kRate, optim::kStep, optim::kOk}) CHECK_FALSE(variables->contains(unnamed));
    CHECK(weight("optim.ahead.mu_product") != weight("optim.behind.mu_product"));
  }
}

TEST_CASE("averages follow the weights from the first update on", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Linear layer{1, 1, {.bias = false}};
    layer.weight()->value = Tensor::of<float>(Shape{1, 1}, std::vector<float>{5});
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{1, 1}});
    optim::minimize(sum(layer(x)), optim::Sgd{.lr = 1}, {.ema_decay = 0.75});
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, {}, variables);
    program.write("x", Tensor::of<float>(Shape{1, 1}, std::vector<float>{1}));
    for (const float expected : {4.0F, 3.75F, 3.3125F}) {  // weights 4, 3, 2
      program.run();
      CHECK(variables->read(optim::ema_name("weight")).values<float>()[0] == expected);
    }
  }
}

TEST_CASE("averages follow running statistics as they follow weights, and copy a count", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::Linear layer{1, 1, {.bias = false}};
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{1, 1}});
    const auto statistic = [&](const char* name, const Shape& shape) {
      return graph.variable(std::make_shared<Variable>(name, TensorSpec{DType::f32, shape}));
    };
    const Value mean = statistic("running_mean", Shape{1}), count = statistic("num_batches_tracked", Shape{});
    graph.assign(mean, reshape(x, Shape{1}));
    graph.assign(count, count + 1.0F);
    optim::minimize(sum(layer(x)), optim::Sgd{.lr = 1}, {.accumulate = 2, .ema_decay = 0.75});
    const auto variables = std::make_shared<Variables>(device, 0);
    Program program = compile(graph, {}, variables);
    const auto run = [&](float value) {
      program.write("x", Tensor::of<float>(Shape{1, 1}, std::vector<float>{value}));
      program.run();
    };
    const auto average = [&](const char* name) { return variables->read(optim::ema_name(name)).values<float>()[0]; };
    run(8);
    CHECK(average("running_mean") == 0);  // no update yet
    run(4);
    CHECK(average("running_mean") == 4);
    CHECK(average("num_batches_tracked") == 2);
    run(100);
    run(8);
    CHECK(average("running_mean") == 5);  // 3/4·4 + 1/4·8
    CHECK(average("num_batches_tracked") == 4);
    run(1);
    run(NAN);  // a failed step
    CHECK(average("running_mean") == 5);
    CHECK(average("num_batches_tracked") == 4);
  }
}

TEST_CASE("the global norm is that of all values together", "[optim]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    std::vector<Value> values;
    for (int i = 0; i < 20; ++i) values.push_back(full(graph, Shape{i + 1}, static_cast<float>(i)));
    const Value norm = optim::global_norm(values);
    Program program = compile(graph, {{norm}}, std::make_shared<Variables>(device, 0));
    program.run();
    double squares = 0;
    for (int i = 0; i < 20; ++i) squares += (i + 1) * i * i;
    CHECK(program.read(norm).values<float>()[0] == Approx(std::sqrt(squares)).epsilon(1e-6));
  }
}

TEST_CASE("minimize refuses what cannot be minimized", "[optim]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{2, 2}});
  CHECK_THROWS_AS(optim::minimize(x, optim::Sgd{}), ShapeError);
  CHECK_THROWS_AS(optim::minimize(mean(x), optim::Sgd{}), ArgumentError);  // nothing to train
  CHECK_THROWS_AS(optim::minimize(mean(x), optim::Sgd{}, {.accumulate = 0}), ArgumentError);
  CHECK_THROWS_AS(optim::minimize(mean(x), optim::Sgd{}, {.ema_decay = 1}), ArgumentError);
}
