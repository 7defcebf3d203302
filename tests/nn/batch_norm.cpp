// BatchNorm2d against a recorded PyTorch layer: two training steps and an evaluation, on every device.
#include "concord/nn/batch_norm.hpp"

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("batch normalisation keeps PyTorch's running statistics", "[nn]") {
  const nlohmann::json recorded = golden("networks.json").at("batch_norm");
  const TensorSpec spec{DType::f32, Shape{4, 3, 5, 2}};
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    nn::BatchNorm2d layer{3};
    const auto variables = std::make_shared<Variables>(device, 0);
    Graph training, evaluation;
    evaluation.set_training(false);
    const Value trained = layer(training.input("x", spec));
    const Value evaluated = layer(evaluation.input("x", spec));
    Program train = compile(training, {{trained}}, variables);
    Program evaluate = compile(evaluation, {{evaluated}}, variables);
    variables->write("weight", tensor_of(Shape{3}, recorded.at("weight")));
    variables->write("bias", tensor_of(Shape{3}, recorded.at("bias")));
    for (std::size_t step = 0; step < 2; ++step) {
      train.write("x", tensor_of(spec.shape, recorded.at("batches").at(step)));
      train.run();
      CHECK(difference(train.read(trained), recorded.at("outputs").at(step)) < 1e-5);
    }
    CHECK(difference(variables->read("running_mean"), recorded.at("running_mean")) < 1e-6);
    CHECK(difference(variables->read("running_var"), recorded.at("running_var")) < 1e-6);
    evaluate.write("x", tensor_of(spec.shape, recorded.at("batches").at(0)));
    evaluate.run();
    CHECK(difference(evaluate.read(evaluated), recorded.at("evaluated")) < 1e-5);
  }
}

TEST_CASE("batch normalisation in training needs more than one value a channel", "[nn]") {
  nn::BatchNorm2d layer{3};
  Graph training;
  CHECK_THROWS_AS(layer(training.input("x", {DType::f32, Shape{1, 3, 1, 1}})), ShapeError);
  Graph evaluation;
  evaluation.set_training(false);
  CHECK(layer(evaluation.input("x", {DType::f32, Shape{1, 3, 1, 1}})));
}
