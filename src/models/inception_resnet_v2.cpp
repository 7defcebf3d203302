// Inception-ResNet v2 (Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections on
// Learning", 2017), layers named as in the timm collection.
#include <memory>
#include <vector>

#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

using Pair = nn::Pair;

/// A unit that keeps the size.
InceptionConv unit(int in, int out, Pair kernel) { return InceptionConv{in, out, kernel, 1, nn::same}; }
InceptionConv halving(int in, int out) { return InceptionConv{in, out, 3, 2}; }
nn::MaxPool2d halving_pool() { return nn::MaxPool2d{3, {.stride = 2}}; }

/// "branch0", "branch1", … of the same input, concatenated along the channels.
struct Branches : nn::Module {
  std::vector<std::shared_ptr<nn::Module>> branches;
  template <class... Modules>
  explicit Branches(Modules... modules) : branches{std::make_shared<Modules>(std::move(modules))...} {}
  Value forward(Value x) override {
    std::vector<Value> results;
    for (const auto& branch : branches) results.push_back((*branch)(x));
    return concat(std::move(results), 1);
  }
  Children children() override {
    Children children;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      children.push_back({"branch" + std::to_string(i), branches[i].get()});
    }
    return children;
  }
};

/// x + scale·conv2d(branches of x), rectified but at the very end of the network.
struct Residual : Branches {
  nn::Conv2d conv2d;
  float scale;
  bool rectified;
  template <class... Modules>
  Residual(nn::Conv2d last, float factor, bool rectify, Modules... modules)
      : Branches(std::move(modules)...), conv2d(std::move(last)), scale(factor), rectified(rectify) {}
  Value forward(Value x) override {
    const Value sum = x + conv2d(Branches::forward(x)) * scale;
    return rectified ? relu(sum) : sum;
  }
  Children children() override {
    Children children = Branches::children();
    children.push_back({"conv2d", &conv2d});
    return children;
  }
};

Residual block35() {
  return {nn::Conv2d{128, 320, 1},
          0.17F,
          true,
          unit(320, 32, 1),
          nn::Sequential{unit(320, 32, 1), unit(32, 32, 3)},
          nn::Sequential{unit(320, 32, 1), unit(32, 48, 3), unit(48, 64, 3)}};
}

Residual block17() {
  return {nn::Conv2d{384, 1088, 1}, 0.1F, true, unit(1088, 192, 1),
          nn::Sequential{unit(1088, 128, 1), unit(128, 160, {1, 7}), unit(160, 192, {7, 1})}};
}

Residual block8(float scale, bool rectified) {
  return {nn::Conv2d{448, 2080, 1}, scale, rectified, unit(2080, 192, 1),
          nn::Sequential{unit(2080, 192, 1), unit(192, 224, {1, 3}), unit(224, 256, {3, 1})}};
}

template <class Make>
nn::Sequential repeated(int count, Make make) {
  nn::Sequential blocks;
  for (int i = 0; i < count; ++i) blocks.push(make());
  return blocks;
}

std::shared_ptr<nn::Module> make_inception_resnet_v2(const Variant& variant) {
  const nn::AvgPool2d mean{3, {.stride = 1, .padding = 1, .count_include_pad = false}};
  auto net = std::make_shared<nn::Sequential>();
  net->push("conv2d_1a", halving(3, 32)).push("conv2d_2a", InceptionConv{32, 32, 3});
  net->push("conv2d_2b", unit(32, 64, 3)).push("maxpool_3a", halving_pool());
  net->push("conv2d_3b", unit(64, 80, 1)).push("conv2d_4a", InceptionConv{80, 192, 3});
  net->push("maxpool_5a", halving_pool());
  net->push("mixed_5b", Branches{unit(192, 96, 1), nn::Sequential{unit(192, 48, 1), unit(48, 64, 5)},
                                 nn::Sequential{unit(192, 64, 1), unit(64, 96, 3), unit(96, 96, 3)},
                                 nn::Sequential{nn::AvgPool2d{mean}, unit(192, 64, 1)}});
  net->push("repeat", repeated(10, block35));
  net->push("mixed_6a",
            Branches{halving(320, 384), nn::Sequential{unit(320, 256, 1), unit(256, 256, 3), halving(256, 384)},
                     halving_pool()});
  net->push("repeat_1", repeated(20, block17));
  net->push("mixed_7a",
            Branches{nn::Sequential{unit(1088, 256, 1), halving(256, 384)},
                     nn::Sequential{unit(1088, 256, 1), halving(256, 288)},
                     nn::Sequential{unit(1088, 256, 1), unit(256, 288, 3), halving(288, 320)}, halving_pool()});
  net->push("repeat_2", repeated(9, [] { return block8(0.2F, true); }));
  net->push("block8", block8(1, false)).push("conv2d_7b", unit(2080, 1536, 1));
  net->push("global_pool", nn::GlobalAvgPool2d{}).push("flatten", nn::Flatten{});
  net->push("head_drop", nn::Dropout{variant.rate(0.2F)}).push("classif", nn::Linear{1536, variant.classes});
  return net;
}

}  // namespace

Model inception_resnet_v2() {
  return {"inception_resnet_v2",
          "Inception with residual connections, second version",
          Shape{3, 299, 299},
          1000,
          55843464,
          make_inception_resnet_v2,
          Shape{3, 107, 107}};
}

}  // namespace concord::models
