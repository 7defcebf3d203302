// A network cut at an inner value, and a new head that is trained on the frozen rest.
#include <cmath>

#include "concord/onnx/wire.hpp"
#include "core/thrown.hpp"
#include "files.hpp"
#include "onnx/onnx_test.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

onnx::TensorProto weight(const std::string& name, std::int64_t rows, std::int64_t columns) {
  onnx::TensorProto tensor;
  tensor.name = name;
  tensor.dims = {rows, columns};
  tensor.type = onnx::ElementType::f32;
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
  float number = 0;
  for (float& x : numbers) x = std::sin(number += 1.3F);
  tensor.data = onnx::bytes_of(std::as_bytes(std::span(numbers)));
  return tensor;
}

onnx::ValueInfo numbers_of(const std::string& name, std::int64_t width) {
  onnx::ValueInfo info;
  info.name = name;
  info.type = onnx::ElementType::f32;
  info.shape = std::vector<onnx::Dimension>{{std::nullopt, "N"}, {width, {}}};
  return info;
}

onnx::NodeDef node(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
  onnx::NodeDef made;
  made.op_type = op;
  made.inputs = std::move(inputs);
  made.outputs = {output};
  return made;
}

/// x (N, 6) → hidden (N, 4) → seen → class (N, 3), where 3 classes have another input, "bias".
void write_two_layers(const std::filesystem::path& path) {
  onnx::Model model;
  model.ir_version = 8;
  model.opsets = {{"", 17}};
  onnx::GraphDef& graph = model.graph;
  graph.name = "two layers";
  graph.inputs = {numbers_of("x", 6), numbers_of("bias", 3)};
  graph.outputs = {numbers_of("class", 3)};
  graph.initializers = {weight("w1", 6, 4), weight("w2", 4, 3)};
  graph.nodes = {node("MatMul", {"x", "w1"}, "hidden"), node("Relu", {"hidden"}, "seen"),
                 node("MatMul", {"seen", "w2"}, "scores"), node("Add", {"scores", "bias"}, "class")};
  onnx::write_model(path, model);
}

}  // namespace

TEST_CASE("a file is cut at inner values, without what they do not need", "[onnx]") {
  const TemporaryFolder folder;
  const auto path = folder / "two.onnx";
  write_two_layers(path);
  onnx::Network cut = onnx::load(path, {.outputs = {"seen", "hidden"}});
  CHECK(cut.input_names() == std::vector<std::string>{"x"});
  CHECK(cut.outputs()[0].name == "seen");
  Graph graph;
  const Values outputs = cut({{"x", graph.input("x", {DType::f32, Shape{2, 6}})}});
  CHECK(outputs.names() == "seen, hidden");
  CHECK(outputs["seen"].shape() == Shape{2, 4});
  REQUIRE(graph.variables().size() == 1);
  CHECK(graph.variables()[0]->name == "w1");
  CHECK_THAT(thrown([&] { static_cast<void>(onnx::load(path, {.outputs = {"sean"}})); }),
             contains("no value 'sean'") && contains("did you mean seen?"));
}

TEST_CASE("a new head is trained on the frozen base of a file", "[onnx]") {
  const TemporaryFolder folder;
  const auto path = folder / "two.onnx";
  write_two_layers(path);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    onnx::Network base = onnx::load(path, {.outputs = {"seen"}});
    base.freeze();
    nn::Sequential net;
    net.push("base", base).push("head", nn::Linear{4, 3});
    Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = 0.05}, device, {.seed = 1}};
    trainer.prepare(TensorSpec{DType::f32, Shape{6}});
    const Tensor before = trainer.variables()->read("base.w1"), head = trainer.variables()->read("head.weight");
    const History history = trainer.fit(small_data(60), {.epochs = 5, .batch = 20});
    CHECK(history.epochs.back().loss < 0.9 * history.epochs.front().loss);
    CHECK(std::ranges::equal(trainer.variables()->read("base.w1").bytes(), before.bytes()));
    CHECK_FALSE(std::ranges::equal(trainer.variables()->read("head.weight").bytes(), head.bytes()));
  }
}
