// The losses with all their options against recorded PyTorch values and gradients, on every device.
#include <fmt/format.h>

#include "concord/ops/gradient.hpp"
#include "goldens.hpp"
#include "ops/op_test.hpp"

using namespace concord;
using namespace concord::test;
using loss::Reduction;

namespace {

using Inputs = std::vector<Value>;
using Make = std::function<Value(const Inputs&, Reduction)>;

/// A loss of two or three values.
template <class L>
Make with(L options) {
  return [options](const Inputs& x, Reduction reduction) {
    L loss = options;
    loss.reduction = reduction;
    if constexpr (std::is_invocable_v<L, Value, Value>) {
      return loss(x[0], x[1]);
    } else if constexpr (std::is_invocable_v<L, Value, Value, Value>) {
      return loss(x[0], x[1], x[2]);
    } else {
      return loss(x[0], x[1], x[2], x[3]);
    }
  };
}

const std::map<std::string, Make>& cases() {
  using namespace loss;
  const std::vector<float> four{0.5F, 2, 0, 1.5F}, three{0.5F, 2, 1.25F};
  static const std::map<std::string, Make> all{
      {"cross_entropy weights", with(CrossEntropy{.weights = four})},
      {"cross_entropy weights smoothed", with(CrossEntropy{.label_smoothing = 0.2F, .weights = four})},
      {"cross_entropy ignored", with(CrossEntropy{.ignore_index = 2})},
      {"cross_entropy all", with(CrossEntropy{.label_smoothing = 0.1F, .weights = four, .ignore_index = 0})},
      {"cross_entropy weighted probabilities", with(CrossEntropy{.label_smoothing = 0.1F, .weights = four})},
      {"cross_entropy spatial", with(CrossEntropy{})},
      {"cross_entropy spatial all", with(CrossEntropy{.weights = three, .ignore_index = 1})},
      {"cross_entropy spatial probabilities", with(CrossEntropy{})},
      {"nll weights", with(Nll{.weights = four})},
      {"nll ignored", with(Nll{.ignore_index = 2})},
      {"nll spatial", with(Nll{.weights = three, .ignore_index = 0})},
      {"kl_divergence", with(KlDivergence{})},
      {"kl_divergence log", with(KlDivergence{.log_target = true})},
      {"kl_divergence elements", with(KlDivergence{.per_sample = false})},
      {"distillation", with(Distillation{.temperature = 3})},
      {"poisson_nll", with(PoissonNll{})},
      {"poisson_nll full", with(PoissonNll{.log_input = false, .full = true, .eps = 0.01F})},
      {"gaussian_nll", with(GaussianNll{})},
      {"gaussian_nll full", with(GaussianNll{.full = true, .eps = 0.3F})},
      {"focal", with(Focal{})},
      {"focal plain", with(Focal{.alpha = -1, .gamma = 0.5F})},
      {"dice", with(Dice{})},
      {"dice spatial", with(Dice{.smooth = 0.1F})},
      {"hinge", with(Hinge{})},
      {"hinge squared", with(Hinge{.margin = 0.5F, .squared = true})},
      {"multi_margin", with(MultiMargin{})},
      {"multi_margin squared", with(MultiMargin{.margin = 0.5F, .p = 2})},
      {"cosine_embedding", with(CosineEmbedding{.margin = 0.1F})},
      {"contrastive", with(Contrastive{.margin = 6})},
      {"triplet_margin", with(TripletMargin{})},
      {"triplet_margin swap", with(TripletMargin{.margin = 2, .p = 1, .swap = true})},
      {"triplet_margin cubic", with(TripletMargin{.p = 3, .eps = 1e-3F})},
      {"ctc", with(Ctc{})},
      {"ctc impossible", with(Ctc{.zero_infinity = true})},
      {"ctc last blank", with(Ctc{.blank = 4})},
  };
  return all;
}

Tensor input_of(const nlohmann::json& recorded) {
  const Shape shape(recorded.at("shape").get<std::vector<std::int64_t>>());
  if (!recorded.at("whole").get<bool>()) return tensor_of(shape, recorded.at("values"));
  std::vector<std::int32_t> numbers;
  for (const double value : recorded.at("values").get<std::vector<double>>()) {
    numbers.push_back(static_cast<std::int32_t>(value));
  }
  return Tensor::of<std::int32_t>(shape, numbers);
}

}  // namespace

