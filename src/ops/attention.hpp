// Scaled dot-product attention, softmax(scale·q·kᵀ + mask)·v, without storing the matrix of scores: it works on tiles
// with a running softmax. Its gradients compute the scores again (Dao et al., "FlashAttention", 2022;
// "FlashAttention-2", 2023). Memory is linear in the length, not quadratic.
#pragma once

#include <array>
#include <optional>

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// Which keys a query sees. `first`: query t sees keys 0 … t (PyTorch's is_causal). `last`: the last query sees the
/// last key, so query t sees keys 0 … t + length − T; for queries that continue a cache of keys.
enum class Causal : std::uint8_t { none, first, last };

/// The axes of queries, keys and values: (batch, heads, length, width), or (batch, length, heads, width), the result of
/// a projection without a transpose.
enum class HeadLayout : std::uint8_t { heads_first, tokens_first };

/// The parameters of attention and of its gradients. Optional operands come last, in this order: mask f32 (B|1, H|1,
/// T|1, S), added to the scores; lengths i32 (B), the number of keys of each sequence; state i32 [4] of the random
/// stream, if dropout > 0.
struct AttentionForm {
  float scale = 1;
  Causal causal = Causal::none;
  HeadLayout layout = HeadLayout::heads_first;
  bool mask = false;
  bool lengths = false;
  float dropout = 0;          // probability that a weight becomes 0
  std::uint32_t purpose = 0;  // stream number for dropout

  [[nodiscard]] std::string str() const;
  /// Of 65536 weights, how many dropout keeps on average: 65536·(1 − dropout), rounded; between 1 and 65535 for a
  /// probability between 0 and 1.
  [[nodiscard]] std::uint32_t keep() const;
  /// The factor of the weights that dropout keeps, 65536 / keep(), so that the expectation of a weight does not change;
  /// 0 where it keeps none.
  [[nodiscard]] float kept() const;
};

