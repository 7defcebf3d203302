// Softmax, log-softmax and the fused cross-entropy with logits.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// Softmax over one axis; with `log` its logarithm. A row with a NaN or +∞, or with only −∞, gives NaN.
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

/// diff_dst, dst → diff_src. With `log`, a row whose diff_dst is 0 gives a diff_src of 0, even if dst is not finite.
class SoftmaxBackward final : public Operator {
 public:
  SoftmaxBackward(std::size_t axis, bool log) : axis_(axis), log_(log) {}
  [[nodiscard]] std::string_view name() const override { return log_ ? "log_softmax_backward" : "softmax_backward"; }
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

/// Inputs: logits f32 (N, C); target i32 (N) class indices, or f32 (N, C) probabilities. Outputs: loss (N) = −Σ_c
/// t'_c·log p_c with t' = (1−ε)·t + ε/C and p = softmax(logits); and for the gradient, which computes p again, the
/// largest logit (N) and Σ exp(logit − largest) (N) of each row. A class index outside [0, C) gives NaN. The gradient
/// of a row whose diff_dst is 0 (an ignored row) is 0, even if its logits are not finite.
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

/// exp(x) over its sum along `axis`.
Value softmax(Value x, std::int64_t axis = -1);
/// log(softmax(x)), without overflow and without log(0).
Value log_softmax(Value x, std::int64_t axis = -1);
/// The loss of each row, (N); see ops::CrossEntropy. loss::cross_entropy is their mean.
Value cross_entropy_rows(Value logits, Value target, float label_smoothing = 0);

}  // namespace concord
