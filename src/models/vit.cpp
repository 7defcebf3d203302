// The vision transformer ViT-B/16 and others by size (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021), built
// for one size of square images.
#include <cmath>
#include <span>

#include "concord/core/check.hpp"
#include "concord/models/blocks.hpp"
#include "concord/models/networks.hpp"
#include "concord/nn/attention.hpp"
#include "concord/nn/layer_norm.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

struct VitExtent {
  int depth = 12, width = 768, heads = 12, patch = 16;
};
constexpr nn::LayerNormOptions kNorm{.epsilon = 1e-6F};

nn::Linear xavier_linear(int in, int out) {
  nn::Linear layer{in, out};
  layer.weight()->init = nn::init::xavier_uniform(layer.weight()->spec.shape);
  layer.bias()->init = nn::init::normal(0, 1e-6);
  return layer;
}

struct Mlp : nn::Module {
  nn::Linear first, second;
  explicit Mlp(int width) : first(xavier_linear(width, 4 * width)), second(xavier_linear(4 * width, width)) {}
  Value forward(Value x) override { return second.row_parallel(gelu(first.column_parallel(x))); }
  Children children() override { return {{"0", &first}, {"3", &second}}; }
};

struct Block : nn::Module {
  nn::LayerNorm ln_1, ln_2;
  nn::MultiheadAttention attention;
  Mlp mlp;
  explicit Block(const VitExtent& size)
      : ln_1(size.width, kNorm), ln_2(size.width, kNorm), attention(size.width, size.heads), mlp(size.width) {}
  Value forward(Value x) override {
    x = x + attention(ln_1(x));
    return x + mlp(ln_2(x));
  }
  Children children() override {
    return {{"ln_1", &ln_1}, {"self_attention", &attention}, {"ln_2", &ln_2}, {"mlp", &mlp}};
  }
};

struct Encoder : nn::Module {
  VariablePtr pos_embedding;
  nn::Sequential layers;
  nn::LayerNorm ln;
  Encoder(std::int64_t length, const VitExtent& size)
      : pos_embedding(make_parameter(Shape{1, length, size.width}, nn::init::normal(0, 0.02))), ln(size.width, kNorm) {
    for (int i = 0; i < size.depth; ++i) layers.push("encoder_layer_" + std::to_string(i), Block{size});
  }
  Value forward(Value x) override { return ln(layers(x + parameter(x.graph(), pos_embedding, "pos_embedding"))); }
  Children children() override { return {{"layers", &layers}, {"ln", &ln}}; }
};

struct VisionTransformer : nn::Module {
  int width;
  nn::Conv2d conv_proj;
  VariablePtr class_token;
  Encoder encoder;
  nn::Sequential heads;
  VisionTransformer(std::int64_t patches, int classes, const VitExtent& size)
      : width(size.width),
        conv_proj(normal(nn::Conv2d{3, size.width, size.patch, {.stride = size.patch}},
                         std::sqrt(1.0 / (3 * size.patch * size.patch)))),
        class_token(make_parameter(Shape{1, 1, size.width}, nn::init::constant(0))),
        encoder(patches + 1, size) {
    heads.push("head", normal(nn::Linear{size.width, classes}, 0));
  }
  Value forward(Value x) override {
    const std::int64_t n = x.shape()[0];
    const Value patches = transpose(reshape(conv_proj(x), {n, width, -1}), {0, 2, 1});  // (N, patches, width)
    const Value token = parameter(x.graph(), class_token, "class_token") * full(x.graph(), Shape{n, 1, width}, 1);
    return heads(reshape(slice(encoder(concat({token, patches}, 1)), 1, 0, 1), Shape{n, width}));
  }
  Children children() override { return {{"conv_proj", &conv_proj}, {"encoder", &encoder}, {"heads", &heads}}; }
};

std::shared_ptr<nn::Module> make_vit(const VitExtent& size, const Variant& variant) {
  const std::int64_t side = variant.input[-1];
  CONCORD_CHECK((variant.input == Shape{3, side, side}) && side % size.patch == 0, ArgumentError,
                "vit_b_16: built for square colour images with a side that {} divides, got {}", size.patch,
                variant.input.str());
  return std::make_shared<VisionTransformer>((side / size.patch) * (side / size.patch), variant.classes, size);
}

}  // namespace

Model vit_b_16() {
  const auto of_sizes = [](std::span<const int> sizes) -> Model {
    const VitExtent size{sizes[0], sizes[1], sizes[2], sizes[3]};
    CONCORD_CHECK(size.width % size.heads == 0, ArgumentError, "vit_b_16: a width of {} has no {} equal heads",
                  size.width, size.heads);
    const std::int64_t side = 224 - 224 % size.patch, least = 2 * size.patch;
    CONCORD_CHECK(side > 0, ArgumentError, "vit_b_16: patches of {0}x{0} are larger than images of 224x224",
                  size.patch);
    return {"vit_b_16",
            "vision transformer, base, patches of 16x16",
            Shape{3, side, side},
            1000,
            86567656,
            [size](const Variant& variant) -> std::shared_ptr<nn::Module> { return make_vit(size, variant); },
            Shape{3, least, least}};
  };
  const VitExtent published;
  return sizable({{"depth", published.depth, "blocks"},
                  {"width", published.width, "values of a patch"},
                  {"heads", published.heads, "of each attention"},
                  {"patch", published.patch, "pixels of a side"}},
                 of_sizes);
}

}  // namespace concord::models
