// Inception v3 (Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016) as torchvision has
// it. The auxiliary classifier is an option; torchvision's published weights and number of parameters, 27,161,264, have
// it.
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

using Pair = nn::Pair;

Value mean_3x3(Value x) { return avg_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}); }
Value halved(Value x) { return max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}}); }

nn::Linear normal_weights(int in, int out, double deviation) {
  nn::Linear layer{in, out};
  layer.weight()->init = nn::init::normal(0, deviation);
  return layer;
}

/// A unit that keeps the size.
InceptionConv unit(int in, int out, Pair kernel) { return InceptionConv{in, out, kernel, 1, nn::same}; }
InceptionConv halving(int in, int out) { return InceptionConv{in, out, 3, 2}; }

/// 1x1, 5x5 and twice 3x3 beside each other.
struct InceptionA : nn::Module {
  InceptionConv one, five1, five2, three1, three2, three3, pool;
  InceptionA(int in, int pooled)
      : one(unit(in, 64, 1)),
        five1(unit(in, 48, 1)),
        five2(unit(48, 64, 5)),
        three1(unit(in, 64, 1)),
        three2(unit(64, 96, 3)),
        three3(unit(96, 96, 3)),
        pool(unit(in, pooled, 1)) {}
  Value forward(Value x) override {
    return concat({one(x), five2(five1(x)), three3(three2(three1(x))), pool(mean_3x3(x))}, 1);
  }
  Children children() override {
    return {{"branch1x1", &one},         {"branch5x5_1", &five1},     {"branch5x5_2", &five2},
            {"branch3x3dbl_1", &three1}, {"branch3x3dbl_2", &three2}, {"branch3x3dbl_3", &three3},
            {"branch_pool", &pool}};
  }
};

/// To half the size.
struct InceptionB : nn::Module {
  InceptionConv three, double1, double2, double3;
  explicit InceptionB(int in)
      : three(halving(in, 384)), double1(unit(in, 64, 1)), double2(unit(64, 96, 3)), double3(halving(96, 96)) {}
  Value forward(Value x) override { return concat({three(x), double3(double2(double1(x))), halved(x)}, 1); }
  Children children() override {
    return {{"branch3x3", &three},
            {"branch3x3dbl_1", &double1},
            {"branch3x3dbl_2", &double2},
            {"branch3x3dbl_3", &double3}};
  }
};

/// 7x7 as a row and a column, with `c` channels inside.
struct InceptionC : nn::Module {
  InceptionConv one, seven1, seven2, seven3, double1, double2, double3, double4, double5, pool;
  InceptionC(int in, int c)
      : one(unit(in, 192, 1)),
        seven1(unit(in, c, 1)),
        seven2(unit(c, c, {1, 7})),
        seven3(unit(c, 192, {7, 1})),
        double1(unit(in, c, 1)),
        double2(unit(c, c, {7, 1})),
        double3(unit(c, c, {1, 7})),
        double4(unit(c, c, {7, 1})),
        double5(unit(c, 192, {1, 7})),
        pool(unit(in, 192, 1)) {}
  Value forward(Value x) override {
    const Value twice = double5(double4(double3(double2(double1(x)))));
    return concat({one(x), seven3(seven2(seven1(x))), twice, pool(mean_3x3(x))}, 1);
  }
  Children children() override {
    return {{"branch1x1", &one},          {"branch7x7_1", &seven1},     {"branch7x7_2", &seven2},
            {"branch7x7_3", &seven3},     {"branch7x7dbl_1", &double1}, {"branch7x7dbl_2", &double2},
            {"branch7x7dbl_3", &double3}, {"branch7x7dbl_4", &double4}, {"branch7x7dbl_5", &double5},
            {"branch_pool", &pool}};
  }
};

/// To half the size, after 7x7.
struct InceptionD : nn::Module {
  InceptionConv three1, three2, seven1, seven2, seven3, seven4;
  explicit InceptionD(int in)
      : three1(unit(in, 192, 1)),
        three2(halving(192, 320)),
        seven1(unit(in, 192, 1)),
        seven2(unit(192, 192, {1, 7})),
        seven3(unit(192, 192, {7, 1})),
        seven4(halving(192, 192)) {}
  Value forward(Value x) override {
    return concat({three2(three1(x)), seven4(seven3(seven2(seven1(x)))), halved(x)}, 1);
  }
  Children children() override {
    return {{"branch3x3_1", &three1},   {"branch3x3_2", &three2},   {"branch7x7x3_1", &seven1},
            {"branch7x7x3_2", &seven2}, {"branch7x7x3_3", &seven3}, {"branch7x7x3_4", &seven4}};
  }
};

