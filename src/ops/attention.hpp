// Scaled dot-product attention without the matrix of scores: softmax(scale·q·kᵀ + mask)·v by tiles with a running
// softmax, and its gradients, which compute the scores again (Dao et al., "FlashAttention", 2022; "FlashAttention-2",
// 2023). Memory grows with the length, not with its square.
#pragma once

#include <array>
#include <optional>

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// Which keys a query sees. `first`: query t sees keys 0 … t (what PyTorch calls is_causal). `last`: the last query
/// sees the last key, so query t sees keys 0 … t + length − T: queries that continue a cache of keys.
enum class Causal : std::uint8_t { none, first, last };

/// How the vectors of heads lie: (batch, heads, length, width), or (batch, length, heads, width), which is what a
/// projection gives without a transpose.
enum class HeadLayout : std::uint8_t { heads_first, tokens_first };

/// What the operator and its gradients have in common. Their operands end with those that are chosen here: mask f32
/// (B|1, H|1, T|1, S), added to the scores; lengths i32 (B), the keys of a batch that count; state i32 [4] of the
/// random stream, when dropout > 0.
struct AttentionForm {
  float scale = 1;
  Causal causal = Causal::none;
  HeadLayout layout = HeadLayout::heads_first;
  bool mask = false;
  bool lengths = false;
  float dropout = 0;          // probability of a weight to be zero; the others are divided by 1 − dropout
  std::uint32_t purpose = 0;  // of the random stream

  [[nodiscard]] std::string str() const;
  /// The factor of the weights that stay.
  [[nodiscard]] float kept() const { return dropout < 1 ? 1 / (1 - dropout) : 0; }
};

/// q (B, H, T, D), k, v (B, Hkv, S, D), H a multiple of Hkv: head h attends to the keys of head h / (H / Hkv).
/// → dst (B, H, T, D), logsumexp (B, H, T) of the scores, and statistics (2, B, H, T): the largest score of a row (NaN
/// apart) and 1 / Σ exp(score − largest), which the gradients read: the logsumexp of scores of 1e9 has lost the sum.
/// With tokens first q, dst (B, T, H, D), k, v (B, S, Hkv, D), and so their gradients; the mask, logsumexp and
/// statistics are the same.
///
/// A query that sees no key, or only keys whose mask is −∞, gives zeros and a logsumexp of −∞, and gradients of zero.
/// Finite masks hide nothing: a row whose scores are all −1e9 or −3e38 has the weights of its scores, as in PyTorch.
/// What has a weight of 0, because a length, causality, a mask of −∞ or dropout hides it, is not read: it may be NaN or
/// infinite, and its gradient is 0. A length outside [0, S] gives NaN. The weight of query t and key s is dropped where
/// element ((b·H + h)·T + t)·S' + s of the stream is below the probability, with S' = S rounded up to a multiple of 4.
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

/// q, k, v, diff_dst (B, H, T, D), statistics (2, B, H, T), delta (B, H, T) = Σ_d dst·diff_dst − diff_logsumexp, then
/// the operands of the form → diff_q. With tokens first delta is (B, T, H).
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

/// The operands of AttentionBackwardQuery → diff_k and diff_v; the heads that share keys are summed in order.
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

/// The sizes of one of the three operators, as a backend wants them.
struct AttentionSizes {
  std::int64_t batch, heads, key_heads, queries, keys, width;
  HeadLayout layout;
  std::array<std::int64_t, 3> mask_strides{};  // along B, H, T, in elements; 0 where the mask serves all
  /// Where the operands of the form stand; those it lacks have no meaning.
  std::size_t mask = 0, lengths = 0, state = 0;
  /// A row of the random stream.
  [[nodiscard]] std::int64_t drawn_keys() const { return (keys + 3) / 4 * 4; }
  /// From a query's values to the next one's, and from a key's.
  [[nodiscard]] std::int64_t query_pitch() const { return by_tokens() ? heads * width : width; }
  [[nodiscard]] std::int64_t key_pitch() const { return by_tokens() ? key_heads * width : width; }
  /// Where the values of the first query of a head stand, and those of the first key.
  [[nodiscard]] std::int64_t queries_of(std::int64_t b, std::int64_t head) const {
    return (by_tokens() ? b * queries * heads + head : (b * heads + head) * queries) * width;
  }
  [[nodiscard]] std::int64_t keys_of(std::int64_t b, std::int64_t key_head) const {
    return (by_tokens() ? b * keys * key_heads + key_head : (b * key_heads + key_head) * keys) * width;
  }
  /// Where a query's delta stands.
  [[nodiscard]] std::int64_t delta_of(std::int64_t b, std::int64_t head, std::int64_t t) const {
    return by_tokens() ? (b * queries + t) * heads + head : (b * heads + head) * queries + t;
  }
  [[nodiscard]] bool by_tokens() const { return layout == HeadLayout::tokens_first; }
};
/// `first` is the number of operands before those of the form: 3 of Attention, 6 of its gradients.
[[nodiscard]] AttentionSizes attention_sizes(const AttentionForm& form, std::span<const TensorSpec> inputs,
                                             std::size_t first);

}  // namespace ops

struct AttentionOptions {
  Value mask = {};     // f32 (B|1, H|1, T|1, S), added to the scores: −∞ hides a key
  Value lengths = {};  // i32 (B): keys from this number on are hidden
  ops::Causal causal = ops::Causal::none;
  ops::HeadLayout layout = ops::HeadLayout::heads_first;  // of q, k, v and the result
  float dropout = 0;                                      // of the weights, in training alone
  std::optional<float> scale = {};                        // of the scores; 1/√D when not given
};
/// See ops::Attention. Throws NotSupported when a gradient through the mask is asked for.
Value attention(Value q, Value k, Value v, const AttentionOptions& options = {});
/// The same numbers from matmul and softmax: it stores all scores (B, H, T, S), and has a gradient through the mask.
/// In the same place of a graph it drops the same weights as `attention`. A length beyond S counts as S. It multiplies
/// by weights of 0: a value that is not finite reaches the queries that do not see it.
Value attention_reference(Value q, Value k, Value v, const AttentionOptions& options = {});

}  // namespace concord
