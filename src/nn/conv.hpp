// Conv2d: the two-dimensional convolution layer.
#pragma once

#include "concord/nn/module.hpp"

namespace concord::nn {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;  // zeros on both sides
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

/// x (N, in, H, W) → (N, out, oH, oW); weight (out, in/groups, kH, kW), bias (out).
class Conv2d : public Module {
 public:
  /// Throws ArgumentError for sizes below 1 or groups that do not divide both channel numbers.
  Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  /// Null without bias.
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }

 private:
  std::int64_t in_;
  Conv2dOptions options_;
  VariablePtr weight_, bias_;
};

}  // namespace concord::nn
