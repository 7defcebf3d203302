// GoogLeNet (Szegedy et al., "Going Deeper with Convolutions", 2015) as torchvision has it: with batch norm, and 3x3
// where the paper has 5x5. The two auxiliary classifiers are an option, as in torchvision, whose published weights and
// number of parameters do not have them.
#include <array>

#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

constexpr double kDeviation = 0.01;  // of the first weights

InceptionConv unit(int in, int out, int kernel, int stride = 1) {
  return InceptionConv{in, out, kernel, stride, kernel / 2, kDeviation};
}

struct Widths {
  int in, one, before_three, three, before_five, five, pool;
};

struct Inception : nn::Module {
  InceptionConv branch1;
  nn::Sequential branch2, branch3, branch4;
  explicit Inception(const Widths& w)
      : branch1(unit(w.in, w.one, 1)),
        branch2(unit(w.in, w.before_three, 1), unit(w.before_three, w.three, 3)),
        branch3(unit(w.in, w.before_five, 1), unit(w.before_five, w.five, 3)),
        branch4(nn::MaxPool2d{3, {.stride = 1, .padding = 1, .ceil_mode = true}}, unit(w.in, w.pool, 1)) {}
  Value forward(Value x) override { return concat({branch1(x), branch2(x), branch3(x), branch4(x)}, 1); }
  Children children() override {
    return {{"branch1", &branch1}, {"branch2", &branch2}, {"branch3", &branch3}, {"branch4", &branch4}};
  }
};

nn::Linear linear(std::int64_t in, std::int64_t out) {
  nn::Linear layer{in, out};
  layer.weight()->init = nn::init::normal(0, kDeviation);
  return layer;
}

/// A classifier on the maps of an Inception block.
struct Auxiliary : nn::Module {
  InceptionConv conv;
  nn::Linear fc1, fc2;
  nn::Dropout dropout;
  Auxiliary(int in, const Variant& variant)
      : conv(unit(in, 128, 1)),
        fc1(linear(2048, 1024)),
        fc2(linear(1024, variant.classes)),
        dropout(variant.rate(0.7F)) {}
  Value forward(Value x) override {
    const Value maps = conv(adaptive_avg_pool(x, std::array<std::int64_t, 2>{4, 4}));
    return fc2(dropout(relu(fc1(flatten(maps)))));
  }
  Children children() override { return {{"conv", &conv}, {"fc1", &fc1}, {"fc2", &fc2}, {"dropout", &dropout}}; }
};

std::shared_ptr<nn::Module> make_googlenet(const Variant& variant) {
  const nn::MaxPool2d pool{3, {.stride = 2, .ceil_mode = true}};
  auto net = std::make_shared<nn::Sequential>();
  net->push("conv1", unit(3, 64, 7, 2)).push("maxpool1", pool);
  net->push("conv2", unit(64, 64, 1)).push("conv3", unit(64, 192, 3)).push("maxpool2", pool);
  net->push("inception3a", Inception{{192, 64, 96, 128, 16, 32, 32}});
  net->push("inception3b", Inception{{256, 128, 128, 192, 32, 96, 64}}).push("maxpool3", pool);
  net->push("inception4a", Inception{{480, 192, 96, 208, 16, 48, 64}});
  net->push("inception4b", Inception{{512, 160, 112, 224, 24, 64, 64}});
  net->push("inception4c", Inception{{512, 128, 128, 256, 24, 64, 64}});
  net->push("inception4d", Inception{{512, 112, 144, 288, 32, 64, 64}});
  net->push("inception4e", Inception{{528, 256, 160, 320, 32, 128, 128}});
  net->push("maxpool4", nn::MaxPool2d{2, {.stride = 2, .ceil_mode = true}});
  net->push("inception5a", Inception{{832, 256, 160, 320, 32, 128, 128}});
  net->push("inception5b", Inception{{832, 384, 192, 384, 48, 128, 128}});
  net->push("avgpool", nn::GlobalAvgPool2d{}).push("flatten", nn::Flatten{});
  net->push("dropout", nn::Dropout{variant.rate(0.2F)});
  net->push("fc", linear(1024, variant.classes));
  if (!variant.auxiliary) return net;
  return std::make_shared<WithAuxiliaryHeads>(
      *net, std::vector<WithAuxiliaryHeads::Head>{{"aux1", "inception4a", std::make_shared<Auxiliary>(512, variant)},
                                                  {"aux2", "inception4d", std::make_shared<Auxiliary>(528, variant)}});
}

}  // namespace

Model googlenet() {
  return {"googlenet",
          "GoogLeNet with batch norm; auxiliary classifiers as an option",
          Shape{3, 224, 224},
          1000,
          6624904,
          make_googlenet,
          Shape{3, 64, 64},
          Task::classification,
          DType::f32,
          0.3F};
}

}  // namespace concord::models
