// Normalisation layers against PyTorch's, with every option.
#include "concord/nn/batch_norm.hpp"
#include "concord/nn/instance_norm.hpp"
#include "concord/nn/layer_norm.hpp"
#include "concord/nn/local_norm.hpp"
#include "concord_test.hpp"
#include "nn/layer_test.hpp"

namespace concord::test {
namespace {

using Region = nn::LocalResponseNormOptions::Region;

/// The message of the error that calling `layer` on f32 of this shape throws.
template <class Layer>
std::string error_of(Layer layer, const Shape& shape, bool training = true) {
  Graph graph;
  graph.set_training(training);
  try {
    static_cast<void>(layer(graph.input("x", {DType::f32, shape})));
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no ShapeError";
}

TEST_CASE("layer and RMS normalisation are PyTorch's", "[nn][norms]") {
  check_layer("layer_norm", nn::LayerNorm{5});
  check_layer("layer_norm of two dimensions", nn::LayerNorm{{3, 5}, {.epsilon = 1e-3F}});
  check_layer("layer_norm without affine", nn::LayerNorm{5, {.elementwise_affine = false}});
  check_layer("layer_norm without bias", nn::LayerNorm{5, {.bias = false}});
  check_layer("rms_norm", nn::RMSNorm{5});
  check_layer("rms_norm of two dimensions", nn::RMSNorm{{3, 5}, {.epsilon = 0.1F}});
  check_layer("rms_norm without affine", nn::RMSNorm{5, {.elementwise_affine = false}});
}

TEST_CASE("group and instance normalisation are PyTorch's", "[nn][norms]") {
  check_layer("group_norm", nn::GroupNorm{2, 6});
  check_layer("group_norm, a channel a group", nn::GroupNorm{6, 6, {.epsilon = 1e-3F}});
  check_layer("group_norm without affine", nn::GroupNorm{3, 6, {.affine = false}});
  check_layer("instance_norm1d", nn::InstanceNorm1d{3});
  check_layer("instance_norm2d affine", nn::InstanceNorm2d{3, {.epsilon = 1e-3F, .affine = true}});
  check_layer("instance_norm3d", nn::InstanceNorm3d{2, {.affine = true}});
  check_layer("instance_norm2d tracking", nn::InstanceNorm2d{3, {.affine = true, .track_running_stats = true}});
  check_layer("instance_norm1d tracking", nn::InstanceNorm1d{3, {.momentum = 0.3F, .track_running_stats = true}});
}

TEST_CASE("batch normalisation with every option is PyTorch's", "[nn][norms]") {
  check_layer("batch_norm1d of rows", nn::BatchNorm1d{3});
  check_layer("batch_norm1d", nn::BatchNorm1d{3, {.epsilon = 1e-3F, .momentum = 0.3F}});
  check_layer("batch_norm3d", nn::BatchNorm3d{2});
  check_layer("batch_norm2d cumulative", nn::BatchNorm2d{3, {.momentum = std::nullopt}});
  check_layer("batch_norm2d without affine", nn::BatchNorm2d{3, {.affine = false}});
  check_layer("batch_norm2d without statistics", nn::BatchNorm2d{3, {.track_running_stats = false}});
  check_layer("batch_norm2d frozen", nn::BatchNorm2d{3, {.frozen = true}});
}

TEST_CASE("local response normalisation is PyTorch's, and Caffe's within a channel", "[nn][norms]") {
  check_layer("local_response_norm", nn::LocalResponseNorm{3});
  check_layer("local_response_norm even", nn::LocalResponseNorm{4, {.alpha = 0.5F, .beta = 0.6F, .k = 2}});
  check_layer("local_response_norm within",
              nn::LocalResponseNorm{3, {.alpha = 0.5F, .region = Region::within_channel}});
}

TEST_CASE("local contrast normalisation is that of Jarrett et al.", "[nn][norms]") {
  check_layer("local_contrast_norm", nn::LocalContrastNorm{{.window = 5}});
  check_layer("local_contrast_norm subtractive",
              nn::LocalContrastNorm{{.window = 3, .deviation = 2, .divisive = false}});
  check_layer("local_contrast_norm divisive", nn::LocalContrastNorm{{.window = 3, .subtractive = false}});
}

TEST_CASE("local contrast normalisation of an image without contrast is zero, and so is its slope", "[nn][norms]") {
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {1, 2, 5, 5}});
    const Value y = nn::LocalContrastNorm{{.window = 3}}(x);
    const Value slope = gradient(sum(y * y), std::vector{x}).front();
    Program program = compile(graph, {{y, slope}}, std::make_shared<Variables>(device, 0));
    program.write("x", Tensor::of<float>(Shape{1, 2, 5, 5}, std::vector<float>(50, 0.0F)));
    program.run();
    for (const Value& value : {y, slope}) {
      const Tensor numbers = program.read(value);
      for (const float v : numbers.values<float>()) CHECK(v == 0);
    }
  }
}

TEST_CASE("normalisation layers say what they expected", "[nn][norms]") {
  CHECK_THAT(error_of(nn::LayerNorm{{3, 5}}, {2, 3, 4}), contains("[3, 5]") && contains("[2, 3, 4]"));
  CHECK_THAT(error_of(nn::RMSNorm{5}, {4}), contains("[5]") && contains("[4]"));
  CHECK_THAT(error_of(nn::GroupNorm{2, 6}, {2, 5, 3}), contains("6") && contains("[2, 5, 3]"));
  CHECK_THAT(error_of(nn::InstanceNorm2d{3}, {2, 3, 5}), contains("InstanceNorm2d") && contains("[2, 3, 5]"));
  CHECK_THAT(error_of(nn::InstanceNorm2d{3}, {2, 3, 1, 1}), contains("more than one value"));
  CHECK_THAT(error_of(nn::InstanceNorm2d{3}, {0, 3, 8, 8}), !contains("more than one value"));
  CHECK_THAT(error_of(nn::BatchNorm1d{3}, {2, 3, 5, 5}), contains("BatchNorm1d") && contains("[2, 3, 5, 5]"));
  CHECK_THAT(error_of(nn::BatchNorm3d{3}, {2, 3, 5, 5}), contains("[2, 3, 5, 5]"));
  CHECK_THAT(error_of(nn::BatchNorm1d{3, {.track_running_stats = false}}, {1, 3}, false),
             contains("more than one value"));
  CHECK_THAT(error_of(nn::LocalResponseNorm{3, {.region = Region::within_channel}}, {2, 3, 5}),
             contains("rows, columns") && contains("[2, 3, 5]"));
  CHECK_THAT(error_of(nn::LocalContrastNorm{}, {2, 3, 5}), contains("[2, 3, 5]"));
  CHECK_THROWS_AS((nn::LayerNorm{{3, 0}}), ArgumentError);
  CHECK_THROWS_AS((nn::GroupNorm{4, 6}), ArgumentError);
  CHECK_THROWS_AS((nn::BatchNorm2d{3, {.track_running_stats = false, .frozen = true}}), ArgumentError);
  CHECK_THROWS_AS((nn::LocalResponseNorm{4, {.region = Region::within_channel}}), ArgumentError);
  CHECK_THROWS_AS((nn::LocalContrastNorm{{.window = 4}}), ArgumentError);
}

}  // namespace
}  // namespace concord::test
