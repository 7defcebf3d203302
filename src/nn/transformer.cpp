// The transformer: branches with residuals and normalisations, before or after.
#include "concord/nn/transformer.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/ops/random.hpp"

namespace concord::nn {
namespace {

MultiheadAttentionOptions attention_of(const TransformerOptions& options) {
  return {.dropout = options.dropout, .bias = options.bias};
}

LayerNorm norm_of(std::int64_t width, const TransformerOptions& options) {
  return LayerNorm(width, {.epsilon = options.epsilon, .bias = options.bias});
}

/// x + branch(norm(x)), or norm(x + branch(x)).
template <class Branch>
Value residual(Value x, LayerNorm& norm, const TransformerOptions& options, const Branch& branch) {
  if (options.norm_first) return x + dropout(branch(norm(x)), options.dropout);
  return norm(x + dropout(branch(x), options.dropout));
}

Value feed_forward(Value x, Linear& first, Linear& second, const TransformerOptions& options) {
  const Value inner = first.column_parallel(x);
  const auto dropped = [&] {
    const OwnRandomNumbers own(x.graph());
    return dropout(options.activation(inner), options.dropout);
  };
  return second.row_parallel(dropped());
}

[[noreturn]] void refuse_alone(const char* module) {
  throw ArgumentError(fmt::format("{} needs target and memory: decoder(target, memory)", module));
}

template <class Layer>
std::vector<std::shared_ptr<Layer>> layers_of(std::int64_t count, std::int64_t width, std::int64_t heads,
                                              const TransformerOptions& options) {
  CONCORD_CHECK(count > 0, ArgumentError, "a transformer needs at least one layer, got {}", count);
  std::vector<std::shared_ptr<Layer>> layers;
  for (std::int64_t i = 0; i < count; ++i) layers.push_back(std::make_shared<Layer>(width, heads, options));
  return layers;
}

template <class Layer>
Module::Children names_of(const std::vector<std::shared_ptr<Layer>>& layers, const std::shared_ptr<LayerNorm>& norm) {
  Module::Children children;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    children.push_back({fmt::format("layers.{}", i), layers[i].get()});
  }
  if (norm) children.push_back({"norm", norm.get()});
  return children;
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t width, std::int64_t heads,
                                                 const TransformerOptions& options)
    : options_(options),
      self_attn_(width, heads, attention_of(options)),
      linear1_(width, options.feed_forward, {.bias = options.bias}),
      linear2_(options.feed_forward, width, {.bias = options.bias}),
      norm1_(norm_of(width, options)),
      norm2_(norm_of(width, options)) {}

Value TransformerEncoderLayer::layer(Value x, const AttentionMask& mask, KeyValueCache* cache) {
  const Value attended = residual(
      x, norm1_, options_, [&](Value in) { return cache != nullptr ? self_attn_(in, *cache) : self_attn_(in, mask); });
  return residual(attended, norm2_, options_, [&](Value in) { return feed_forward(in, linear1_, linear2_, options_); });
}

Value TransformerEncoderLayer::operator()(Value x, const AttentionMask& mask) {
  const Tracing tracing(x.graph(), *this);
  return layer(x, mask, nullptr);
}

Value TransformerEncoderLayer::operator()(Value x, KeyValueCache& cache) {
  const Tracing tracing(x.graph(), *this);
  return layer(x, {}, &cache);
}

Module::Children TransformerEncoderLayer::children() {
  return {{"self_attn", &self_attn_},
          {"linear1", &linear1_},
          {"linear2", &linear2_},
          {"norm1", &norm1_},
          {"norm2", &norm2_}};
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t width, std::int64_t heads,
                                                 const TransformerOptions& options)
    : options_(options),
      self_attn_(width, heads, attention_of(options)),
      multihead_attn_(width, heads, attention_of(options)),
      linear1_(width, options.feed_forward, {.bias = options.bias}),
      linear2_(options.feed_forward, width, {.bias = options.bias}),
      norm1_(norm_of(width, options)),
      norm2_(norm_of(width, options)),
      norm3_(norm_of(width, options)) {}

Value TransformerDecoderLayer::forward(Value) { refuse_alone("TransformerDecoderLayer"); }

Value TransformerDecoderLayer::operator()(Value target, Value memory, const AttentionMask& target_mask,
                                          const AttentionMask& memory_mask) {
  const Tracing tracing(target.graph(), *this);
  const Value own = residual(target, norm1_, options_, [&](Value in) { return self_attn_(in, target_mask); });
  const Value both =
      residual(own, norm2_, options_, [&](Value in) { return multihead_attn_(in, memory, memory, memory_mask); });
  return residual(both, norm3_, options_, [&](Value in) { return feed_forward(in, linear1_, linear2_, options_); });
}

Module::Children TransformerDecoderLayer::children() {
  return {{"self_attn", &self_attn_}, {"multihead_attn", &multihead_attn_},
          {"linear1", &linear1_},     {"linear2", &linear2_},
          {"norm1", &norm1_},         {"norm2", &norm2_},
          {"norm3", &norm3_}};
}

TransformerEncoder::TransformerEncoder(std::int64_t count, std::int64_t width, std::int64_t heads,
                                       const TransformerOptions& options, bool final_norm)
    : layers_(layers_of<TransformerEncoderLayer>(count, width, heads, options)) {
  if (final_norm) norm_ = std::make_shared<LayerNorm>(norm_of(width, options));
}

Value TransformerEncoder::forward(Value x) {
  for (const auto& layer : layers_) x = (*layer)(x);
  return norm_ ? (*norm_)(x) : x;
}

Value TransformerEncoder::operator()(Value x, const AttentionMask& mask) {
  const Tracing tracing(x.graph(), *this);
  for (const auto& layer : layers_) x = (*layer)(x, mask);
  return norm_ ? (*norm_)(x) : x;
}

Value TransformerEncoder::operator()(Value x, std::vector<KeyValueCache>& caches) {
  const Tracing tracing(x.graph(), *this);
  CONCORD_CHECK(caches.size() == layers_.size(), ArgumentError,
                "TransformerEncoder: {} layers need a cache each, got {}", layers_.size(), caches.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) x = (*layers_[i])(x, caches[i]);
  return norm_ ? (*norm_)(x) : x;
}

Module::Children TransformerEncoder::children() { return names_of(layers_, norm_); }

std::vector<KeyValueCache> TransformerEncoder::make_caches(std::int64_t batch, std::int64_t longest) const {
  std::vector<KeyValueCache> caches;
  for (const auto& layer : layers_) caches.push_back(layer->make_cache(batch, longest));
  return caches;
}

TransformerDecoder::TransformerDecoder(std::int64_t count, std::int64_t width, std::int64_t heads,
                                       const TransformerOptions& options, bool final_norm)
    : layers_(layers_of<TransformerDecoderLayer>(count, width, heads, options)) {
  if (final_norm) norm_ = std::make_shared<LayerNorm>(norm_of(width, options));
}

Value TransformerDecoder::forward(Value) { refuse_alone("TransformerDecoder"); }

Value TransformerDecoder::operator()(Value target, Value memory, const AttentionMask& target_mask,
                                     const AttentionMask& memory_mask) {
  const Tracing tracing(target.graph(), *this);
  for (const auto& layer : layers_) target = (*layer)(target, memory, target_mask, memory_mask);
  return norm_ ? (*norm_)(target) : target;
}

Module::Children TransformerDecoder::children() { return names_of(layers_, norm_); }

}  // namespace concord::nn
