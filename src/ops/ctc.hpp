// Ctc: connectionist temporal classification (Graves et al., 2006).
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// log_probabilities f32 (T, N, C); targets i32 (N, S), of which the first target_lengths are used; input_lengths and
/// target_lengths i32 (N) → loss (N) = −log p(target), and (T, N, C) the probability that a path which gives the target
/// is at class c at time t, which is −d loss/d log_probabilities; 0 after the input's end, always. A target that no
/// path of the input's length gives has an infinite loss and, up to the input's end, NaN occupancy, or 0 and 0 with
/// `zero_infinity`; so PyTorch. A length that is negative or beyond T or S, a label outside [0, C) or equal to `blank`,
/// or a log-probability of NaN on a path gives NaN for its sample. Nothing after the input's or the target's end is
/// read.
class Ctc final : public Operator {
 public:
  Ctc(std::int32_t blank, bool zero_infinity) : blank_(blank), zero_infinity_(zero_infinity) {}
  [[nodiscard]] std::string_view name() const override { return "ctc"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::int32_t blank() const { return blank_; }
  [[nodiscard]] bool zero_infinity() const { return zero_infinity_; }

 private:
  std::int32_t blank_;
  bool zero_infinity_;
};

}  // namespace ops

/// Losses of the samples (N); see ops::Ctc. loss::Ctc takes logits and reduces.
Value ctc(Value log_probabilities, Value targets, Value input_lengths, Value target_lengths, std::int32_t blank = 0,
          bool zero_infinity = false);

}  // namespace concord
