// Spectral normalisation's running vectors: where they begin, what they approach, and when they stand still.
#include <algorithm>
#include <numeric>

#include "concord/io/safetensors.hpp"
#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr const char* kU = "parametrizations.weight.0._u";
constexpr const char* kV = "parametrizations.weight.0._v";

/// A linear layer whose singular values are 3, 1 and 0.5.
nn::SpectralNorm<nn::Linear> layer() {
  nn::Linear linear{4, 3, {.bias = false}};
  linear.weight()->value = Tensor::of<float>(Shape{3, 4}, std::vector<float>{0, 1, 0, 0, -3, 0, 0, 0, 0, 0, 0, 0.5F});
  return nn::spectral_norm(linear);
}

struct Running {
  Running(const DevicePtr& device, nn::Module& net, bool training, VariablesPtr storage)
      : variables(std::move(storage)) {
    if (!variables) variables = std::make_shared<Variables>(device, 7);
    graph.set_training(training);
    output = net(graph.input("x", {DType::f32, Shape{4, 4}}));
    program = std::make_unique<Program>(compile(graph, {{output}}, variables));
    Tensor identity(DType::f32, Shape{4, 4});
    for (std::size_t i = 0; i < 4; ++i) identity.values<float>()[5 * i] = 1;
    program->write("x", identity);
  }
  /// The transposed weight, (in, out).
  Tensor weight() {
    program->run();
    return program->read(output).clone();
  }
  Graph graph;
  Value output;
  VariablesPtr variables;
  std::unique_ptr<Program> program;
};

double length_of(const Tensor& vector) {
  double squares = 0;
  for (const float value : vector.values<float>()) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

bool same(const Tensor& a, const Tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

}  // namespace

TEST_CASE("spectral normalisation approaches the largest singular value in training and rests in evaluation", "[nn]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::SpectralNorm<nn::Linear> net = layer();
    Running training(device, net, true, {});
    const Tensor first_u = training.variables->read(kU).clone(), first_v = training.variables->read(kV).clone();
    CHECK(length_of(first_u) > 0);  // drawn by the seed and the name, so equal everywhere; its length does not matter
    CHECK(same(first_u, Running(device, net, true, {}).variables->read(kU)));
    Tensor weight = training.weight();
    CHECK(length_of(training.variables->read(kU)) == Approx(1));
    CHECK(length_of(training.variables->read(kV)) == Approx(1));
    CHECK_FALSE(same(training.variables->read(kU), first_u));
    CHECK_FALSE(same(training.variables->read(kV), first_v));
    for (int i = 0; i < 20; ++i) weight = training.weight();
    CHECK(weight.values<float>()[0 * 3 + 1] == Approx(-1));  // −3/3
    CHECK(weight.values<float>()[1 * 3 + 0] == Approx(1.0 / 3));
    CHECK(weight.values<float>()[3 * 3 + 2] == Approx(0.5 / 3));
    CHECK(std::abs(training.variables->read(kU).values<float>()[1]) == Approx(1));
    CHECK(std::abs(training.variables->read(kV).values<float>()[0]) == Approx(1));

    const Tensor u = training.variables->read(kU).clone(), v = training.variables->read(kV).clone();
    Running evaluation(device, net, false, training.variables);
    const Tensor evaluated = evaluation.weight();
    CHECK(same(evaluated, evaluation.weight()));
    CHECK(same(training.variables->read(kU), u));
    CHECK(same(training.variables->read(kV), v));
    CHECK(evaluated.values<float>()[1] == Approx(weight.values<float>()[1]));
  }
}

TEST_CASE("spectral normalisation's vectors are saved with the weights", "[nn][train]") {
  const TemporaryFolder folder;
  const DevicePtr& device = devices().front();
  const Dataset data = data::synthetic(Shape{4}, 3, 12, 0);
  const auto trainer_of = [&](std::uint64_t seed) {
    nn::Linear linear{4, 3};
    return Trainer{nn::spectral_norm(linear), loss::cross_entropy, optim::Sgd{.lr = 0.1}, device, {.seed = seed}};
  };
  Trainer trainer = trainer_of(1);
  trainer.fit(data, {.epochs = 2, .batch = 4});
  trainer.save(folder / "net");
  const io::TensorMap saved = io::read_safetensors(folder / "net").tensors;
  CHECK(saved.contains(kU));
  CHECK(saved.contains(kV));
  CHECK(saved.contains("parametrizations.weight.original"));
  CHECK(saved.contains("bias"));
  CHECK(saved.size() == 4);
  Trainer reader = trainer_of(2);
  reader.load(folder / "net");
  CHECK(reader.evaluate(data).loss == trainer.evaluate(data).loss);
}
