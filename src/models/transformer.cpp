// Embedding and attention of the transformers.
#include "concord/models/transformer.hpp"

#include "concord/nn/model_parallel.hpp"
#include "concord/ops/copy.hpp"

namespace concord::models {
namespace {

Value split_heads(Value x, std::int64_t heads) {  // (N, T, width) → (N, T, heads, width/heads)
  const Shape& s = x.shape();
  return reshape(x, Shape{s[0], s[1], heads, s[2] / heads});
}

}  // namespace

nn::Embedding embedding(std::int64_t words, std::int64_t width, double deviation) {
  nn::Embedding layer{words, width};
  layer.weight()->init = nn::init::normal(0, deviation);
  return layer;
}

nn::Linear narrow_linear(std::int64_t in, std::int64_t out) { return normal(nn::Linear{in, out}, 0.02); }

Value attend(Value q, Value k, Value v, std::int64_t heads, ops::Causal causal, float dropout, Value mask) {
  AttentionOptions options;
  options.mask = mask;
  options.causal = causal;
  options.layout = ops::HeadLayout::tokens_first;
  options.dropout = dropout;
  const std::int64_t own = nn::own_heads(q.graph(), heads);
  const nn::OwnRandomNumbers numbers(q.graph());
  const Value dst = attention(split_heads(q, own), split_heads(k, own), split_heads(v, own), options);
  return reshape(dst, q.shape());
}

std::array<Value, 3> thirds(Value x) {
  const std::int64_t width = x.shape()[-1] / 3;
  return {slice(x, -1, 0, width), slice(x, -1, width, 2 * width), slice(x, -1, 2 * width, 3 * width)};
}

}  // namespace concord::models
