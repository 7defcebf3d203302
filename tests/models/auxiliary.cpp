// Networks with auxiliary classifiers: torchvision's parameters, the weighted loss, and weights without them.
#include "concord_test.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::int64_t parameters_of(const std::string& name, const models::Variant& variant, const Shape& sample) {
  Graph graph;
  static_cast<void>((*models::make(name, variant))(graph.input("x", {DType::f32, sample})));
  std::int64_t count = 0;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) count += variable->spec.shape.elements();
  }
  return count;
}

std::vector<std::string> names_with(const std::string& name, const std::string& prefix, const Shape& sample) {
  Graph graph;
  static_cast<void>((*models::make(name, {.auxiliary = true}))(graph.input("x", {DType::f32, sample})));
  std::vector<std::string> names;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->name.starts_with(prefix) && variable->trainable) names.push_back(variable->name);
  }
  return names;
}

}  // namespace

TEST_CASE("auxiliary classifiers have torchvision's parameters", "[models]") {
  const Shape small{2, 3, 64, 64}, published{2, 3, 299, 299};
  CHECK(parameters_of("googlenet", {}, small) == 6624904);
  CHECK(parameters_of("googlenet", {.auxiliary = true}, small) == 13004888);
  CHECK(parameters_of("inception_v3", {.auxiliary = true}, published) == 27161264);
  CHECK(names_with("googlenet", "aux1.", small) ==
        std::vector<std::string>{"aux1.conv.conv.weight", "aux1.conv.bn.weight", "aux1.conv.bn.bias", "aux1.fc1.weight",
                                 "aux1.fc1.bias", "aux1.fc2.weight", "aux1.fc2.bias"});
  CHECK(names_with("inception_v3", "AuxLogits.", published) ==
        std::vector<std::string>{"AuxLogits.conv0.conv.weight", "AuxLogits.conv0.bn.weight", "AuxLogits.conv0.bn.bias",
                                 "AuxLogits.conv1.conv.weight", "AuxLogits.conv1.bn.weight", "AuxLogits.conv1.bn.bias",
                                 "AuxLogits.fc.weight", "AuxLogits.fc.bias"});
  CHECK_THROWS_WITH(models::make("vgg16", {.auxiliary = true}), contains("vgg16 has no auxiliary classifiers"));
}

TEST_CASE("the loss of auxiliary classifiers is weighted", "[models]") {
  const Tensor labels = Tensor::of<std::int32_t>(Shape{2}, std::vector<std::int32_t>{1, 0});
  Tensor logits(DType::f32, Shape{2, 6});
  for (std::size_t i = 0; i < 12; ++i) logits.values<float>()[i] = std::sin(static_cast<float>(i * i));
  const auto loss = models::loss_of(models::find("googlenet"), {.classes = 2, .auxiliary = true});
  const DevicePtr& device = devices().front();
  const auto value = [&](const std::function<Value(Value, Value)>& of) {
    Graph graph;
    const Value result = of(graph.input("x", logits.spec()), graph.input("y", labels.spec()));
    Program program = compile(graph, {{result}}, std::make_shared<Variables>(device, 0));
    program.write("x", logits);
    program.write("y", labels);
    program.run();
    return static_cast<double>(program.read(result).values<float>()[0]);
  };
  std::vector<double> parts;
  for (const std::int64_t first : {0, 2, 4}) {
    parts.push_back(value([&](Value x, Value y) { return loss::cross_entropy(slice(x, 1, first, first + 2), y); }));
  }
  CHECK(value(loss) == Approx(parts[0] + 0.3 * (parts[1] + parts[2])));
}

TEST_CASE("auxiliary classifiers are trained, saved and left out of evaluations", "[models]") {
  const models::Variant variant{.classes = 4, .dropout = false, .auxiliary = true};
  const Dataset data = data::synthetic(Shape{3, 64, 64}, 4, 8, 0);
  const TemporaryFolder folder;
  const models::Model& model = models::find("googlenet");
  const DevicePtr& device = devices().front();
  const auto trainer_of = [&](const models::Variant& of) {
    return Trainer{
        models::make("googlenet", of), models::loss_of(model, of), optim::Sgd{.lr = 1e-3}, device, {.seed = 1}};
  };
  Trainer trainer = trainer_of(variant);
  trainer.fit(data, {.epochs = 1, .batch = 4, .validate = data});
  CHECK(trainer.variables()->contains("aux2.fc2.bias"));
  CHECK(trainer.predict(data).shape() == Shape{8, 4});
  trainer.save(folder / "net");
  models::Variant without = variant;
  without.auxiliary = false;
  Trainer reader = trainer_of(without);
  reader.load(folder / "net");
  CHECK(reader.evaluate(data).loss == trainer.evaluate(data).loss);
  CHECK_FALSE(reader.variables()->contains("aux2.fc2.bias"));
}

TEST_CASE("a training with auxiliary classifiers begins with those of a file, as far as it has them", "[models]") {
  const models::Variant variant{.classes = 4, .dropout = false, .auxiliary = true};
  const Dataset data = data::synthetic(Shape{3, 64, 64}, 4, 4, 0);
  const TemporaryFolder folder;
  const models::Model& model = models::find("googlenet");
  const auto trainer_of = [&](std::uint64_t seed) {
    return Trainer{models::make("googlenet", variant),
                   models::loss_of(model, variant),
                   optim::Sgd{.lr = 0},
                   devices().front(),
                   {.seed = seed}};
  };
  const auto bias = [](const Trainer& trainer) {
    const Tensor tensor = trainer.variables()->read("aux2.fc1.bias");
    return std::vector<float>(tensor.values<float>().begin(), tensor.values<float>().end());
  };
  Trainer first = trainer_of(1);
  first.fit(data, {.epochs = 1, .batch = 4});
  first.save(folder / "with");
  const auto begun = [&](const char* file) {
    Trainer trainer = trainer_of(2);
    trainer.load(folder / file);
    trainer.prepare(data);  // without them
    trainer.fit(data, {.epochs = 1, .batch = 4});
    return bias(trainer);
  };
  CHECK(begun("with") == bias(first));
  auto without = io::read_safetensors(folder / "with").tensors;
  std::erase_if(without, [](const auto& one) { return one.first.starts_with("aux"); });
  io::write_safetensors(folder / "without", without);
  CHECK(begun("without") != bias(first));
}
