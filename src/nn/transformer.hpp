// Transformer encoder and decoder (Vaswani et al., "Attention Is All You Need", 2017) with PyTorch's definitions and
// names. Values are (batch, tokens, width).
#pragma once

#include <functional>
#include <memory>

#include "concord/core/export.hpp"
#include "concord/nn/attention.hpp"
#include "concord/nn/layer_norm.hpp"
#include "concord/nn/linear.hpp"
#include "concord/ops/pointwise.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct TransformerOptions {
  std::int64_t feed_forward = 2048;  // width between the two linear layers
  float dropout = 0.1F;              // of attention weights, after the activation and after each branch
  std::function<Value(Value)> activation = [](Value x) { return relu(x); };
  float epsilon = 1e-5F;    // of the normalisations
  bool norm_first = false;  // normalises the input of each branch, else the sum after it
  bool bias = true;         // of linear layers and normalisations
};

/// Self-attention and a feed-forward network, each with a residual connection. Children: self_attn, linear1, linear2,
/// norm1, norm2.
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(std::int64_t width, std::int64_t heads, const TransformerOptions& options = {});
  [[nodiscard]] Value forward(Value x) override { return layer(x, {}, nullptr); }
  using Module::operator();
  Value operator()(Value x, const AttentionMask& mask);
  /// As MultiheadAttention: x continues the tokens of the cache.
  Value operator()(Value x, KeyValueCache& cache);
  [[nodiscard]] Children children() override;
  [[nodiscard]] KeyValueCache make_cache(std::int64_t batch, std::int64_t longest) const {
    return self_attn_.make_cache(batch, longest);
  }

 private:
  Value layer(Value x, const AttentionMask& mask, KeyValueCache* cache);

  TransformerOptions options_;
  MultiheadAttention self_attn_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_;
};

/// Self-attention, attention to the memory and a feed-forward network. Children: self_attn, multihead_attn, linear1,
/// linear2, norm1, norm2, norm3. Call it with target and memory; `forward` throws ArgumentError.
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(std::int64_t width, std::int64_t heads, const TransformerOptions& options = {});
  [[nodiscard]] Value forward(Value target) override;
  using Module::operator();
  /// target (B, T, width), memory (B, S, width).
  Value operator()(Value target, Value memory, const AttentionMask& target_mask = {},
                   const AttentionMask& memory_mask = {});
  [[nodiscard]] Children children() override;

 private:
  TransformerOptions options_;
  MultiheadAttention self_attn_, multihead_attn_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_, norm3_;
};

/// `count` layers "layers.0", "layers.1", … with separate weights. `final_norm` adds a normalisation "norm" at the end.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(std::int64_t count, std::int64_t width, std::int64_t heads, const TransformerOptions& options = {},
                     bool final_norm = false);
  [[nodiscard]] Value forward(Value x) override;
  using Module::operator();
  Value operator()(Value x, const AttentionMask& mask);
  /// Takes one cache for each layer.
  Value operator()(Value x, std::vector<KeyValueCache>& caches);
  [[nodiscard]] Children children() override;
  [[nodiscard]] std::vector<KeyValueCache> make_caches(std::int64_t batch, std::int64_t longest) const;

 private:
  std::vector<std::shared_ptr<TransformerEncoderLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

/// As TransformerEncoder, with decoder layers.
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(std::int64_t count, std::int64_t width, std::int64_t heads, const TransformerOptions& options = {},
                     bool final_norm = false);
  [[nodiscard]] Value forward(Value target) override;
  using Module::operator();
  Value operator()(Value target, Value memory, const AttentionMask& target_mask = {},
                   const AttentionMask& memory_mask = {});
  [[nodiscard]] Children children() override;

 private:
  std::vector<std::shared_ptr<TransformerDecoderLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace nn
}  // namespace concord
