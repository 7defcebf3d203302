// Ctc: connectionist temporal classification (Graves et al., 2006).
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// Inputs: log_probabilities f32 (T, N, C); targets i32 (N, S), of which the first target_lengths[n] are used;
/// input_lengths and target_lengths i32 (N).
/// Outputs: loss (N) = −log p(target); occupancy (T, N, C), the probability that a path for the target is at class c at
/// time t. It equals −d loss/d log_probabilities, and is 0 after the end of an input.
/// If no path of the input's length gives the target, the loss is infinite and the occupancy is NaN up to the input's
/// end; with `zero_infinity` both are 0, as in PyTorch. A sample is NaN if a length is negative or above T or S, if a
/// label is outside [0, C) or equal to `blank`, or if a log-probability on a path is NaN. Values after the end of an
/// input or a target are not read.
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

/// Returns the losses (N) of ops::Ctc. loss::Ctc takes logits and reduces the losses.
Value ctc(Value log_probabilities, Value targets, Value input_lengths, Value target_lengths, std::int32_t blank = 0,
          bool zero_infinity = false);

}  // namespace concord
