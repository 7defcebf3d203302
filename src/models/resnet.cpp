// Residual networks for large images (He et al., "Deep Residual Learning for Image Recognition", 2016), in
// torchvision's form with the stride in the 3x3 convolution; ResNeXt (Xie et al., 2017) and wide ones (Zagoruyko and
// Komodakis, 2016).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

struct Plan {
  bool bottleneck;
  int blocks[4];
  int groups = 1, group_width = 64;
};

/// `planes` before the expansion; `out` after it.
struct Block : nn::Module {
  nn::Conv2d conv1, conv2, conv3;
  nn::BatchNorm2d bn1, bn2, bn3;
  nn::Sequential downsample;  // empty: the identity
  bool bottleneck;

  static nn::Conv2d conv(int in, int out, int kernel, int stride = 1, int groups = 1) {
    return kaiming(
        nn::Conv2d{in, out, kernel, {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}});
  }
  Block(const Plan& plan, int in, int planes, int out, int stride)
      : Block(plan, in, planes, out, stride, planes * plan.group_width / 64 * plan.groups) {}
  Block(const Plan& plan, int in, int planes, int out, int stride, int width)
      : conv1(plan.bottleneck ? conv(in, width, 1) : conv(in, planes, 3, stride)),
        conv2(plan.bottleneck ? conv(width, width, 3, stride, plan.groups) : conv(planes, planes, 3)),
        conv3(plan.bottleneck ? conv(width, out, 1) : conv2),
        bn1(plan.bottleneck ? width : planes),
        bn2(plan.bottleneck ? width : planes),
        bn3(out),
        bottleneck(plan.bottleneck) {
    if (stride != 1 || in != out) downsample.push(conv(in, out, 1, stride)).push(nn::BatchNorm2d{out});
  }

  Value forward(Value x) override {
    Value y = bn2(conv2(relu(bn1(conv1(x)))));
    if (bottleneck) y = bn3(conv3(relu(y)));
    return relu(y + downsample(x));
  }
  Children children() override {
    Children children{{"conv1", &conv1}, {"bn1", &bn1}, {"conv2", &conv2}, {"bn2", &bn2}, {"downsample", &downsample}};
    if (bottleneck) children.insert(children.end(), {{"conv3", &conv3}, {"bn3", &bn3}});
    return children;
  }
};

std::shared_ptr<nn::Module> make_resnet(const Plan& plan, const Variant& variant) {
  auto net = std::make_shared<nn::Sequential>();
  net->push("conv1", kaiming(nn::Conv2d{3, 64, 7, {.stride = 2, .padding = 3, .bias = false}}));
  net->push("bn1", nn::BatchNorm2d{64}).push("relu", nn::ReLU{});
  net->push("maxpool", nn::MaxPool2d{3, {.stride = 2, .padding = 1}});
  int channels = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const int planes = 64 << stage, out = plan.bottleneck ? 4 * planes : planes;
    nn::Sequential layer;
    for (int block = 0; block < plan.blocks[stage]; ++block) {
      layer.push(Block{plan, channels, planes, out, block == 0 && stage > 0 ? 2 : 1});
      channels = out;
    }
    net->push("layer" + std::to_string(stage + 1), layer);
  }
  net->push("avgpool", nn::GlobalAvgPool2d{}).push("flatten", nn::Flatten{});
  net->push("fc", nn::Linear{channels, variant.classes});
  return net;
}

Model model(std::string_view name, std::string_view description, const Plan& plan, std::int64_t parameters) {
  return {name,
          description,
          Shape{3, 224, 224},
          1000,
          parameters,
          [plan](const Variant& variant) { return make_resnet(plan, variant); },
          Shape{3, 64, 64}};
}

}  // namespace

std::vector<Model> resnet() {
  return {model("resnet18", "residual network of 18 layers", {false, {2, 2, 2, 2}}, 11689512),
          model("resnet34", "residual network of 34 layers", {false, {3, 4, 6, 3}}, 21797672),
          model("resnet50", "residual network of 50 layers", {true, {3, 4, 6, 3}}, 25557032),
          model("resnet101", "residual network of 101 layers", {true, {3, 4, 23, 3}}, 44549160),
          model("resnext50_32x4d", "ResNet-50 with grouped convolutions", {true, {3, 4, 6, 3}, 32, 4}, 25028904),
          model("wide_resnet50_2", "ResNet-50 twice as wide inside", {true, {3, 4, 6, 3}, 1, 128}, 68883240)};
}

}  // namespace concord::models
