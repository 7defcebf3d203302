// Batch normalisation with the statistics of the batch (Ioffe and Szegedy, "Batch Normalization", 2015). nn::BatchNorm
// writes the form with running statistics as a pointwise operator.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// src (N, C, …), scale (C), shift (C) → dst, mean (C), variance (C). The variance is biased: divided by the number of
/// values per channel.
class BatchNorm final : public Operator {
 public:
  explicit BatchNorm(float epsilon) : epsilon_(epsilon) {}
  [[nodiscard]] std::string_view name() const override { return "batch_norm"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] float epsilon() const { return epsilon_; }

 private:
  float epsilon_;
};

/// src, diff_dst, scale, mean, variance → diff_src, diff_scale, diff_shift.
class BatchNormBackward final : public Operator {
 public:
  explicit BatchNormBackward(float epsilon) : epsilon_(epsilon) {}
  [[nodiscard]] std::string_view name() const override { return "batch_norm_backward"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                            const std::vector<bool>& wanted) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] float epsilon() const { return epsilon_; }

 private:
  float epsilon_;
};

}  // namespace ops

struct BatchNormResult {
  Value dst, mean, variance;
};
/// x (N, C, …) with at least two values per channel.
BatchNormResult batch_norm(Value x, Value scale, Value shift, float epsilon = 1e-5F);

}  // namespace concord
