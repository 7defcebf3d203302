// MobileNet v3, large (Howard et al., "Searching for MobileNetV3", 2019).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

constexpr nn::BatchNorm2dOptions kNorm{.epsilon = 1e-3F, .momentum = 0.01F};

struct BlockPlan {
  int in, kernel, expanded, out;
  bool squeeze;
  Activation activation;
  int stride;
};
constexpr Activation kRelu = Activation::relu, kSwish = Activation::hard_swish;
constexpr BlockPlan kBlocks[] = {
    {16, 3, 16, 16, false, kRelu, 1},    {16, 3, 64, 24, false, kRelu, 2},    {24, 3, 72, 24, false, kRelu, 1},
    {24, 5, 72, 40, true, kRelu, 2},     {40, 5, 120, 40, true, kRelu, 1},    {40, 5, 120, 40, true, kRelu, 1},
    {40, 3, 240, 80, false, kSwish, 2},  {80, 3, 200, 80, false, kSwish, 1},  {80, 3, 184, 80, false, kSwish, 1},
    {80, 3, 184, 80, false, kSwish, 1},  {80, 3, 480, 112, true, kSwish, 1},  {112, 3, 672, 112, true, kSwish, 1},
    {112, 5, 672, 160, true, kSwish, 2}, {160, 5, 960, 160, true, kSwish, 1}, {160, 5, 960, 160, true, kSwish, 1}};

struct InvertedResidual : nn::Module {
  nn::Sequential block;
  bool residual;
  explicit InvertedResidual(const BlockPlan& plan) : residual(plan.stride == 1 && plan.in == plan.out) {
    if (plan.expanded != plan.in) {
      block.push(conv_norm(plan.in, plan.expanded, 1, {.activation = plan.activation, .norm = kNorm}));
    }
    block.push(
        conv_norm(plan.expanded, plan.expanded, plan.kernel,
                  {.stride = plan.stride, .groups = plan.expanded, .activation = plan.activation, .norm = kNorm}));
    if (plan.squeeze) {
      block.push(SqueezeExcitation{plan.expanded, rounded_to_8(plan.expanded / 4), kRelu, Activation::hard_sigmoid});
    }
    block.push(conv_norm(plan.expanded, plan.out, 1, {.activation = Activation::none, .norm = kNorm}));
  }
  Value forward(Value x) override { return residual ? block(x) + x : block(x); }
  Children children() override { return {{"block", &block}}; }
};

std::shared_ptr<nn::Module> make_mobilenet_v3_large(const Variant& variant) {
  nn::Sequential features;
  features.push(conv_norm(3, 16, 3, {.stride = 2, .activation = kSwish, .norm = kNorm}));
  for (const BlockPlan& plan : kBlocks) features.push(InvertedResidual{plan});
  features.push(conv_norm(160, 960, 1, {.activation = kSwish, .norm = kNorm}));
  return std::make_shared<FeaturesAndClassifier>(
      features, 1,
      nn::Sequential{normal(nn::Linear{960, 1280}, 0.01), nn::HardSwish{}, nn::Dropout{variant.rate(0.2F)},
                     normal(nn::Linear{1280, variant.classes}, 0.01)});
}

}  // namespace

Model mobilenet_v3_large() {
  return {"mobilenet_v3_large",    "MobileNet v3, large", Shape{3, 224, 224}, 1000, 5483032,
          make_mobilenet_v3_large, Shape{3, 64, 64}};
}

}  // namespace concord::models
