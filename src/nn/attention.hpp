// Attention layers: PyTorch's MultiheadAttention, and attention with key heads that several query heads share.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/nn/key_value_cache.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/attention.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// Hides keys from queries.
struct AttentionMask {
  Value mask = {};     // f32, added to the scores: (queries, keys), or (B|1, heads|1, queries|1, keys)
  Value lengths = {};  // i32 (B): number of keys of each sequence; later keys are padding
  ops::Causal causal = ops::Causal::none;
};

struct MultiheadAttentionOptions {
  float dropout = 0;  // of the attention weights, in training
  bool bias = true;
  std::int64_t key_width = 0;    // width of the keys; 0: the width of the layer
  std::int64_t value_width = 0;  // width of the values; 0: the width of the layer
};

/// x (B, T, width) → (B, T, width): projections, attention with `heads` heads of width / heads values each, and a
/// projection of the result (Vaswani et al., "Attention Is All You Need", 2017). Parameters have PyTorch's names:
/// in_proj_weight (3·width, width), or q_proj_weight, k_proj_weight and v_proj_weight if keys or values have another
/// width; in_proj_bias; out_proj.
class MultiheadAttention : public Module {
 public:
  /// Throws ArgumentError if `heads` does not divide `width`, or if a size is below 1.
  MultiheadAttention(std::int64_t width, std::int64_t heads, const MultiheadAttentionOptions& options = {});
  /// Self-attention without a mask: every token attends to every token.
  [[nodiscard]] Value forward(Value x) override { return self_attention(x, {}, nullptr); }
  using Module::operator();
  Value operator()(Value x, const AttentionMask& mask);
  /// Self-attention of x, which continues the tokens in the cache. The cache stores the new keys and values. Each token
  /// attends to itself and to the tokens before it.
  Value operator()(Value x, KeyValueCache& cache);
  /// query (B, T, width), key (B, S, key_width), value (B, S, value_width) → (B, T, width).
  Value operator()(Value query, Value key, Value value, const AttentionMask& mask = {});
  [[nodiscard]] Children children() override { return {{"out_proj", &out_proj_}}; }
  [[nodiscard]] KeyValueCache make_cache(std::int64_t batch, std::int64_t longest) const;

 private:
  Value self_attention(Value x, const AttentionMask& mask, KeyValueCache* cache);
  [[nodiscard]] Value project(Value x, std::int64_t part);

  std::int64_t width_, heads_;
  MultiheadAttentionOptions options_;
  VariablePtr in_proj_weight_, in_proj_bias_;
  std::array<VariablePtr, 3> separate_weights_;
  Linear out_proj_;
};

struct GroupedQueryAttentionOptions {
  std::int64_t key_heads = 0;                  // 0: as many as heads
  std::optional<float> rotary_base = 10000.F;  // empty: no rotary position embedding
  ops::Causal causal = ops::Causal::first;
  float dropout = 0;
  bool bias = false;
};

/// x (B, T, width) → (B, T, width). heads / key_heads neighbouring query heads share one key head and its values
/// (Ainslie et al., "GQA", 2023). Parameters: q_proj, k_proj, v_proj, o_proj.
class GroupedQueryAttention : public Module {
 public:
  /// Throws ArgumentError if `heads` does not divide `width`, or if key_heads does not divide `heads`.
  GroupedQueryAttention(std::int64_t width, std::int64_t heads, const GroupedQueryAttentionOptions& options = {});
  [[nodiscard]] Value forward(Value x) override { return attend(x, {.causal = options_.causal}, nullptr); }
  using Module::operator();
  /// Uses `mask` instead of the causal mask of the options.
  Value operator()(Value x, const AttentionMask& mask);
  /// As MultiheadAttention. Positions continue those of the cache.
  Value operator()(Value x, KeyValueCache& cache);
  [[nodiscard]] Children children() override;
  [[nodiscard]] KeyValueCache make_cache(std::int64_t batch, std::int64_t longest) const;

 private:
  Value attend(Value x, const AttentionMask& mask, KeyValueCache* cache);

  std::int64_t width_, heads_;
  GroupedQueryAttentionOptions options_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
};

}  // namespace nn
}  // namespace concord