/// 3x3 as a row and a column beside each other.
struct InceptionE : nn::Module {
  InceptionConv one, three1, three2a, three2b, double1, double2, double3a, double3b, pool;
  explicit InceptionE(int in)
      : one(unit(in, 320, 1)),
        three1(unit(in, 384, 1)),
        three2a(unit(384, 384, {1, 3})),
        three2b(unit(384, 384, {3, 1})),
        double1(unit(in, 448, 1)),
        double2(unit(448, 384, 3)),
        double3a(unit(384, 384, {1, 3})),
        double3b(unit(384, 384, {3, 1})),
        pool(unit(in, 192, 1)) {}
  Value forward(Value x) override {
    const Value once = three1(x), twice = double2(double1(x));
    return concat({one(x), three2a(once), three2b(once), double3a(twice), double3b(twice), pool(mean_3x3(x))}, 1);
  }
  Children children() override {
    return {{"branch1x1", &one},
            {"branch3x3_1", &three1},
            {"branch3x3_2a", &three2a},
            {"branch3x3_2b", &three2b},
            {"branch3x3dbl_1", &double1},
            {"branch3x3dbl_2", &double2},
            {"branch3x3dbl_3a", &double3a},
            {"branch3x3dbl_3b", &double3b},
            {"branch_pool", &pool}};
  }
};

/// A classifier on maps of 17x17.
struct Auxiliary : nn::Module {
  InceptionConv conv0, conv1;
  nn::Linear fc;
  explicit Auxiliary(int classes)
      : conv0(unit(768, 128, 1)), conv1{128, 768, 5, 1, 0, 0.01}, fc(normal_weights(768, classes, 0.001)) {}
  Value forward(Value x) override {
    const Value maps = avg_pool2d(x, {.kernel = {5, 5}, .stride = {3, 3}});
    return fc(flatten(global_avg_pool2d(conv1(conv0(maps)))));
  }
  Children children() override { return {{"conv0", &conv0}, {"conv1", &conv1}, {"fc", &fc}}; }
};

std::shared_ptr<nn::Module> make_inception_v3(const Variant& variant) {
  const nn::MaxPool2d pool{3, {.stride = 2}};
  auto net = std::make_shared<nn::Sequential>();
  net->push("Conv2d_1a_3x3", halving(3, 32)).push("Conv2d_2a_3x3", InceptionConv{32, 32, 3});
  net->push("Conv2d_2b_3x3", unit(32, 64, 3)).push("maxpool1", pool);
  net->push("Conv2d_3b_1x1", unit(64, 80, 1)).push("Conv2d_4a_3x3", InceptionConv{80, 192, 3}).push("maxpool2", pool);
  net->push("Mixed_5b", InceptionA{192, 32})
      .push("Mixed_5c", InceptionA{256, 64})
      .push("Mixed_5d", InceptionA{288, 64});
  net->push("Mixed_6a", InceptionB{288}).push("Mixed_6b", InceptionC{768, 128}).push("Mixed_6c", InceptionC{768, 160});
  net->push("Mixed_6d", InceptionC{768, 160}).push("Mixed_6e", InceptionC{768, 192});
  net->push("Mixed_7a", InceptionD{768}).push("Mixed_7b", InceptionE{1280}).push("Mixed_7c", InceptionE{2048});
  net->push("avgpool", nn::GlobalAvgPool2d{}).push("dropout", nn::Dropout{variant.rate(0.5F)});
  net->push("flatten", nn::Flatten{}).push("fc", normal_weights(2048, variant.classes, 0.1));
  if (!variant.auxiliary) return net;
  return std::make_shared<WithAuxiliaryHeads>(
      *net,
      std::vector<WithAuxiliaryHeads::Head>{{"AuxLogits", "Mixed_6e", std::make_shared<Auxiliary>(variant.classes)}});
}

}  // namespace

Model inception_v3() {
  return {"inception_v3",     "Inception v3; its auxiliary classifier as an option",
          Shape{3, 299, 299}, 1000,
          23834568,           make_inception_v3,
          Shape{3, 107, 107}, Task::classification,
          DType::f32,         0.4F};
}

}  // namespace concord::models