TEST_CASE("losses with every option equal PyTorch's, with their gradients", "[nn]") {
  const nlohmann::json recorded = golden("losses.json").at("losses");
  REQUIRE(recorded.size() == cases().size());
  for (const DevicePtr& device : devices()) {
    for (const auto& [name, expected] : recorded.items()) {
      INFO(name << " on " << device->info().id);
      Graph graph;
      Inputs inputs;
      std::vector<Tensor> values;
      for (const nlohmann::json& input : expected.at("inputs")) {
        values.push_back(input_of(input));
        inputs.push_back(graph.input(fmt::format("input{}", inputs.size()), values.back().spec()));
      }
      const Make& make = cases().at(name);
      const Value mean = make(inputs, Reduction::mean);
      const std::vector<Value> outputs{mean, make(inputs, Reduction::sum), make(inputs, Reduction::none),
                                       gradient(mean, {{inputs[0]}})[0]};
      Program program = compile(graph, outputs, std::make_shared<Variables>(device, 0));
      for (std::size_t i = 0; i < values.size(); ++i) program.write(inputs[i].name(), values[i]);
      program.run();
      CHECK(program.read(outputs[0]).values<float>()[0] == Approx(expected.at("mean").get<double>()).epsilon(1e-5));
      CHECK(program.read(outputs[1]).values<float>()[0] == Approx(expected.at("sum").get<double>()).epsilon(1e-5));
      CHECK(difference(program.read(outputs[2]), expected.at("none")) < 1e-5);
      CHECK(difference(program.read(outputs[3]), expected.at("gradient")) < 1e-5);
    }
  }
}

TEST_CASE("a variance below eps has the slope that it would have at eps, as in PyTorch", "[nn]") {
  const Input mean{Array({2}, {0, 0})}, target{Array({2}, {0.1, 0.5})}, variance{Array({2}, {0.001, 0.25})};
  for (const DevicePtr& device : devices()) {
    const std::vector<Tensor> found = run(device, {mean, target, variance}, [](const std::vector<Value>& x) {
      const loss::GaussianNll nll{.eps = 0.04F, .reduction = loss::Reduction::sum};
      return gradient(nll(x[0], x[1], x[2]), {x[2]});
    });
    const auto slope = [](double v, double d) { return 0.5 * (1 / v - d * d / (v * v)); };
    CHECK(found[0].values<float>()[0] == Approx(slope(0.04, 0.1)).epsilon(1e-5));
    CHECK(found[0].values<float>()[1] == Approx(slope(0.25, 0.5)).epsilon(1e-5).margin(1e-5));
  }
}

TEST_CASE("classes that a mask leaves out count nothing in a weighted loss", "[nn]") {
  constexpr float kOut = -INFINITY;
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{2, 3}});
    const Value t = graph.input("t", {DType::i32, Shape{2}});
    const Value weighted = loss::CrossEntropy{.weights = {1, 1, 1}}(x, t);
    const std::vector<Value> outputs{weighted, gradient(weighted, {{x}})[0], loss::CrossEntropy{}(x, t)};
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, 0));
    program.write("x", Tensor::of<float>(Shape{2, 3}, std::vector<float>{1, kOut, 2, 3, 1, kOut}));
    program.write("t", Tensor::of<std::int32_t>(Shape{2}, std::vector<std::int32_t>{0, 1}));
    program.run();
    const double expected = (std::log1p(std::exp(1.0)) + std::log1p(std::exp(2.0))) / 2;
    CHECK(program.read(outputs[0]).values<float>()[0] == Approx(expected).epsilon(1e-5));
    CHECK(program.read(outputs[2]).values<float>()[0] == Approx(expected).epsilon(1e-5));
    const Tensor slope = program.read(outputs[1]);
    CHECK(slope.values<float>()[0] == Approx((1 / (1 + std::exp(1.0)) - 1) / 2).epsilon(1e-5));
    CHECK(slope.values<float>()[1] == 0);
  }
}

