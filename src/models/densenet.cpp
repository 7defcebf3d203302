// DenseNet-121 (Huang et al., "Densely Connected Convolutional Networks", 2017): each layer sees the results of all
// layers of its block before it.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr int kGrowth = 32;  // channels that a layer adds

nn::Conv2d conv(int in, int out, int kernel, int stride = 1) {
  return kaiming(nn::Conv2d{in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false}},
                 nn::init::Fan::in);
}

/// x (N, in, H, W) → x and kGrowth channels more.
nn::Sequential dense_layer(int in) {
  nn::Sequential layer;
  layer.push("norm1", nn::BatchNorm2d{in}).push("relu1", nn::ReLU{}).push("conv1", conv(in, 4 * kGrowth, 1));
  layer.push("norm2", nn::BatchNorm2d{4 * kGrowth}).push("relu2", nn::ReLU{});
  layer.push("conv2", conv(4 * kGrowth, kGrowth, 3));
  return layer;
}

struct DenseBlock : nn::Module {
  std::vector<nn::Sequential> layers;
  DenseBlock(int in, int count) {
    for (int i = 0; i < count; ++i) layers.push_back(dense_layer(in + i * kGrowth));
  }
  Value forward(Value x) override {
    for (nn::Sequential& layer : layers) x = concat({x, layer(x)}, 1);
    return x;
  }
  Children children() override {
    Children children;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      children.push_back({"denselayer" + std::to_string(i + 1), &layers[i]});
    }
    return children;
  }
};

nn::Sequential transition(int in, int out) {
  nn::Sequential layers;
  layers.push("norm", nn::BatchNorm2d{in}).push("relu", nn::ReLU{}).push("conv", conv(in, out, 1));
  layers.push("pool", nn::AvgPool2d{2});
  return layers;
}

std::shared_ptr<nn::Module> make_densenet121(const Variant& variant) {
  nn::Sequential features;
  features.push("conv0", conv(3, 64, 7, 2)).push("norm0", nn::BatchNorm2d{64}).push("relu0", nn::ReLU{});
  features.push("pool0", nn::MaxPool2d{3, {.stride = 2, .padding = 1}});
  int channels = 64, number = 1;
  for (const int count : {6, 12, 24, 16}) {
    features.push("denseblock" + std::to_string(number), DenseBlock{channels, count});
    channels += count * kGrowth;
    if (number == 4) break;
    features.push("transition" + std::to_string(number++), transition(channels, channels / 2));
    channels /= 2;
  }
  features.push("norm5", nn::BatchNorm2d{channels});
  nn::Linear classifier{channels, variant.classes};
  classifier.bias()->init = nn::init::constant(0);
  auto net = std::make_shared<nn::Sequential>();
  net->push("features", features).push("relu", nn::ReLU{}).push("avgpool", nn::GlobalAvgPool2d{});
  net->push("flatten", nn::Flatten{}).push("classifier", classifier);
  return net;
}

}  // namespace

Model densenet121() {
  return {
      "densenet121",   "densely connected network of 121 layers", Shape{3, 224, 224}, 1000, 7978856, make_densenet121,
      Shape{3, 64, 64}};
}

}  // namespace concord::models
