// Softmax, log-softmax and the fused cross-entropy with logits.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// Over one axis; `log` gives the logarithm. A NaN or +∞ makes its whole row NaN, and so does a row of −∞ alone.
class Softmax final : public Operator {
 public:
  Softmax(std::size_t axis, bool log) : axis_(axis), log_(log) {}
  [[nodiscard]] std::string_view name() const override { return log_ ? "log_softmax" : "softmax"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] bool log() const { return log_; }

 private:
  std::size_t axis_;
  bool log_;
};

/// diff_dst, dst → diff_src. A row of log-softmax whose diff_dst is 0 has a diff_src of 0, whatever dst is.
class SoftmaxBackward final : public Operator {
 public:
  SoftmaxBackward(std::size_t axis, bool log) : axis_(axis), log_(log) {}
  [[nodiscard]] std::string_view name() const override { return log_ ? "log_softmax_backward" : "softmax_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] std::size_t axis() const { return axis_; }
  [[nodiscard]] bool log() const { return log_; }

 private:
  std::size_t axis_;
  bool log_;
};

/// logits f32 (N, C); target i32 (N), a class index, or f32 (N, C), probabilities → loss (N) = −Σ_c t'_c·log p_c with
/// t' = (1−ε)·t + ε/C, p = softmax(logits). A class index outside [0, C) gives NaN. The gradient of a row
/// whose diff_dst is 0 (an ignored one) is 0, whatever its logits are. For the gradient, which computes p
/// anew from the logits, also each row's largest logit (N) and Σ exp(logit − largest) (N).
class CrossEntropy final : public Operator {
 public:
  explicit CrossEntropy(float label_smoothing) : label_smoothing_(label_smoothing) {}
  [[nodiscard]] std::string_view name() const override { return "cross_entropy"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] float label_smoothing() const { return label_smoothing_; }

 private:
  float label_smoothing_;
};

}  // namespace ops

Value softmax(Value x, std::int64_t axis = -1);
Value log_softmax(Value x, std::int64_t axis = -1);
/// Per-row losses (N); see ops::CrossEntropy. loss::cross_entropy is their mean.
Value cross_entropy_rows(Value logits, Value target, float label_smoothing = 0);

}  // namespace concord
