// EfficientNet B0 (Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019).
#include <cmath>

#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

struct Stage {
  int expansion, kernel, stride, in, out, blocks;
};
constexpr Stage kStages[] = {{1, 3, 1, 32, 16, 1},  {6, 3, 2, 16, 24, 2},   {6, 5, 2, 24, 40, 2},  {6, 3, 2, 40, 80, 3},
                             {6, 5, 1, 80, 112, 3}, {6, 5, 2, 112, 192, 4}, {6, 3, 1, 192, 320, 1}};
constexpr int kBlocks = 16;
constexpr float kStochasticDepth = 0.2F;  // rises from 0 to this over the blocks

/// Wider, a convolution a channel, squeeze and excitation, narrower.
struct MBConv : nn::Module {
  nn::Sequential block;
  bool residual;
  float drop;
  MBConv(const Stage& stage, int in, int stride, float p) : residual(stride == 1 && in == stage.out), drop(p) {
    const int wide = in * stage.expansion;
    if (wide != in) block.push(conv_norm(in, wide, 1, {.activation = Activation::silu}));
    block.push(conv_norm(wide, wide, stage.kernel, {.stride = stride, .groups = wide, .activation = Activation::silu}));
    block.push(SqueezeExcitation{wide, in / 4, Activation::silu, Activation::sigmoid});
    block.push(conv_norm(wide, stage.out, 1, {.activation = Activation::none}));
  }
  Value forward(Value x) override { return residual ? stochastic_depth(block(x), drop) + x : block(x); }
  Children children() override { return {{"block", &block}}; }
};

std::shared_ptr<nn::Module> make_efficientnet_b0(const Variant& variant) {
  nn::Sequential features;
  features.push(conv_norm(3, 32, 3, {.stride = 2, .activation = Activation::silu}));
  int done = 0;
  for (const Stage& stage : kStages) {
    nn::Sequential layers;
    for (int block = 0; block < stage.blocks; ++block) {
      const float drop = kStochasticDepth * static_cast<float>(done++) / kBlocks;
      layers.push(MBConv{stage, block == 0 ? stage.in : stage.out, block == 0 ? stage.stride : 1, variant.rate(drop)});
    }
    features.push(layers);
  }
  features.push(conv_norm(320, 1280, 1, {.activation = Activation::silu}));
  nn::Linear linear{1280, variant.classes};
  const double bound = 1 / std::sqrt(static_cast<double>(variant.classes));
  linear.weight()->init = nn::init::uniform(-bound, bound);
  linear.bias()->init = nn::init::constant(0);
  return std::make_shared<FeaturesAndClassifier>(features, 1, nn::Sequential{nn::Dropout{variant.rate(0.2F)}, linear});
}

}  // namespace

Model efficientnet_b0() {
  return {"efficientnet_b0", "EfficientNet B0",    Shape{3, 224, 224}, 1000,
          5288548,           make_efficientnet_b0, Shape{3, 64, 64}};
}

}  // namespace concord::models
