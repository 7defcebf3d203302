// Attention layers: PyTorch's MultiheadAttention, and attention whose heads share keys and values.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/nn/key_value_cache.hpp"
#include "concord/nn/linear.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/attention.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// What a query may not see.
struct AttentionMask {
  Value mask = {};     // f32, added to the scores: (queries, keys), or (B|1, heads|1, queries|1, keys)
  Value lengths = {};  // i32 (B): keys from this number on are padding
  ops::Causal causal = ops::Causal::none;
};

struct MultiheadAttentionOptions {
  float dropout = 0;  // of the weights, in training
  bool bias = true;
  std::int64_t key_width = 0;    // of the keys that come in; 0: as wide as the layer
  std::int64_t value_width = 0;  // likewise
};

/// x (B, T, width) → (B, T, width): projections, attention of `heads` heads of width / heads values, projection
/// (Vaswani et al., "Attention Is All You Need", 2017). Parameters as in PyTorch: in_proj_weight (3·width, width), or,
/// when keys or values have a width of their own, q_proj_weight, k_proj_weight, v_proj_weight; in_proj_bias; out_proj.
class MultiheadAttention : public Module {
 public:
  /// Throws ArgumentError when `heads` does not divide `width` or a size is below 1.
  MultiheadAttention(std::int64_t width, std::int64_t heads, const MultiheadAttentionOptions& options = {});
  /// Every token attends to every token.
  [[nodiscard]] Value forward(Value x) override { return self_attention(x, {}, nullptr); }
  using Module::operator();
  Value operator()(Value x, const AttentionMask& mask);
  /// x continues the tokens of the cache, which takes up their keys and values; each sees those before it.
  Value operator()(Value x, KeyValueCache& cache);
  /// query (B, T, width), key (B, S, key_width), value (B, S, value_width).
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
  std::optional<float> rotary_base = 10000.F;  // none: no rotary positions
  ops::Causal causal = ops::Causal::first;
  float dropout = 0;
  bool bias = false;
};

/// x (B, T, width) → (B, T, width); heads / key_heads neighbouring heads share keys and values (Ainslie et al., "GQA",
/// 2023). Parameters q_proj, k_proj, v_proj, o_proj, as networks of this kind name them.
class GroupedQueryAttention : public Module {
 public:
  /// Throws ArgumentError when `heads` does not divide `width`, or key_heads not heads.
  GroupedQueryAttention(std::int64_t width, std::int64_t heads, const GroupedQueryAttentionOptions& options = {});
  [[nodiscard]] Value forward(Value x) override { return attend(x, {.causal = options_.causal}, nullptr); }
  using Module::operator();
  /// In place of the causal mask of the options.
  Value operator()(Value x, const AttentionMask& mask);
  /// As MultiheadAttention; positions go on from those of the cache.
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
