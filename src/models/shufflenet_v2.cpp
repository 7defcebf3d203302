// ShuffleNet v2, width 1.0 (Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture Design",
// 2018).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

/// Channel i of each of two halves comes to 2i and 2i + 1.
Value shuffled(Value x) {
  const Shape& s = x.shape();
  return reshape(transpose(reshape(x, Shape{s[0], 2, s[1] / 2, s[2], s[3]}), {0, 2, 1, 3, 4}), s);
}

nn::Conv2d conv(int in, int out, int kernel, int stride = 1, int groups = 1) {
  return nn::Conv2d{in, out, kernel, {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}};
}

/// With stride 1 half of the channels go through; with stride 2 both branches halve the size.
struct Unit : nn::Module {
  nn::Sequential branch1, branch2;
  int stride;
  Unit(int in, int out, int step) : stride(step) {
    const int half = out / 2;
    if (stride > 1) {
      branch1 = nn::Sequential{conv(in, in, 3, stride, in), nn::BatchNorm2d{in}, conv(in, half, 1),
                               nn::BatchNorm2d{half}, nn::ReLU{}};
    }
    branch2 = nn::Sequential{conv(stride > 1 ? in : half, half, 1),
                             nn::BatchNorm2d{half},
                             nn::ReLU{},
                             conv(half, half, 3, stride, half),
                             nn::BatchNorm2d{half},
                             conv(half, half, 1),
                             nn::BatchNorm2d{half},
                             nn::ReLU{}};
  }
  Value forward(Value x) override {
    if (stride > 1) return shuffled(concat({branch1(x), branch2(x)}, 1));
    const std::int64_t channels = x.shape()[1];
    const Value kept = slice(x, 1, 0, channels / 2), changed = slice(x, 1, channels / 2, channels);
    return shuffled(concat({kept, branch2(changed)}, 1));
  }
  Children children() override { return {{"branch1", &branch1}, {"branch2", &branch2}}; }
};

std::shared_ptr<nn::Module> make_shufflenet_v2_x1_0(const Variant& variant) {
  auto net = std::make_shared<nn::Sequential>();
  net->push("conv1", nn::Sequential{conv(3, 24, 3, 2), nn::BatchNorm2d{24}, nn::ReLU{}});
  net->push("maxpool", nn::MaxPool2d{3, {.stride = 2, .padding = 1}});
  int channels = 24, stage = 2;
  for (const int units : {4, 8, 4}) {
    const int out = 116 << (stage - 2);
    nn::Sequential layers;
    layers.push(Unit{channels, out, 2});
    for (int i = 1; i < units; ++i) layers.push(Unit{out, out, 1});
    net->push("stage" + std::to_string(stage++), layers);
    channels = out;
  }
  net->push("conv5", nn::Sequential{conv(channels, 1024, 1), nn::BatchNorm2d{1024}, nn::ReLU{}});
  net->push("avgpool", nn::GlobalAvgPool2d{}).push("flatten", nn::Flatten{});
  net->push("fc", nn::Linear{1024, variant.classes});
  return net;
}

}  // namespace

Model shufflenet_v2_x1_0() {
  return {"shufflenet_v2_x1_0", "ShuffleNet v2, width 1.0", Shape{3, 224, 224}, 1000, 2278604, make_shufflenet_v2_x1_0,
          Shape{3, 64, 64}};
}

}  // namespace concord::models
