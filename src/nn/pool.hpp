// Pooling layers.
#pragma once

#include <optional>

#include "concord/nn/module.hpp"
#include "concord/ops/pool.hpp"

namespace concord::nn {

struct MaxPool2dOptions {
  std::optional<Pair> stride;  // the kernel's size when not given
  Pair padding = 0;
  bool ceil_mode = false;
};

/// x (N, C, H, W) → the largest value of each window.
class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(Pair kernel, const MaxPool2dOptions& options = {})
      : options_{kernel, options.stride.value_or(kernel), options.padding, options.ceil_mode} {}
  [[nodiscard]] Value forward(Value x) override { return max_pool2d(x, options_); }

 private:
  Pool2dOptions options_;
};

struct AvgPool2dOptions {
  std::optional<Pair> stride;  // the kernel's size when not given
  Pair padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // zeros of the padding count as values
};

/// x (N, C, H, W) → the mean of each window.
class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(Pair kernel, const AvgPool2dOptions& options = {})
      : options_{kernel, options.stride.value_or(kernel), options.padding, options.ceil_mode,
                 options.count_include_pad} {}
  [[nodiscard]] Value forward(Value x) override { return avg_pool2d(x, options_); }

 private:
  Pool2dOptions options_;
};

/// x (N, C, H, W) → (N, C, 1, 1), the mean of each channel; PyTorch's AdaptiveAvgPool2d(1).
class GlobalAvgPool2d : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return global_avg_pool2d(x); }
};

}  // namespace concord::nn