TEST_CASE("a probability of 0 has a gradient in a weighted loss", "[nn]") {
  const Array logits({1, 3}, {1, -INFINITY, 2}), probabilities({1, 3}, {0, 0, 1});
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const std::vector<Tensor> found = run(device, {{logits}, {probabilities}}, [](const std::vector<Value>& x) {
      const Value loss = loss::CrossEntropy{.weights = {1, 2, 3}, .reduction = Reduction::sum}(x[0], x[1]);
      return std::vector{loss, gradient(loss, {x[1]}).front()};
    });
    const double first = std::log1p(std::exp(1.0)), last = std::log1p(std::exp(-1.0));  // -log of the softmax
    CHECK(found[0].values<float>()[0] == Approx(3 * last).epsilon(1e-5));
    CHECK(found[1].values<float>()[0] == Approx(first).epsilon(1e-5));
    CHECK(found[1].values<float>()[1] == 0);  // a class that cannot be
    CHECK(found[1].values<float>()[2] == Approx(3 * last).epsilon(1e-5));
  }
}

TEST_CASE("losses that are squares near 0 have their curvature at 0, too", "[nn]") {
  const Array prediction({4}, {1, 1.25, 0.875, 3}), target({4}, {1, 1, 1, 1});
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const std::vector<Tensor> found = run(device, {{prediction}, {target}}, [](const std::vector<Value>& x) {
      const auto curvature = [&](Value loss) { return gradient(sum(gradient(loss, {x[0]}).front()), {x[0]}).front(); };
      return std::vector{curvature(loss::Huber{.reduction = Reduction::sum}(x[0], x[1])),
                         curvature(loss::SmoothL1{.beta = 0.5F, .reduction = Reduction::sum}(x[0], x[1]))};
    });
    CHECK(difference(found[0], Tensor::of<float>({4}, {1, 1, 1, 0})) == "");
    CHECK(difference(found[1], Tensor::of<float>({4}, {2, 2, 2, 0})) == "");
  }
}

TEST_CASE("classes out of range give NaN in every loss of classes", "[nn]") {
  const std::vector<float> weights{1, 2, 3};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, Shape{2, 3}});
    const Value t = graph.input("t", {DType::i32, Shape{2}});
    const std::vector<Value> outputs{loss::CrossEntropy{.weights = weights}(x, t),
                                     loss::CrossEntropy{.label_smoothing = 0.1F, .weights = weights}(x, t),
                                     loss::CrossEntropy{.ignore_index = 4}(x, t), loss::Nll{.weights = weights}(x, t),
                                     loss::multi_margin(x, t)};
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, 0));
    program.write("x", Tensor(DType::f32, Shape{2, 3}));
    program.write("t", Tensor::of<std::int32_t>(Shape{2}, std::vector<std::int32_t>{1, 3}));
    program.run();
    for (const Value& output : outputs) CHECK(std::isnan(program.read(output).values<float>()[0]));
  }
}

TEST_CASE("losses with options refuse what does not fit", "[nn]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{4, 3}});
  const Value y = graph.input("y", {DType::f32, Shape{4, 1}});
  const Value labels = graph.input("labels", {DType::i32, Shape{4}});
  const Value signs = graph.input("signs", {DType::f32, Shape{4}});
  const Value image = graph.input("image", {DType::f32, Shape{4, 3, 2, 2}});
  CHECK_THROWS_AS((loss::CrossEntropy{.weights = {1, 2}}(x, labels)), ShapeError);
  CHECK_THROWS_AS((loss::CrossEntropy{.ignore_index = 0}(x, x)), ArgumentError);
  CHECK_THROWS_AS(loss::cross_entropy(image, labels), ShapeError);
  CHECK_THROWS_AS(loss::kl_divergence(x, y), ShapeError);
  CHECK_THROWS_AS((loss::Distillation{.temperature = 0}(x, x)), ArgumentError);
  CHECK_THROWS_AS(loss::gaussian_nll(y, y, x), ShapeError);
  CHECK_THROWS_AS((loss::Focal{.gamma = -1}(x, x)), ArgumentError);
  CHECK_THROWS_AS(loss::dice(signs, signs), ShapeError);
  CHECK_THROWS_AS(loss::hinge(x, y), ShapeError);
  CHECK_THROWS_AS((loss::MultiMargin{.p = 3}(x, labels)), ArgumentError);
  CHECK_THROWS_AS(loss::multi_margin(x, signs), ShapeError);
  CHECK_THROWS_AS(loss::cosine_embedding(x, y, signs), ShapeError);
  CHECK_THROWS_AS(loss::contrastive(x, x, labels.graph().input("few", {DType::f32, Shape{3}})), ShapeError);
  CHECK_THROWS_AS((loss::TripletMargin{.p = 0}(x, x, x)), ArgumentError);
}
