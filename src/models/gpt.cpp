// GPT-2, small (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), and a tiny network of the
// same form for characters: tokens i32 (N, T) → logits of the next one (N, T, vocabulary). Names are those of the
// published weights; their projections lie transposed there.
#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/models/networks.hpp"
#include "concord/models/transformer.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"

namespace concord::models {
namespace {

struct Extent {
  int context, width, heads, blocks;
  float dropout = 0.1F;
};
constexpr Extent kSmall{1024, 768, 12, 12}, kTiny{64, 128, 4, 4};

/// Projections into the residual stream start smaller, by the number of them.
nn::Linear residual_linear(std::int64_t in, const Extent& size) {
  return normal(nn::Linear{in, size.width}, 0.02 / std::sqrt(2.0 * static_cast<double>(size.blocks)));
}

struct Attention : nn::Module {
  nn::Linear c_attn, c_proj;
  std::int64_t heads;
  float rate;
  Attention(const Extent& size, float p)
      : c_attn(narrow_linear(size.width, 3 * size.width)),
        c_proj(residual_linear(size.width, size)),
        heads(size.heads),
        rate(p) {}
  Value forward(Value x) override {
    const auto [q, k, v] = thirds(c_attn.column_parallel(x, 3));
    return dropout(c_proj.row_parallel(attend(q, k, v, heads, ops::Causal::first, rate)), rate);
  }
  Children children() override { return {{"c_attn", &c_attn}, {"c_proj", &c_proj}}; }
};

struct Mlp : nn::Module {
  nn::Linear c_fc, c_proj;
  float rate;
  Mlp(const Extent& size, float p)
      : c_fc(narrow_linear(size.width, 4 * size.width)), c_proj(residual_linear(4 * size.width, size)), rate(p) {}
  Value forward(Value x) override { return dropout(c_proj.row_parallel(gelu_tanh(c_fc.column_parallel(x))), rate); }
  Children children() override { return {{"c_fc", &c_fc}, {"c_proj", &c_proj}}; }
};

struct Block : nn::Module {
  nn::LayerNorm ln_1, ln_2;
  Attention attn;
  Mlp mlp;
  Block(const Extent& size, float p) : ln_1(size.width), ln_2(size.width), attn(size, p), mlp(size, p) {}
  Value forward(Value x) override {
    x = x + attn(ln_1(x));
    return x + mlp(ln_2(x));
  }
  Children children() override { return {{"ln_1", &ln_1}, {"attn", &attn}, {"ln_2", &ln_2}, {"mlp", &mlp}}; }
};

struct Gpt : nn::Module {
  Extent size;
  float rate;
  nn::Embedding wte, wpe;
  nn::Sequential h;
  nn::LayerNorm ln_f;
  Gpt(const Extent& s, const Variant& variant)
      : size(s),
        rate(variant.rate(s.dropout)),
        wte(embedding(variant.classes, s.width, 0.02)),
        wpe(embedding(s.context, s.width, 0.01)),
        ln_f(s.width) {
    for (std::int64_t i = 0; i < s.blocks; ++i) h.push(Block{s, rate});
  }
  Value forward(Value tokens) override {
    Graph& graph = tokens.graph();
    const std::int64_t length = tokens.shape()[-1];
    CONCORD_CHECK(tokens.shape().rank() == 2 && length <= size.context, ShapeError,
                  "{}: expected tokens [batch, at most {}], got {}", graph.scoped("gpt", '/'), size.context,
                  tokens.shape().str());
    const Value x = ln_f(h(dropout(wte(tokens) + wpe(iota(graph, length)), rate)));
    return matmul(x, graph.variable(wte.weight()), false, true);  // logits by the embedding itself
  }
  Children children() override { return {{"wte", &wte}, {"wpe", &wpe}, {"h", &h}, {"ln_f", &ln_f}}; }
};

Model model(std::string_view name, std::string_view description, const Extent& published, int vocabulary,
            std::int64_t parameters) {
  const auto of_sizes = [=](std::span<const int> sizes) -> Model {
    const Extent size{sizes[3], sizes[1], sizes[2], sizes[0]};
    CONCORD_CHECK(size.width % size.heads == 0, ArgumentError, "{}: a width of {} has no {} equal heads", name,
                  size.width, size.heads);
    return {
        name,
        description,
        Shape{size.context},
        vocabulary,
        parameters,
        [size](const Variant& variant) -> std::shared_ptr<nn::Module> { return std::make_shared<Gpt>(size, variant); },
        Shape{std::min(size.context, 12)},
        Task::language,
        DType::i32};
  };
  return sizable({{"depth", published.blocks, "blocks"},
                  {"width", published.width, "values of a token"},
                  {"heads", published.heads, "of each attention"},
                  {"length", published.context, "tokens"}},
                 of_sizes);
}

}  // namespace

Model gpt2_small() { return model("gpt2_small", "GPT-2, small", kSmall, 50257, 124439808); }
Model gpt_tiny() { return model("gpt_tiny", "GPT of four blocks for characters", kTiny, 96, 813824); }

}  // namespace concord::models
