// Layers that are compositions against PyTorch's, with every option.
#include <cmath>

#include "concord/nn/activations.hpp"
#include "concord/nn/conv.hpp"
#include "concord/nn/embedding.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/pad.hpp"
#include "concord/nn/squeeze_excite.hpp"
#include "concord/nn/upsample.hpp"
#include "concord/nn/weight_norm.hpp"
#include "concord_test.hpp"
#include "nn/layer_test.hpp"

namespace concord::test {
namespace {

using enum Interpolation;
using nn::Upsample;

/// A function as a layer.
class Function : public nn::Module {
 public:
  explicit Function(Value (*function)(Value)) : function_(function) {}
  Value forward(Value x) override { return function_(x); }

 private:
  Value (*function_)(Value);
};

TEST_CASE("upsampling is PyTorch's", "[nn][layers]") {
  check_layer("upsample nearest 1d to size", Upsample{{.size = {7}}});
  check_layer("upsample nearest 2d", Upsample{{.scale_factor = {2}}});
  check_layer("upsample nearest 2d by fractions", Upsample{{.scale_factor = {1.5, 0.7}}});
  check_layer("upsample nearest 3d", Upsample{{.scale_factor = {2}}});
  const auto exact = Interpolation::nearest_exact;
  check_layer("upsample nearest-exact 1d to size", Upsample{{.size = {7}, .mode = exact}});
  check_layer("upsample nearest-exact 2d to sizes", Upsample{{.size = {7, 3}, .mode = exact}});
  check_layer("upsample nearest-exact 2d by fractions", Upsample{{.scale_factor = {1.5, 0.7}, .mode = exact}});
  check_layer("upsample nearest-exact 3d", Upsample{{.scale_factor = {2}, .mode = exact}});
  check_layer("upsample linear", Upsample{{.scale_factor = {2}, .mode = linear}});
  check_layer("upsample linear aligned", Upsample{{.size = {9}, .mode = linear, .align_corners = true}});
  check_layer("upsample bilinear", Upsample{{.scale_factor = {2}, .mode = linear}});
  check_layer("upsample bilinear by fractions", Upsample{{.scale_factor = {1.7, 0.6}, .mode = linear}});
  check_layer("upsample bilinear aligned", Upsample{{.size = {7, 3}, .mode = linear, .align_corners = true}});
  check_layer("upsample bilinear to one", Upsample{{.size = {1, 8}, .mode = linear, .align_corners = true}});
  check_layer("upsample trilinear", Upsample{{.scale_factor = {2}, .mode = linear}});
  check_layer("upsample bicubic", Upsample{{.scale_factor = {2}, .mode = cubic}});
  check_layer("upsample bicubic aligned", Upsample{{.size = {3, 9}, .mode = cubic, .align_corners = true}});
}

TEST_CASE("padding layers are PyTorch's", "[nn][layers]") {
  check_layer("zero_pad1d", nn::ZeroPad1d{{1, 2}});
  check_layer("zero_pad2d", nn::ZeroPad2d{{1, 0, 2, 3}});
  check_layer("constant_pad3d", nn::ConstantPad3d{{1, 2, 0, 1, 1, 0}, 2.5F});
  check_layer("reflection_pad1d", nn::ReflectionPad1d{{4, 2}});
  check_layer("reflection_pad2d", nn::ReflectionPad2d{{1, 2, 3, 0}});
  check_layer("reflection_pad3d", nn::ReflectionPad3d{{1, 0, 2, 1, 1, 1}});
  check_layer("replication_pad1d", nn::ReplicationPad1d{{6, 1}});
  check_layer("replication_pad2d", nn::ReplicationPad2d{2});
  check_layer("replication_pad3d", nn::ReplicationPad3d{{1, 0, 2, 1, 1, 3}});
  check_layer("circular_pad1d", nn::CircularPad1d{{2, 5}});
  check_layer("circular_pad2d", nn::CircularPad2d{{1, 2, 3, 0}});
  check_layer("circular_pad3d", nn::CircularPad3d{{1, 0, 2, 1, 1, 2}});
}

TEST_CASE("shuffles are PyTorch's", "[nn][layers]") {
  check_layer("pixel_shuffle", nn::PixelShuffle{2});
  check_layer("pixel_unshuffle", nn::PixelUnshuffle{2});
  check_layer("channel_shuffle", nn::ChannelShuffle{3});
}

TEST_CASE("less common activations are PyTorch's", "[nn][layers]") {
  check_layer("prelu", nn::PReLU{});
  check_layer("prelu by channel", nn::PReLU{3});
  check_layer("relu6", Function{[](Value x) { return nn::ReLU6{}(5.0F * x); }});
  check_layer("selu", nn::SELU{});
  check_layer("celu", nn::CELU{1.5F});
  check_layer("mish", nn::Mish{});
  check_layer("log_sigmoid", nn::LogSigmoid{});
  check_layer("softsign", nn::Softsign{});
  check_layer("hardtanh", nn::Hardtanh{-0.5F, 0.7F});
  check_layer("softmin", nn::Softmin{1});
  check_layer("softmax", nn::Softmax{1});
  check_layer("log_softmax", nn::LogSoftmax{});
  check_layer("glu", nn::GLU{1});
  check_layer("swiglu", nn::SwiGLU{});
}

TEST_CASE("squeeze and excitation is torchvision's", "[nn][layers]") {
  check_layer("squeeze_excite", nn::SqueezeExcite{6, 2});
  check_layer("squeeze_excite of MobileNetV3", nn::SqueezeExcite{6, 3, {.scale = hard_sigmoid}});
}

/// An embedding whose table is also the output layer's weight.
struct Tied : nn::Module {
  nn::Embedding embedding{6, 4};
  nn::Linear output{4, 6, {.bias = false}};
  Tied() { output.tie_weight(embedding.weight()); }
  Value forward(Value x) override { return output(embedding(x)); }
  Children children() override { return {{"embedding", &embedding}, {"output", &output}}; }
};

TEST_CASE("embeddings are PyTorch's; a tied weight gets the gradients of both layers", "[nn][layers]") {
  check_layer("embedding", nn::Embedding{6, 4});
  check_layer("embedding with padding", nn::Embedding{6, 4, {.padding_idx = 3}});
  check_layer("tied embedding", Tied{});
}

TEST_CASE("the row of padding begins with zeros, the others do not", "[nn][layers]") {
  const Tensor first = initial_value(*nn::Embedding(3, 2, {.padding_idx = 1}).weight(), 5);
  const auto values = first.values<float>();
  for (std::size_t i = 0; i < 6; ++i) CHECK((values[i] == 0) == (i / 2 == 1));
}

TEST_CASE("weight and spectral normalisation are PyTorch's", "[nn][layers]") {
  check_layer("weight_norm linear", nn::weight_norm(nn::Linear{5, 3}));
  check_layer("weight_norm conv2d", nn::weight_norm(nn::Conv2d{2, 3, 3}));
  check_layer("spectral_norm linear", nn::spectral_norm(nn::Linear{5, 3}));
  check_layer("spectral_norm conv2d", nn::spectral_norm(nn::Conv2d{2, 3, 3, {.bias = false}}, {.power_iterations = 2}));
}

TEST_CASE("weight normalisation starts with the length of the weight", "[nn][layers]") {
  nn::Linear given{2, 2};
  given.weight()->value = Tensor::of<float>(Shape{2, 2}, {3, 4, 0, 2});
  const nn::WeightNorm norm(given);
  const auto lengths = norm.length()->value.values<float>();
  CHECK(std::vector<float>(lengths.begin(), lengths.end()) == std::vector<float>{5, 2});
  // PyTorch's first weights of a linear layer are uniform with a variance of a third of the inverse width.
  CHECK(nn::weight_norm(nn::Linear{400, 3}).length()->init.a == Approx(std::sqrt(1.0 / 3)));
}

TEST_CASE("layers of compositions refuse what does not fit", "[nn][layers]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3, 4}});
  CHECK_THROWS_AS(nn::Embedding(6, 4)(x), ShapeError);
  CHECK_THROWS_AS(nn::PReLU{4}(x), ShapeError);
  CHECK_THROWS_AS(nn::GLU{1}(x), ShapeError);
  CHECK_THROWS_AS((nn::ZeroPad2d{1}(x)), ShapeError);
  CHECK_THROWS_AS((nn::Embedding{6, 4, {.padding_idx = 6}}), ArgumentError);
  CHECK_THROWS_AS(nn::PReLU{0}, ArgumentError);
  CHECK_THROWS_AS(nn::spectral_norm(nn::Linear{2, 2}, {.power_iterations = 0}), ArgumentError);
  CHECK_THROWS_AS(hardtanh(x, 1, 1), ArgumentError);
  nn::Linear layer{4, 6};
  CHECK_THROWS_AS(layer.tie_weight(nn::Linear(6, 4).weight()), ShapeError);
}

}  // namespace
}  // namespace concord::test
