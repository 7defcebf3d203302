// ResNet-20 for 32x32 colour images, with 1x1 projections where the shape changes (He et al., "Deep Residual Learning
// for Image Recognition", 2016).
#include "concord/models/networks.hpp"
#include "concord/nn/batch_norm.hpp"
#include "concord/nn/conv.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/pool.hpp"
#include "concord/nn/sequential.hpp"
#include "concord/nn/stateless.hpp"

namespace concord::models {
namespace {

nn::Sequential conv_norm(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Sequential{nn::Conv2d{in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false}},
                        nn::BatchNorm2d{out}};
}

/// Two 3x3 convolutions beside the identity or a projection: (N, in, H, W) → (N, out, H/stride, W/stride).
struct Basic : nn::Module {
  nn::Sequential a, b, skip;  // an empty `skip` is the identity
  Basic(std::int64_t in, std::int64_t out, std::int64_t stride)
      : a(conv_norm(in, out, 3, stride)), b(conv_norm(out, out, 3)) {
    if (stride != 1 || in != out) skip = conv_norm(in, out, 1, stride);
  }
  Value forward(Value x) override { return relu(b(relu(a(x))) + skip(x)); }
  Children children() override { return {{"a", &a}, {"b", &b}, {"skip", &skip}}; }
};

std::shared_ptr<nn::Module> make_resnet20(int depth, int width, int classes) {
  auto net = std::make_shared<nn::Sequential>(conv_norm(3, width, 3), nn::ReLU{});
  std::int64_t channels = width;
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t planes = std::int64_t{width} << stage;
    for (int block = 0; block < depth; ++block) {
      net->push(Basic{channels, planes, block == 0 && stage > 0 ? 2 : 1});
      channels = planes;
    }
  }
  net->push(nn::GlobalAvgPool2d{}).push(nn::Flatten{}).push(nn::Linear{channels, classes});
  return net;
}

Model of_sizes(std::span<const int> sizes) {
  const int depth = sizes[0], width = sizes[1];
  return {"resnet20",
          "residual network of twenty layers for 32x32 colour images",
          Shape{3, 32, 32},
          10,
          272474,
          [depth, width](const Variant& variant) { return make_resnet20(depth, width, variant.classes); }};
}

}  // namespace

Model resnet20() {
  return sizable({{"depth", 3, "blocks of each of three stages"}, {"width", 16, "channels of the first"}}, of_sizes);
}

}  // namespace concord::models
