// The vision transformer ViT-B/16 (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021), built for one size of
// square images.
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/models/networks.hpp"
#include "concord/models/transformer.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"

namespace concord::models {
namespace {

constexpr int kWidth = 768, kHeads = 12, kInner = 3072, kBlocks = 12, kPatch = 16;
constexpr nn::LayerNormOptions kNorm{.epsilon = 1e-6F};

/// PyTorch's MultiheadAttention of a sequence with itself.
struct SelfAttention : nn::Module {
  VariablePtr in_proj_weight, in_proj_bias;
  nn::Linear out_proj{kWidth, kWidth};
  SelfAttention()
      : in_proj_weight(make_parameter(Shape{3 * kWidth, kWidth}, nn::init::xavier_uniform(Shape{3 * kWidth, kWidth}))),
        in_proj_bias(make_parameter(Shape{3 * kWidth}, nn::init::constant(0))) {
    out_proj.bias()->init = nn::init::constant(0);
  }
  Value forward(Value x) override {
    Graph& graph = x.graph();
    const Value weight = parameter(graph, in_proj_weight, "in_proj_weight");
    const Value bias = parameter(graph, in_proj_bias, "in_proj_bias");
    const auto [q, k, v] = thirds(matmul(x, weight, false, true) + bias);
    return out_proj(attend(q, k, v, kHeads, ops::Causal::none, 0));
  }
  Children children() override { return {{"out_proj", &out_proj}}; }
};

nn::Linear xavier_linear(int in, int out) {
  nn::Linear layer{in, out};
  layer.weight()->init = nn::init::xavier_uniform(layer.weight()->spec.shape);
  layer.bias()->init = nn::init::normal(0, 1e-6);
  return layer;
}

struct Block : nn::Module {
  nn::LayerNorm ln_1{kWidth, kNorm}, ln_2{kWidth, kNorm};
  SelfAttention attention;
  nn::Sequential mlp;
  Block() {
    mlp.push("0", xavier_linear(kWidth, kInner)).push("1", nn::GELU{}).push("3", xavier_linear(kInner, kWidth));
  }
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
  nn::LayerNorm ln{kWidth, kNorm};
  explicit Encoder(std::int64_t length)
      : pos_embedding(make_parameter(Shape{1, length, kWidth}, nn::init::normal(0, 0.02))) {
    for (int i = 0; i < kBlocks; ++i) layers.push("encoder_layer_" + std::to_string(i), Block{});
  }
  Value forward(Value x) override { return ln(layers(x + parameter(x.graph(), pos_embedding, "pos_embedding"))); }
  Children children() override { return {{"layers", &layers}, {"ln", &ln}}; }
};

struct VisionTransformer : nn::Module {
  nn::Conv2d conv_proj;
  VariablePtr class_token;
  Encoder encoder;
  nn::Sequential heads;
  VisionTransformer(std::int64_t patches, int classes)
      : conv_proj(normal(nn::Conv2d{3, kWidth, kPatch, {.stride = kPatch}}, std::sqrt(1.0 / (3 * kPatch * kPatch)))),
        class_token(make_parameter(Shape{1, 1, kWidth}, nn::init::constant(0))),
        encoder(patches + 1) {
    heads.push("head", normal(nn::Linear{kWidth, classes}, 0));
  }
  Value forward(Value x) override {
    const std::int64_t n = x.shape()[0];
    const Value patches = transpose(reshape(conv_proj(x), {n, kWidth, -1}), {0, 2, 1});  // (N, patches, width)
    const Value token = parameter(x.graph(), class_token, "class_token") * full(x.graph(), Shape{n, 1, kWidth}, 1);
    return heads(reshape(slice(encoder(concat({token, patches}, 1)), 1, 0, 1), Shape{n, kWidth}));
  }
  Children children() override { return {{"conv_proj", &conv_proj}, {"encoder", &encoder}, {"heads", &heads}}; }
};

std::shared_ptr<nn::Module> make_vit_b_16(const Variant& variant) {
  const std::int64_t side = variant.input[-1];
  CONCORD_CHECK((variant.input == Shape{3, side, side}) && side % kPatch == 0, ArgumentError,
                "vit_b_16: built for square colour images with a side that {} divides, got {}", kPatch,
                variant.input.str());
  return std::make_shared<VisionTransformer>((side / kPatch) * (side / kPatch), variant.classes);
}

}  // namespace

Model vit_b_16() {
  return {
      "vit_b_16",      "vision transformer, base, patches of 16x16", Shape{3, 224, 224}, 1000, 86567656, make_vit_b_16,
      Shape{3, 32, 32}};
}

}  // namespace concord::models
