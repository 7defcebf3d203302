// Frozen modules: no gradient, no state, the same values; and training that goes on after they are unfrozen.
#include <algorithm>

#include "concord/ops/conv.hpp"
#include "concord_test.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::vector<std::string> trained(nn::Module& net, const TensorSpec& x) {
  Graph graph;
  static_cast<void>(net(graph.input("x", x)));
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) {
    if (optim::is_trained(graph, *variable, {})) names.push_back(variable->name);
  }
  return names;
}

using Names = std::vector<std::string>;

struct Backbone : nn::Module {
  nn::Sequential features = image_net();
  nn::Linear head{3, 2};
  Value forward(Value x) override { return head(features(x)); }
  Children children() override { return {{"features", &features}, {"head", &head}}; }
};

/// Operators of a training step that the program runs, by name.
Names operators_of(nn::Module& net, const DevicePtr& device) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{4, 1, 6, 6}});
  const Value loss = mean(square(net(x)));
  optim::minimize(loss, optim::Adam{});
  Program program = compile(graph, {{loss}}, std::make_shared<Variables>(device, 0));
  Names names;
  for (const TraceEntry& entry : program.run_traced()) names.push_back(entry.op);
  return names;
}

std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

/// Gradients of the layers in front of the head; the loss has some of its own.
std::ptrdiff_t backward(const Names& operators) {
  return std::ranges::count_if(operators, [](const std::string& name) {
    const bool of_layer = name.starts_with("conv") || name.starts_with("batch_norm") || name.starts_with("avg_pool");
    return of_layer && name.find("backward") != name.npos;
  });
}

}  // namespace

TEST_CASE("the last of freeze and unfreeze counts", "[nn]") {
  const TensorSpec x{DType::f32, Shape{2, 6}};
  nn::Linear first{6, 4}, last{4, 3};
  nn::Sequential net{first, nn::ReLU{}, last};
  const Names all{"0.weight", "0.bias", "2.weight", "2.bias"}, of_last{"2.weight", "2.bias"};
  CHECK(trained(net, x) == all);
  net.freeze();
  CHECK(trained(net, x).empty());
  last.unfreeze();  // a copy is a handle of the same layer
  CHECK(trained(net, x) == of_last);
  net.unfreeze();
  CHECK(trained(net, x) == all);
  first.freeze();
  CHECK(trained(net, x) == of_last);
}

TEST_CASE("a graph is out of date when one of its modules is frozen, and no other", "[nn]") {
  nn::Linear first{4, 4}, other{4, 4};
  nn::Sequential net{first, nn::ReLU{}};
  Graph graph;
  static_cast<void>(net(graph.input("x", {DType::f32, Shape{2, 4}})));
  CHECK(nn::Module::is_up_to_date(graph));
  other.freeze();
  CHECK(nn::Module::is_up_to_date(graph));
  first.freeze();
  CHECK_FALSE(nn::Module::is_up_to_date(graph));
}

TEST_CASE("one of two networks in a graph is frozen", "[nn]") {
  nn::Linear generator{4, 4}, critic{4, 1};
  nn::Sequential both{generator, critic};
  critic.freeze();
  Graph of_generator;
  const Value loss = mean(both(of_generator.input("x", {DType::f32, Shape{2, 4}})));
  critic.unfreeze();
  Graph of_critic;  // traced before the other is minimised
  static_cast<void>(critic(of_critic.input("x", {DType::f32, Shape{2, 4}})));
  CHECK(of_generator.is_frozen(*critic.weight()));
  CHECK_FALSE(of_critic.is_frozen(*critic.weight()));
  CHECK_FALSE(of_generator.is_frozen(*generator.weight()));
  optim::minimize(loss, optim::Sgd{});
  for (const Assignment& assignment : of_generator.assignments()) {
    CHECK(assignment.variable != of_generator.variable(critic.weight()));
  }
}

TEST_CASE("a frozen module is not trained and nothing is computed for it", "[nn]") {
  const Dataset data = data::synthetic(Shape{1, 6, 6}, 2, 32, 0);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Backbone whole, net;
    const Names all_operators = operators_of(whole, device);
    net.features.freeze();
    const Names operators = operators_of(net, device);
    CHECK(backward(all_operators) > 0);
    INFO(joined(operators));
    CHECK(backward(operators) == 0);
    CHECK(operators.size() < all_operators.size());

    Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 0.01}, device, {.seed = 3}};
    trainer.prepare(data.feature_spec());
    const auto bytes = [&](const char* name) { return trainer.variables()->read(name).clone(); };
    const auto same = [](const Tensor& a, const Tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); };
    const Tensor conv = bytes("features.0.weight"), norm = bytes("features.1.weight"), head = bytes("head.weight");
    const Tensor mean = bytes("features.1.running_mean");
    trainer.fit(data, {.epochs = 2, .batch = 8});
    CHECK(same(bytes("features.0.weight"), conv));
    CHECK(same(bytes("features.1.weight"), norm));
    CHECK_FALSE(same(bytes("head.weight"), head));
    CHECK_FALSE(same(bytes("features.1.running_mean"), mean));
    for (const std::string& name : trainer.variables()->names()) CHECK_FALSE(name.starts_with("optim.features"));

    net.features.unfreeze();  // the trainer's network is a handle of the same modules
    trainer.fit(data, {.epochs = 1, .batch = 8});
    CHECK_FALSE(same(bytes("features.0.weight"), conv));
    CHECK(trainer.variables()->contains("optim.features.0.weight.exp_avg"));
  }
}

TEST_CASE("averages of parameters that are unfrozen begin with what they are", "[nn][train]") {
  const Dataset data = data::synthetic(Shape{1, 6, 6}, 2, 16, 0);
  const DevicePtr& device = devices().front();
  Backbone net;
  net.features.freeze();
  Trainer trainer{net, loss::cross_entropy, optim::Sgd{.lr = 1e-6}, device, {.seed = 3, .ema_decay = 0.9}};
  trainer.fit(data, {.epochs = 1, .batch = 8});
  net.unfreeze();
  trainer.fit(data, {.epochs = 1, .batch = 8});
  const Tensor weight = trainer.variables()->read("features.0.weight");
  const Tensor average = trainer.variables()->read("ema.features.0.weight");
  for (std::size_t i = 0; i < weight.values<float>().size(); ++i) {
    CHECK(average.values<float>()[i] == Approx(weight.values<float>()[i]).margin(1e-4));
  }
}
