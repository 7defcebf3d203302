// SqueezeNet 1.1 (Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters", 2016; the later
// release with 2.4 times less computation).
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

nn::Conv2d conv(int in, int out, int kernel, const nn::Conv2dOptions& options = {}) {
  nn::Conv2d layer{in, out, kernel, options};
  layer.weight()->init = nn::init::kaiming_uniform(layer.weight()->spec.shape);
  layer.bias()->init = nn::init::constant(0);
  return layer;
}

/// To `squeezed` channels by 1x1, then to `out` by 1x1 and as many by 3x3.
struct Fire : nn::Module {
  nn::Conv2d squeeze, one, three;
  Fire(int in, int squeezed, int out)
      : squeeze(conv(in, squeezed, 1)), one(conv(squeezed, out, 1)), three(conv(squeezed, out, 3, {.padding = 1})) {}
  Value forward(Value x) override {
    const Value y = relu(squeeze(x));
    return concat({relu(one(y)), relu(three(y))}, 1);
  }
  Children children() override { return {{"squeeze", &squeeze}, {"expand1x1", &one}, {"expand3x3", &three}}; }
};

std::shared_ptr<nn::Module> make_squeezenet1_1(const Variant& variant) {
  const nn::MaxPool2d pool{3, {.stride = 2, .ceil_mode = true}};
  const nn::Sequential features{conv(3, 64, 3, {.stride = 2}),
                                nn::ReLU{},
                                nn::MaxPool2d{pool},
                                Fire{64, 16, 64},
                                Fire{128, 16, 64},
                                nn::MaxPool2d{pool},
                                Fire{128, 32, 128},
                                Fire{256, 32, 128},
                                nn::MaxPool2d{pool},
                                Fire{256, 48, 192},
                                Fire{384, 48, 192},
                                Fire{384, 64, 256},
                                Fire{512, 64, 256}};
  const nn::Sequential classifier{nn::Dropout{variant.rate(0.5F)}, normal(nn::Conv2d{512, variant.classes, 1}, 0.01),
                                  nn::ReLU{}, nn::GlobalAvgPool2d{}};
  auto net = std::make_shared<nn::Sequential>();
  net->push("features", features).push("classifier", classifier).push("flatten", nn::Flatten{});
  return net;
}

}  // namespace

Model squeezenet1_1() {
  return {"squeezenet1_1", "SqueezeNet 1.1", Shape{3, 224, 224}, 1000, 1235496, make_squeezenet1_1, Shape{3, 33, 33}};
}

}  // namespace concord::models
