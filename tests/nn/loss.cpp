// Losses against recorded PyTorch values and gradients, on every device.
#include "concord/nn/loss.hpp"

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;
using loss::Reduction;

namespace {

struct Case {
  const char* name;
  std::function<Loss(Reduction)> make;
  bool classes;  // targets are class indices
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"cross_entropy", [](Reduction r) { return Loss(loss::CrossEntropy{.reduction = r}); }, true},
      {"cross_entropy smoothed",
       [](Reduction r) { return Loss(loss::CrossEntropy{.label_smoothing = 0.2F, .reduction = r}); }, true},
      {"cross_entropy probabilities", [](Reduction r) { return Loss(loss::CrossEntropy{.reduction = r}); }, false},
      {"nll", [](Reduction r) { return Loss(loss::Nll{r}); }, true},
      {"mse", [](Reduction r) { return Loss(loss::Mse{r}); }, false},
      {"l1", [](Reduction r) { return Loss(loss::L1{r}); }, false},
      {"huber", [](Reduction r) { return Loss(loss::Huber{.delta = 1.5F, .reduction = r}); }, false},
      {"smooth_l1", [](Reduction r) { return Loss(loss::SmoothL1{.beta = 0.5F, .reduction = r}); }, false},
      {"bce_with_logits", [](Reduction r) { return Loss(loss::BceWithLogits{r}); }, false},
  };
  return all;
}

Tensor target_of(const Case& c, const nlohmann::json& recorded) {
  if (!c.classes) return tensor_of(Shape{6, 4}, recorded);
  return Tensor::of<std::int32_t>(Shape{6}, recorded.get<std::vector<std::int32_t>>());
}

}  // namespace

TEST_CASE("losses and their gradients equal PyTorch's", "[nn]") {
  const nlohmann::json recorded = golden("networks.json").at("losses");
  for (const DevicePtr& device : devices()) {
    for (const Case& c : cases()) {
      INFO(c.name << " on " << device->info().id);
      const nlohmann::json& expected = recorded.at(c.name);
      const Tensor target = target_of(c, expected.at("target"));
      Graph graph;
      const Value x = graph.input("x", {DType::f32, Shape{6, 4}});
      const Value t = graph.input("t", target.spec());
      const Value mean = c.make(Reduction::mean)(x, t);
      const std::vector<Value> outputs{mean, c.make(Reduction::sum)(x, t), c.make(Reduction::none)(x, t),
                                       gradient(mean, {{x}})[0]};
      Program program = compile(graph, outputs, std::make_shared<Variables>(device, 0));
      program.write("x", tensor_of(Shape{6, 4}, expected.at("prediction")));
      program.write("t", target);
      program.run();
      CHECK(program.read(outputs[0]).values<float>()[0] == Approx(expected.at("mean").get<double>()).epsilon(1e-5));
      CHECK(program.read(outputs[1]).values<float>()[0] == Approx(expected.at("sum").get<double>()).epsilon(1e-5));
      CHECK(difference(program.read(outputs[2]), expected.at("none")) < 1e-5);
      CHECK(difference(program.read(outputs[3]), expected.at("gradient")) < 1e-5);
    }
  }
}

TEST_CASE("a class outside the range gives a loss that is not finite", "[nn]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{2, 3}});
    const Value t = graph.input("t", {DType::i32, Shape{2}});
    const std::vector<Value> outputs{loss::cross_entropy(x, t), loss::nll(x, t)};
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, 0));
    program.write("x", Tensor(DType::f32, Shape{2, 3}));
    program.write("t", Tensor::of<std::int32_t>(Shape{2}, std::vector<std::int32_t>{1, 3}));
    program.run();
    for (const Value& output : outputs) CHECK(std::isnan(program.read(output).values<float>()[0]));
  }
}

TEST_CASE("losses refuse what does not fit", "[nn]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{4, 3}});
  const Value y = graph.input("y", {DType::f32, Shape{4, 1}});
  const Value labels = graph.input("labels", {DType::i32, Shape{5}});
  CHECK_THROWS_AS(loss::mse(x, y), ShapeError);
  CHECK_THROWS_AS(loss::nll(x, labels), ShapeError);
  CHECK_THROWS_AS(loss::cross_entropy(x, labels), ShapeError);
  CHECK_THROWS_AS((loss::Huber{.delta = 0}(x, x)), ArgumentError);
  CHECK_THROWS_AS((loss::CrossEntropy{.label_smoothing = 2}(x, labels)), ArgumentError);
}
