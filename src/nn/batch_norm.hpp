// BatchNorm2d: batch normalisation with running statistics for evaluation.
#pragma once

#include "concord/nn/module.hpp"

namespace concord::nn {

struct BatchNorm2dOptions {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // weight of the newest batch in the running statistics
  bool affine = true;     // with weight and bias
};

/// x (N, C, H, W), N·H·W > 1 in training. Training normalises by the batch's statistics and moves running_mean and
/// running_var (unbiased, as PyTorch keeps it); evaluation normalises by these. weight, bias, running_* are (C).
class BatchNorm2d : public Module {
 public:
  /// Throws ArgumentError for channels below 1.
  explicit BatchNorm2d(std::int64_t channels, const BatchNorm2dOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }
  [[nodiscard]] const VariablePtr& running_mean() const { return running_mean_; }
  [[nodiscard]] const VariablePtr& running_var() const { return running_var_; }

 private:
  Value train(Value x, Value scale, Value shift);
  Value evaluate(Value x, Value scale, Value shift);

  std::int64_t channels_;
  BatchNorm2dOptions options_;
  VariablePtr weight_, bias_, running_mean_, running_var_;
};

}  // namespace concord::nn