/// Inputs: q (B, H, T, D), k and v (B, Hkv, S, D), where H is a multiple of Hkv. Head h attends to the keys of key head
/// h / (H / Hkv).
/// Outputs: dst (B, H, T, D); logsumexp (B, H, T) of the scores; statistics (2, B, H, T), the largest score of a row
/// (ignoring NaN) and 1 / Σ exp(score − largest). The gradients read the statistics, because the logsumexp of scores
/// near 1e9 has lost the sum.
/// With HeadLayout::tokens_first, q and dst are (B, T, H, D), k and v (B, S, Hkv, D), and their gradients likewise. The
/// mask, logsumexp and statistics do not change.
///
/// A query that sees no key, or only keys with a mask of −∞, gives zeros, a logsumexp of −∞ and gradients of 0. A
/// finite mask hides nothing: a row of scores that are all −1e9 or −3e38 has the weights of its scores, as in PyTorch.
/// A key with weight 0 because of a length, causality, a mask of −∞ or dropout is not read: its value may be NaN or
/// infinite, and its gradient is 0. A length outside [0, S] gives NaN.
/// Dropout removes the same weights on every device, forward and backward. Its probability is rounded to a multiple of
/// 1/65536, and the other weights are multiplied by the inverse of what remains. Each weight has 16 bits of
/// Philox4x32-7; cl_kernels/shared/attention_dropout.h says which.
class Attention final : public Operator {
 public:
  explicit Attention(const AttentionForm& form) : form_(form) {}
  [[nodiscard]] std::string_view name() const override { return "attention"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override { return form_.str(); }
  [[nodiscard]] const AttentionForm& form() const { return form_; }

 private:
  AttentionForm form_;
};

/// Inputs: q, k, v, diff_dst (B, H, T, D), statistics (2, B, H, T), delta (B, H, T) = Σ_d dst·diff_dst −
/// diff_logsumexp, then the optional operands of the form. Output: diff_q. With HeadLayout::tokens_first, delta is (B,
/// T, H).
class AttentionBackwardQuery final : public Operator {
 public:
  explicit AttentionBackwardQuery(const AttentionForm& form) : form_(form) {}
  [[nodiscard]] std::string_view name() const override { return "attention_backward_query"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override { return form_.str(); }
  [[nodiscard]] const AttentionForm& form() const { return form_; }

 private:
  AttentionForm form_;
};

/// Inputs: those of AttentionBackwardQuery. Outputs: diff_k and diff_v, summed over the heads that share a key head, in
/// their order.
class AttentionBackwardKeyValue final : public Operator {
 public:
  explicit AttentionBackwardKeyValue(const AttentionForm& form) : form_(form) {}
  [[nodiscard]] std::string_view name() const override { return "attention_backward_key_value"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override { return form_.str(); }
  [[nodiscard]] const AttentionForm& form() const { return form_; }

 private:
  AttentionForm form_;
};

/// The sizes of one of the three operators, for backends.
struct AttentionSizes {
  std::int64_t batch, heads, key_heads, queries, keys, width;
  HeadLayout layout;
  std::array<std::int64_t, 3> mask_strides{};  // along B, H, T, in elements; 0 for a broadcast axis
  /// The indices of the optional operands. The index of an absent operand is undefined.
  std::size_t mask = 0, lengths = 0, state = 0;
  /// The distance between the vectors of two neighbouring queries, and of two neighbouring keys, in elements.
  [[nodiscard]] std::int64_t query_pitch() const { return by_tokens() ? heads * width : width; }
  [[nodiscard]] std::int64_t key_pitch() const { return by_tokens() ? key_heads * width : width; }
  /// The offset of the first query of a head, and of the first key of a key head, in elements.
  [[nodiscard]] std::int64_t queries_of(std::int64_t b, std::int64_t head) const {
    return (by_tokens() ? b * queries * heads + head : (b * heads + head) * queries) * width;
  }
  [[nodiscard]] std::int64_t keys_of(std::int64_t b, std::int64_t key_head) const {
    return (by_tokens() ? b * keys * key_heads + key_head : (b * key_heads + key_head) * keys) * width;
  }
  /// The offset of the delta of a query.
  [[nodiscard]] std::int64_t delta_of(std::int64_t b, std::int64_t head, std::int64_t t) const {
    return by_tokens() ? (b * queries + t) * heads + head : (b * heads + head) * queries + t;
  }
  [[nodiscard]] bool by_tokens() const { return layout == HeadLayout::tokens_first; }
};
/// `first` is the number of operands before the optional ones: 3 for Attention, 6 for its gradients.
[[nodiscard]] AttentionSizes attention_sizes(const AttentionForm& form, std::span<const TensorSpec> inputs,
                                             std::size_t first);

}  // namespace ops

struct AttentionOptions {
  Value mask = {};     // f32 (B|1, H|1, T|1, S), added to the scores; −∞ hides a key
  Value lengths = {};  // i32 (B): number of keys of each sequence; later keys are hidden
  ops::Causal causal = ops::Causal::none;
  ops::HeadLayout layout = ops::HeadLayout::heads_first;  // of q, k, v and the result
  float dropout = 0;                                      // of the attention weights, only in training
  std::optional<float> scale = {};                        // of the scores; empty: 1/√D
};
/// Returns dst of ops::Attention. Throws NotSupported if a gradient through the mask is needed.
Value attention(Value q, Value k, Value v, const AttentionOptions& options = {});
/// Computes attention with matmul and softmax. It stores all scores (B, H, T, S) and has a gradient through the mask.
/// At the same place of a graph, its dropout removes the same weights as that of `attention`. A length above S counts
/// as S. It multiplies by weights of 0, so a NaN or infinite value also reaches queries that do not see it.
Value attention_reference(Value q, Value k, Value v, const AttentionOptions& options = {});

}  // namespace concord
