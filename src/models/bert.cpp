// BERT, with its head for masked words or as an encoder (Devlin et al., "BERT: Pre-training of Deep Bidirectional
// Transformers for Language Understanding", 2019): words i32 (N, T) → logits of the words (N, T, vocabulary). Names are
// those of the published weights.
#include "concord/models/bert.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/models/networks.hpp"
#include "concord/models/transformer.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::models {
namespace {

constexpr nn::LayerNormOptions kNorm{.epsilon = 1e-12F};
constexpr float kHidden = -1e9F;  // the score of padding: its weight is 0 in fp32

constexpr const char *kWords = "input_ids", *kTypes = "token_type_ids", *kMask = "attention_mask";

struct Embeddings : nn::Module {
  nn::Embedding words, positions, types;
  nn::LayerNorm norm;
  int context;
  float rate;
  explicit Embeddings(const BertOptions& options)
      : words(embedding(options.vocabulary, options.width, 0.02)),
        positions(embedding(options.context, options.width, 0.02)),
        types(embedding(2, options.width, 0.02)),
        norm(options.width, kNorm),
        context(options.context),
        rate(options.dropout) {}
  Values forward_values(const Values& inputs) override {
    const Value tokens = inputs[kWords], sentences = inputs.find(kTypes);
    Graph& graph = tokens.graph();
    const std::int64_t length = tokens.shape()[-1];
    CONCORD_CHECK(tokens.shape().rank() == 2 && length <= context, ShapeError,
                  "{}: expected words [batch, at most {}], got {}", graph.scoped("bert", '/'), context,
                  tokens.shape().str());
    CONCORD_CHECK(!sentences || sentences.shape() == tokens.shape(), ShapeError, "{}: {} is {}, but the words are {}",
                  graph.scoped("bert", '/'), kTypes, sentences.shape().str(), tokens.shape().str());
    const Value first_sentence = iota(graph, 1);
    const Value type = types(sentences ? sentences : first_sentence);
    return dropout(norm(words(tokens) + positions(iota(graph, length)) + type), rate);
  }
  std::vector<std::string> input_names() const override { return {kWords, kTypes}; }
  Children children() override {
    return {{"word_embeddings", &words},
            {"position_embeddings", &positions},
            {"token_type_embeddings", &types},
            {"LayerNorm", &norm}};
  }
};

struct Layer : nn::Module {
  nn::Linear query, key, value, attended, inner, outer;
  nn::LayerNorm attended_norm, outer_norm;
  std::int64_t heads;
  float rate;
  explicit Layer(const BertOptions& options)
      : query(narrow_linear(options.width, options.width)),
        key(narrow_linear(options.width, options.width)),
        value(narrow_linear(options.width, options.width)),
        attended(narrow_linear(options.width, options.width)),
        inner(narrow_linear(options.width, options.inner)),
        outer(narrow_linear(options.inner, options.width)),
        attended_norm(options.width, kNorm),
        outer_norm(options.width, kNorm),
        heads(options.heads),
        rate(options.dropout) {}
  Values forward_values(const Values& inputs) override {
    Value x = inputs["x"];
    const Value mixed = attend(query.column_parallel(x), key.column_parallel(x), value.column_parallel(x), heads,
                               ops::Causal::none, rate, inputs.find("scores"));
    x = attended_norm(dropout(attended.row_parallel(mixed), rate) + x);
    return outer_norm(dropout(outer.row_parallel(gelu(inner.column_parallel(x))), rate) + x);
  }
  std::vector<std::string> input_names() const override { return {"x", "scores"}; }
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

/// The scores that padding gets, (N, 1, 1, T).
Value padding_scores(Value mask, const Shape& tokens) {
  CONCORD_CHECK(mask.shape() == tokens, ShapeError, "{}: {} is {}, but the words are {}",
                mask.graph().scoped("bert", '/'), kMask, mask.shape().str(), tokens.str());
  if (mask.spec().dtype == DType::i32) mask = cast(mask, DType::f32);
  return reshape((1.0F - mask) * kHidden, Shape{tokens[0], 1, 1, tokens[1]});
}

struct Bert : nn::Module {
  BertOptions options;
  Embeddings embeddings;
  std::vector<Layer> layers;
  nn::Linear transform, pooler;
  nn::LayerNorm norm;
  VariablePtr bias;  // of the logits
  explicit Bert(const BertOptions& o)
      : options(o),
        embeddings(o),
        transform(narrow_linear(o.width, o.width)),
        pooler(narrow_linear(o.width, o.width)),
        norm(o.width, kNorm),
        bias(make_parameter(Shape{o.vocabulary}, nn::init::constant(0))) {
    for (int i = 0; i < o.depth; ++i) layers.emplace_back(o);
  }
  Values forward_values(const Values& inputs) override {
    const Value tokens = inputs[kWords], mask = inputs.find(kMask), sentences = inputs.find(kTypes);
    Values embedded{NamedValue{kWords, tokens}};
    if (sentences) embedded.add(kTypes, sentences);
    Value x = embeddings(embedded).only();
    const Value scores = mask ? padding_scores(mask, tokens.shape()) : Value();
    for (Layer& layer : layers) {
      Values values{NamedValue{"x", x}};
      if (scores) values.add("scores", scores);
      x = layer(values).only();
    }
    Graph& graph = tokens.graph();
    if (options.masked_words) {
      const Value words = graph.variable(embeddings.words.weight());
      const Value y = matmul(norm(gelu(transform(x))), words, false, true);
      return {NamedValue{"logits", y + parameter(graph, bias, "cls.predictions.bias")}};
    }
    Values outputs{NamedValue{"last_hidden_state", x}};
    if (options.pooler) {
      const Value first = reshape(slice(x, 1, 0, 1), Shape{x.shape()[0], x.shape()[2]});
      outputs.add("pooler_output", tanh(pooler(first)));
    }
    return outputs;
  }
  std::vector<std::string> input_names() const override { return {kWords, kTypes, kMask}; }
  Children children() override {
    const std::string prefix = options.masked_words ? "bert." : "";
    Children all{{prefix + "embeddings", &embeddings}};
    for (std::size_t i = 0; i < layers.size(); ++i) {
      all.push_back({prefix + "encoder.layer." + std::to_string(i), &layers[i]});
    }
    if (options.masked_words) {
      all.push_back({"cls.predictions.transform.dense", &transform});
      all.push_back({"cls.predictions.transform.LayerNorm", &norm});
    } else if (options.pooler) {
      all.push_back({"pooler.dense", &pooler});
    }
    return all;
  }
};

}  // namespace

std::shared_ptr<nn::Module> bert(const BertOptions& options) {
  BertOptions sizes = options;
  if (sizes.inner == 0) sizes.inner = 4 * sizes.width;
  CONCORD_CHECK(std::min({sizes.vocabulary, sizes.context, sizes.depth, sizes.width, sizes.heads, sizes.inner}) > 0,
                ArgumentError, "bert: a size is below 1");
  CONCORD_CHECK(sizes.width % sizes.heads == 0, ArgumentError, "bert: a width of {} has no {} equal heads", sizes.width,
                sizes.heads);
  return std::make_shared<Bert>(sizes);
}

Model bert_base() {
  const auto of_sizes = [](std::span<const int> sizes) -> Model {
    const BertOptions options{.context = sizes[3], .depth = sizes[0], .width = sizes[1], .heads = sizes[2]};
    CONCORD_CHECK(options.width % options.heads == 0, ArgumentError, "bert_base: a width of {} has no {} equal heads",
                  options.width, options.heads);
    return {"bert_base",
            "BERT, base, for masked words",
            Shape{std::min(128, options.context)},
            options.vocabulary,
            109514298,
            [options](const Variant& variant) {
              BertOptions own = options;
              own.vocabulary = variant.classes;
              own.dropout = variant.rate(options.dropout);
              return bert(own);
            },
            Shape{std::min(12, options.context)},
            Task::language,
            DType::i32};
  };
  const BertOptions published;
  return sizable({{"depth", published.depth, "layers"},
                  {"width", published.width, "values of a word"},
                  {"heads", published.heads, "of each attention"},
                  {"length", published.context, "most words"}},
                 of_sizes);
}

}  // namespace concord::models
