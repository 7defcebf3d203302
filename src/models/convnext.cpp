// ConvNeXt, tiny (Liu et al., "A ConvNet for the 2020s", 2022).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/nn/layer_norm.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr nn::LayerNormOptions kNorm{.epsilon = 1e-6F};
constexpr float kLayerScale = 1e-6F, kStochasticDepth = 0.1F;  // the latter rises from 0 over the blocks
constexpr int kDepths[] = {3, 3, 9, 3}, kBlocks = 18, kWidth = 96;

/// Dimensions in another order.
struct Permute : nn::Module {
  std::vector<std::int64_t> order;
  explicit Permute(std::vector<std::int64_t> axes) : order(std::move(axes)) {}
  Value forward(Value x) override { return transpose(x, order); }
};
Permute channels_last() { return Permute{{0, 2, 3, 1}}; }
Permute channels_first() { return Permute{{0, 3, 1, 2}}; }

/// Layer norm over the channels of (N, C, H, W).
struct ChannelNorm : nn::LayerNorm {
  explicit ChannelNorm(int channels) : LayerNorm(channels, kNorm) {}
  Value forward(Value x) override { return transpose(LayerNorm::forward(transpose(x, {0, 2, 3, 1})), {0, 3, 1, 2}); }
};

nn::Conv2d conv(int in, int out, int kernel, const nn::Conv2dOptions& options) {
  return normal(nn::Conv2d{in, out, kernel, options}, 0.02);
}

struct Block : nn::Module {
  nn::Sequential block;
  VariablePtr layer_scale;
  float drop;
  Block(int width, float p)
      : block(conv(width, width, 7, {.padding = 3, .groups = width}), channels_last(), nn::LayerNorm{width, kNorm},
              normal(nn::Linear{width, 4 * width}, 0.02), nn::GELU{}, normal(nn::Linear{4 * width, width}, 0.02),
              channels_first()),
        layer_scale(make_parameter(Shape{width, 1, 1}, nn::init::constant(kLayerScale))),
        drop(p) {}
  Value forward(Value x) override {
    const Value scale = parameter(x.graph(), layer_scale, "layer_scale");
    return stochastic_depth(scale * block(x), drop) + x;
  }
  Children children() override { return {{"block", &block}}; }
};

std::shared_ptr<nn::Module> make_convnext_tiny(const Variant& variant) {
  nn::Sequential features;
  features.push(nn::Sequential{conv(3, kWidth, 4, {.stride = 4}), ChannelNorm{kWidth}});
  int done = 0, width = kWidth;
  for (const int depth : kDepths) {
    if (done > 0) {
      features.push(nn::Sequential{ChannelNorm{width}, conv(width, 2 * width, 2, {.stride = 2})});
      width *= 2;
    }
    nn::Sequential stage;
    for (int i = 0; i < depth; ++i) {
      stage.push(Block{width, variant.rate(kStochasticDepth * static_cast<float>(done++) / (kBlocks - 1))});
    }
    features.push(stage);
  }
  auto net = std::make_shared<nn::Sequential>();
  net->push("features", features).push("avgpool", nn::GlobalAvgPool2d{});
  net->push("classifier",
            nn::Sequential{ChannelNorm{width}, nn::Flatten{}, normal(nn::Linear{width, variant.classes}, 0.02)});
  return net;
}

}  // namespace

Model convnext_tiny() {
  return {"convnext_tiny", "ConvNeXt, tiny", Shape{3, 224, 224}, 1000, 28589128, make_convnext_tiny, Shape{3, 64, 64}};
}

}  // namespace concord::models
