// The summary of a network: layers, parameters, FLOPs; and the memory planned for a step against what a device takes.
#include "concord/models/summary.hpp"

#include <algorithm>

#include "concord/compile/memory_need.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("FLOPs of networks are those published", "[models]") {
  // GFLOP of torchvision's tables, where a multiplication and an addition are one; they leave out what is no matrix
  // product.
  const std::pair<const char*, double> published[] = {
      {"alexnet", 0.714},     {"vgg16", 15.470},          {"resnet50", 4.089},  {"inception_v3", 5.713},
      {"densenet121", 2.834}, {"resnext50_32x4d", 4.230}, {"googlenet", 1.498}, {"convnext_tiny", 4.456}};
  for (const auto& [name, flops] : published) {
    INFO(name);
    const models::Model& model = models::find(name);
    const models::Summary summary = models::summarize(*models::make(name), models::batch_of(model, 2));
    CHECK(summary.flops / 2 == Approx(2e9 * flops).epsilon(0.03));
    CHECK(summary.trainable == model.parameters);
  }
}

TEST_CASE("a summary tells each layer of a network", "[models]") {
  const models::Model& model = models::find("resnet18");
  const models::Summary summary = models::summarize(*models::make("resnet18"), models::batch_of(model, 2));
  CHECK(summary.output == Shape{2, 1000});
  CHECK(summary.trainable == 11689512);
  CHECK(summary.non_trainable == 9600);
  const auto layer = [&](const std::string& path) {
    const auto found = std::ranges::find(summary.layers, path, &models::LayerSummary::path);
    REQUIRE(found != summary.layers.end());
    return *found;
  };
  CHECK(layer("conv1").kind == "conv2d");
  CHECK(layer("conv1").output == Shape{2, 64, 112, 112});
  CHECK(layer("conv1").parameters == 9408);
  CHECK(layer("conv1").flops == 2.0 * 2 * 64 * 112 * 112 * 147);
  CHECK(layer("layer2.0.bn1").kind == "batch_norm");
  CHECK(layer("layer2.0.bn1").output == Shape{2, 128, 28, 28});
  CHECK(layer("layer2.0").kind == "add");
  CHECK(layer("fc").output == Shape{2, 1000});
  CHECK(layer("fc").parameters == 513000);
  CHECK(summary.layers.front().path == "conv1");
  CHECK(summary.layers.back().path == "fc");
  CHECK_THROWS_WITH(models::summarize(*models::make("resnet18"), {DType::f32, Shape{2, 1, 64, 64}}), contains("conv1"));
}

TEST_CASE("the memory planned for a step is what the device takes", "[models]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const models::Model& model = models::find("lenet");
    const Value outputs = (*models::make("lenet"))(graph.input("x", models::batch_of(model, 2)));
    const Value loss =
        models::loss_of(model.task)(outputs, graph.input("t", models::target_of(model.task, outputs.shape())));
    optim::minimize(loss, optim::Sgd{.lr = 0.1, .momentum = 0.9});
    const auto variables = std::make_shared<Variables>(device, 1);
    const MemoryNeed need = memory_need(graph, std::vector{loss}, *variables, MemoryDetail::kernels);
    const std::size_t before = device->allocated();
    const Program program = compile(graph, std::vector{loss}, variables);
    const auto taken = static_cast<double>(device->allocated() - before);
    CHECK(static_cast<double>(need.total()) == Approx(taken).epsilon(0.05));
    CHECK(need.arena == program.memory());
  }
}
