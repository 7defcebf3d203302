// MobileNet v2 (Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

/// Wider by `expansion`, a 3x3 convolution a channel, then `out` channels without an activation.
struct InvertedResidual : nn::Module {
  nn::Sequential conv;
  bool residual;
  InvertedResidual(int in, int out, int stride, int expansion) : residual(stride == 1 && in == out) {
    const int hidden = in * expansion;
    if (expansion != 1) conv.push(conv_norm(in, hidden, 1, {.activation = Activation::relu6}));
    conv.push(conv_norm(hidden, hidden, 3, {.stride = stride, .groups = hidden, .activation = Activation::relu6}));
    conv.push(kaiming(nn::Conv2d{hidden, out, 1, {.bias = false}})).push(nn::BatchNorm2d{out});
  }
  Value forward(Value x) override { return residual ? x + conv(x) : conv(x); }
  Children children() override { return {{"conv", &conv}}; }
};

struct Stage {
  int expansion, channels, blocks, stride;
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

std::shared_ptr<nn::Module> make_mobilenet_v2(const Variant& variant) {
  nn::Sequential features;
  features.push(conv_norm(3, 32, 3, {.stride = 2, .activation = Activation::relu6}));
  int channels = 32;
  for (const Stage& stage : kStages) {
    for (int block = 0; block < stage.blocks; ++block) {
      features.push(InvertedResidual{channels, stage.channels, block == 0 ? stage.stride : 1, stage.expansion});
      channels = stage.channels;
    }
  }
  features.push(conv_norm(channels, 1280, 1, {.activation = Activation::relu6}));
  return std::make_shared<FeaturesAndClassifier>(
      features, 1, nn::Sequential{nn::Dropout{variant.rate(0.2F)}, normal(nn::Linear{1280, variant.classes}, 0.01)});
}

}  // namespace

Model mobilenet_v2() {
  return {"mobilenet_v2", "MobileNet v2", Shape{3, 224, 224}, 1000, 3504872, make_mobilenet_v2, Shape{3, 64, 64}};
}

}  // namespace concord::models
