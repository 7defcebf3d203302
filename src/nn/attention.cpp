// The attention layers: projections around the operator.
#include "concord/nn/attention.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/nn/positions.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {
namespace {

void require_width(const char* layer, const char* role, Value x, std::int64_t width) {
  CONCORD_CHECK(x.shape().rank() == 3 && x.shape()[2] == width, ShapeError,
                "{}: {} must be [batch, tokens, {}], got {}", x.graph().scoped(layer, '/'), role, width,
                x.shape().str());
}

/// A mask (queries, keys) applies to all batches and heads.
AttentionOptions options_of(const AttentionMask& mask, float dropout) {
  AttentionOptions options{.mask = mask.mask, .lengths = mask.lengths, .causal = mask.causal, .dropout = dropout};
  if (mask.mask && mask.mask.shape().rank() == 2) {
    options.mask = reshape(mask.mask, Shape{1, 1, mask.mask.shape()[0], mask.mask.shape()[1]});
  }
  return options;
}

/// (B, T, heads·D) → (B, T, heads, D)
Value split_heads(Value x, std::int64_t heads) {
  const Shape& shape = x.shape();
  return reshape(x, Shape{shape[0], shape[1], heads, shape[2] / heads});
}

/// (B, T, heads, D) → (B, heads, T, D), and back.
Value swap_heads(Value x) { return transpose(x, {0, 2, 1, 3}); }

/// (B, T, heads, D) → (B, T, heads·D)
Value join_heads(Value x) {
  const Shape shape = x.shape();
  return reshape(x, Shape{shape[0], shape[1], shape[2] * shape[3]});
}

/// q, k, v (B, T, heads, D) → (B, T, heads·D)
Value attend_tokens(Value q, Value k, Value v, AttentionOptions options) {
  options.layout = ops::HeadLayout::tokens_first;
  const OwnRandomNumbers own(q.graph());
  return join_heads(attention(q, k, v, options));
}

/// q, k, v (B, heads, T, D), as caches and rotary embeddings have them → (B, T, heads·D)
Value attend_heads(Value q, Value k, Value v, const AttentionOptions& options) {
  const OwnRandomNumbers own(q.graph());
  return join_heads(swap_heads(attention(q, k, v, options)));
}

std::int64_t checked_width(const char* layer, std::int64_t width, std::int64_t heads) {
  CONCORD_CHECK(width > 0 && heads > 0 && width % heads == 0, ArgumentError, "{}: {} heads do not divide a width of {}",
                layer, heads, width);
  return width;
}

/// The width of all key heads together.
std::int64_t key_width(std::int64_t width, std::int64_t heads, std::int64_t key_heads) {
  const char* const layer = "GroupedQueryAttention";
  checked_width(layer, width, heads);
  CONCORD_CHECK(key_heads >= 0 && heads % (key_heads == 0 ? heads : key_heads) == 0, ArgumentError,
                "{}: {} key heads do not divide {} heads", layer, key_heads, heads);
  return key_heads == 0 ? width : width / heads * key_heads;
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t heads, const MultiheadAttentionOptions& options)
    : width_(checked_width("MultiheadAttention", width, heads)),
      heads_(heads),
      options_(options),
      out_proj_(width, width, {.bias = options.bias}) {
  CONCORD_CHECK(options.key_width >= 0 && options.value_width >= 0, ArgumentError,
                "MultiheadAttention: the widths of keys and values must be positive, got {} and {}", options.key_width,
                options.value_width);
  if (options_.key_width == 0) options_.key_width = width;
  if (options_.value_width == 0) options_.value_width = width;
  if (options_.key_width == width && options_.value_width == width) {
    const Shape shape{3 * width, width};
    in_proj_weight_ = make_parameter(shape, init::xavier_uniform(shape));
  } else {
    const std::array<std::int64_t, 3> widths{width, options_.key_width, options_.value_width};
    for (std::size_t i = 0; i < 3; ++i) {
      const Shape shape{width, widths[i]};
      separate_weights_[i] = make_parameter(shape, init::xavier_uniform(shape));
    }
  }
  if (options.bias) {
    in_proj_bias_ = make_parameter(Shape{3 * width}, init::constant(0));
    out_proj_.bias()->init = init::constant(0);
  }
}

/// The query (part 0), key or value of x, (B, T, heads, D), with the heads of this device.
Value MultiheadAttention::project(Value x, std::int64_t part) {
  constexpr std::array<const char*, 3> kNames{"q_proj_weight", "k_proj_weight", "v_proj_weight"};
  constexpr std::array<const char*, 3> kRoles{"query", "key", "value"};
  Graph& graph = x.graph();
  const auto index = static_cast<std::size_t>(part);
  const std::int64_t heads = own_heads(graph, heads_), own = width_ / heads_ * heads, begin = part * own,
                     end = begin + own;
  require_width("MultiheadAttention", kRoles[index], x,
                std::array{width_, options_.key_width, options_.value_width}[index]);
  const Shard shard = shard_of_columns(graph, Division::tensor, 3 * width_, 3);
  const Value weight = in_proj_weight_
                           ? slice(parameter_part(graph, in_proj_weight_, "in_proj_weight", shard), 0, begin, end)
                           : parameter_part(graph, separate_weights_[index], kNames[index],
                                            shard_of_columns(graph, Division::tensor, width_));
  const Value product = matmul(x, weight, false, true);
  if (!in_proj_bias_) return split_heads(product, heads);
  return split_heads(product + slice(parameter_part(graph, in_proj_bias_, "in_proj_bias", shard), 0, begin, end),
                     heads);
}

Value MultiheadAttention::self_attention(Value x, const AttentionMask& mask, KeyValueCache* cache) {
  Graph& graph = x.graph();
  std::array<Value, 3> parts;
  if (in_proj_weight_) {
    // One product for all three.
    require_width("MultiheadAttention", "x", x, width_);
    const std::int64_t heads = own_heads(graph, heads_), own = width_ / heads_ * heads;
    const Shard shard = shard_of_columns(graph, Division::tensor, 3 * width_, 3);
    Value product = matmul(x, parameter_part(graph, in_proj_weight_, "in_proj_weight", shard), false, true);
    if (in_proj_bias_) product = product + parameter_part(graph, in_proj_bias_, "in_proj_bias", shard);
    for (std::int64_t i = 0; i < 3; ++i) {
      parts[static_cast<std::size_t>(i)] = split_heads(slice(product, 2, i * own, (i + 1) * own), heads);
    }
  } else {
    for (std::int64_t i = 0; i < 3; ++i) parts[static_cast<std::size_t>(i)] = project(x, i);
  }
  if (cache == nullptr) {
    return out_proj_.row_parallel(attend_tokens(parts[0], parts[1], parts[2], options_of(mask, options_.dropout)));
  }
  const KeyValueCache::Extended all = cache->extend(swap_heads(parts[1]), swap_heads(parts[2]));
  const AttentionMask seen{.lengths = all.lengths, .causal = ops::Causal::last};
  return out_proj_.row_parallel(
      attend_heads(swap_heads(parts[0]), all.keys, all.values, options_of(seen, options_.dropout)));
}

Value MultiheadAttention::operator()(Value x, const AttentionMask& mask) {
  const Tracing tracing(x.graph(), *this);
  return self_attention(x, mask, nullptr);
}

Value MultiheadAttention::operator()(Value x, KeyValueCache& cache) {
  const Tracing tracing(x.graph(), *this);
  return self_attention(x, {}, &cache);
}

Value MultiheadAttention::operator()(Value query, Value key, Value value, const AttentionMask& mask) {
  const Tracing tracing(query.graph(), *this);
  return out_proj_.row_parallel(
      attend_tokens(project(query, 0), project(key, 1), project(value, 2), options_of(mask, options_.dropout)));
}

KeyValueCache MultiheadAttention::make_cache(std::int64_t batch, std::int64_t longest) const {
  return {batch, heads_, longest, width_ / heads_};
}

GroupedQueryAttention::GroupedQueryAttention(std::int64_t width, std::int64_t heads,
                                             const GroupedQueryAttentionOptions& options)
    : width_(width),
      heads_(heads),
      options_(options),
      q_proj_(checked_width("GroupedQueryAttention", width, heads), width, {.bias = options.bias}),
      k_proj_(width, key_width(width, heads, options.key_heads), {.bias = options.bias}),
      v_proj_(width, key_width(width, heads, options.key_heads), {.bias = options.bias}),
      o_proj_(width, width, {.bias = options.bias}) {
  if (options_.key_heads == 0) options_.key_heads = heads;
}

Value GroupedQueryAttention::attend(Value x, const AttentionMask& mask, KeyValueCache* cache) {
  require_width("GroupedQueryAttention", "x", x, width_);
  Graph& graph = x.graph();
  const std::int64_t key_heads = own_heads(graph, options_.key_heads);
  Value q = split_heads(q_proj_.column_parallel(x), own_heads(graph, heads_));
  Value k = split_heads(k_proj_.column_parallel(x), key_heads);
  Value v = split_heads(v_proj_.column_parallel(x), key_heads);
  if (!options_.rotary_base && cache == nullptr) {
    return o_proj_.row_parallel(attend_tokens(q, k, v, options_of(mask, options_.dropout)));
  }
  q = swap_heads(q);
  k = swap_heads(k);
  v = swap_heads(v);
  AttentionMask seen = mask;
  if (options_.rotary_base) {
    const RotaryOptions turn{.base = *options_.rotary_base,
                             .offset = cache != nullptr ? cache->position(x.graph()) : Value()};
    q = rotary(q, turn);
    k = rotary(k, turn);
  }
  if (cache != nullptr) {
    const KeyValueCache::Extended all = cache->extend(k, v);
    k = all.keys;
    v = all.values;
    seen = {.lengths = all.lengths, .causal = ops::Causal::last};
  }
  return o_proj_.row_parallel(attend_heads(q, k, v, options_of(seen, options_.dropout)));
}

Value GroupedQueryAttention::operator()(Value x, const AttentionMask& mask) {
  const Tracing tracing(x.graph(), *this);
  return attend(x, mask, nullptr);
}

Value GroupedQueryAttention::operator()(Value x, KeyValueCache& cache) {
  const Tracing tracing(x.graph(), *this);
  return attend(x, {}, &cache);
}

Module::Children GroupedQueryAttention::children() {
  return {{"q_proj", &q_proj_}, {"k_proj", &k_proj_}, {"v_proj", &v_proj_}, {"o_proj", &o_proj_}};
}

KeyValueCache GroupedQueryAttention::make_cache(std::int64_t batch, std::int64_t longest) const {
  return {batch, options_.key_heads, longest, width_ / heads_};
}

}  // namespace concord::nn
