// BERT, base, with its head for masked words (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding", 2019): words i32 (N, T) of one sentence → logits of the words (N, T, vocabulary). Names are
// those of the published weights.
#include "concord/core/check.hpp"
#include "concord/models/networks.hpp"
#include "concord/models/transformer.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"

namespace concord::models {
namespace {

constexpr int kWidth = 768, kHeads = 12, kInner = 3072, kBlocks = 12, kContext = 512;
constexpr float kDropout = 0.1F;
constexpr nn::LayerNormOptions kNorm{.epsilon = 1e-12F};

struct Embeddings : nn::Module {
  Embedding words, positions{kContext, kWidth, 0.02}, types{2, kWidth, 0.02};
  nn::LayerNorm norm{kWidth, kNorm};
  float rate;
  Embeddings(std::int64_t vocabulary, float p) : words(vocabulary, kWidth, 0.02), rate(p) {}
  Value forward(Value tokens) override {
    Graph& graph = tokens.graph();
    const std::int64_t length = tokens.shape()[-1];
    CONCORD_CHECK(tokens.shape().rank() == 2 && length <= kContext, ShapeError,
                  "{}: expected words [batch, at most {}], got {}", graph.scoped("bert", '/'), kContext,
                  tokens.shape().str());
    const Value first_sentence = iota(graph, 1);
    return dropout(norm(words(tokens) + positions(iota(graph, length)) + types(first_sentence)), rate);
  }
  Children children() override {
    return {{"word_embeddings", &words},
            {"position_embeddings", &positions},
            {"token_type_embeddings", &types},
            {"LayerNorm", &norm}};
  }
};

struct Layer : nn::Module {
  nn::Linear query, key, value, attended, inner, outer;
  nn::LayerNorm attended_norm{kWidth, kNorm}, outer_norm{kWidth, kNorm};
  float rate;
  explicit Layer(float p)
      : query(narrow_linear(kWidth, kWidth)),
        key(narrow_linear(kWidth, kWidth)),
        value(narrow_linear(kWidth, kWidth)),
        attended(narrow_linear(kWidth, kWidth)),
        inner(narrow_linear(kWidth, kInner)),
        outer(narrow_linear(kInner, kWidth)),
        rate(p) {}
  Value forward(Value x) override {
    const Value heads = attend(query(x), key(x), value(x), kHeads, ops::Causal::none, rate);
    x = attended_norm(dropout(attended(heads), rate) + x);
    return outer_norm(dropout(outer(gelu(inner(x))), rate) + x);
  }
  Children children() override {
    return {{"attention.self.query", &query},
            {"attention.self.key", &key},
            {"attention.self.value", &value},
            {"attention.output.dense", &attended},
            {"attention.output.LayerNorm", &attended_norm},
            {"intermediate.dense", &inner},
            {"output.dense", &outer},
            {"output.LayerNorm", &outer_norm}};
  }
};

struct Bert : nn::Module {
  Embeddings embeddings;
  nn::Sequential layers;
  nn::Linear transform = narrow_linear(kWidth, kWidth);
  nn::LayerNorm norm{kWidth, kNorm};
  VariablePtr bias;  // of the logits
  explicit Bert(const Variant& variant)
      : embeddings(variant.classes, variant.rate(kDropout)),
        bias(make_parameter(Shape{variant.classes}, nn::init::constant(0))) {
    for (int i = 0; i < kBlocks; ++i) layers.push(Layer{variant.rate(kDropout)});
  }
  Value forward(Value tokens) override {
    const Value x = norm(gelu(transform(layers(embeddings(tokens)))));
    const Value words = tokens.graph().variable(embeddings.words.weight);
    return matmul(x, words, false, true) + parameter(tokens.graph(), bias, "cls.predictions.bias");
  }
  Children children() override {
    return {{"bert.embeddings", &embeddings},
            {"bert.encoder.layer", &layers},
            {"cls.predictions.transform.dense", &transform},
            {"cls.predictions.transform.LayerNorm", &norm}};
  }
};

}  // namespace

Model bert_base() {
  return {"bert_base",
          "BERT, base, for masked words",
          Shape{128},
          30522,
          109514298,
          [](const Variant& variant) -> std::shared_ptr<nn::Module> { return std::make_shared<Bert>(variant); },
          Shape{12},
          Task::language,
          DType::i32};
}

}  // namespace concord::models
