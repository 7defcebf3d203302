// Pooling layers over one to three spatial dimensions: the functions of ops/ as layers with PyTorch's names.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"
#include "concord/ops/pool.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

template <std::size_t Rank>
struct MaxPoolLayerOptions {
  std::optional<Extent<Rank>> stride = {};  // the kernel's size when not given
  Extent<Rank> padding = 0;
  Extent<Rank> dilation = 1;
  bool ceil_mode = false;
};
using MaxPool1dOptions = MaxPoolLayerOptions<1>;
using MaxPool2dOptions = MaxPoolLayerOptions<2>;
using MaxPool3dOptions = MaxPoolLayerOptions<3>;

/// x (N, C, …) → the maximum of each window.
template <std::size_t Rank>
class MaxPool : public Module {
 public:
  explicit MaxPool(Extent<Rank> kernel, const MaxPoolLayerOptions<Rank>& options = {})
      : options_{kernel, options.stride.value_or(kernel), options.padding, options.dilation, options.ceil_mode} {}
  [[nodiscard]] Value forward(Value x) override { return max_pool(x, options_); }
  /// Returns the maxima and their indices, for MaxUnpool (PyTorch's return_indices).
  [[nodiscard]] MaxPooled with_indices(Value x) {
    const Tracing tracing(x.graph(), *this);
    return max_pool_with_indices(x, options_);
  }

 private:
  MaxPoolNdOptions<Rank> options_;
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;

template <std::size_t Rank>
struct AvgPoolLayerOptions {
  std::optional<Extent<Rank>> stride = {};  // the kernel's size when not given
  Extent<Rank> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;      // zeros of the padding count as values
  std::int64_t divisor_override = 0;  // divides sums by this number; 0: by the number of values
};
using AvgPool1dOptions = AvgPoolLayerOptions<1>;
using AvgPool2dOptions = AvgPoolLayerOptions<2>;
using AvgPool3dOptions = AvgPoolLayerOptions<3>;

/// x (N, C, …) → the mean of each window.
template <std::size_t Rank>
class AvgPool : public Module {
 public:
  explicit AvgPool(Extent<Rank> kernel, const AvgPoolLayerOptions<Rank>& options = {})
      : options_{kernel,
                 options.stride.value_or(kernel),
                 options.padding,
                 options.ceil_mode,
                 options.count_include_pad,
                 options.divisor_override} {}
  [[nodiscard]] Value forward(Value x) override { return avg_pool(x, options_); }

 private:
  AvgPoolNdOptions<Rank> options_;
};
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;

template <std::size_t Rank>
struct LPPoolLayerOptions {
  std::optional<Extent<Rank>> stride = {};  // the kernel's size when not given
  bool ceil_mode = false;
};

/// x (N, C, …) → (Σ x^p)^(1/p) of each window.
template <std::size_t Rank>
class LPPool : public Module {
 public:
  LPPool(float p, Extent<Rank> kernel, const LPPoolLayerOptions<Rank>& options = {})
      : p_(p), options_{.kernel = kernel, .stride = options.stride.value_or(kernel), .ceil_mode = options.ceil_mode} {}
  [[nodiscard]] Value forward(Value x) override { return lp_pool(x, p_, options_); }

 private:
  float p_;
  AvgPoolNdOptions<Rank> options_;
};
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;

/// x (N, C, …) → (N, C, size…): divides each spatial dimension into `size` windows and takes the maximum of each.
template <std::size_t Rank>
class AdaptiveMaxPool : public Module {
 public:
  explicit AdaptiveMaxPool(Extent<Rank> size) : size_(size) {}
  [[nodiscard]] Value forward(Value x) override { return adaptive_max_pool(x, size_.sizes()); }
  [[nodiscard]] MaxPooled with_indices(Value x) {
    const Tracing tracing(x.graph(), *this);
    return adaptive_max_pool_with_indices(x, size_.sizes());
  }

 private:
  Extent<Rank> size_;
};
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;

/// x (N, C, …) → (N, C, size…): divides each spatial dimension into `size` windows and takes the mean of each.
template <std::size_t Rank>
class AdaptiveAvgPool : public Module {
 public:
  explicit AdaptiveAvgPool(Extent<Rank> size) : size_(size) {}
  [[nodiscard]] Value forward(Value x) override { return adaptive_avg_pool(x, size_.sizes()); }

 private:
  Extent<Rank> size_;
};
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

/// x (N, C, …) → (N, C, 1…): the mean of each channel (adaptive pooling to size 1).
class GlobalAvgPool : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return global_avg_pool(x); }
};

/// x (N, C, …) → (N, C, 1…): the maximum of each channel.
class GlobalMaxPool : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return global_max_pool(x); }
};

/// x (N, C, H, W) → (N, C, 1, 1): the mean of each channel.
class GlobalAvgPool2d : public Module {
 public:
  [[nodiscard]] Value forward(Value x) override { return global_avg_pool2d(x); }
};

template <std::size_t Rank>
struct MaxUnpoolLayerOptions {
  std::optional<Extent<Rank>> stride = {};  // the kernel's size when not given
  Extent<Rank> padding = 0;
};

/// The inverse of MaxPool with the same kernel, stride and padding. It takes values and indices, so it is not a Module.
template <std::size_t Rank>
class MaxUnpool {
 public:
  explicit MaxUnpool(Extent<Rank> kernel, const MaxUnpoolLayerOptions<Rank>& options = {})
      : kernel_(kernel), stride_(options.stride.value_or(kernel)), padding_(options.padding) {}
  /// Unpools to the smallest size that MaxPool reduces to the size of `pooled`.
  [[nodiscard]] Value operator()(const MaxPooled& pooled) const {
    typename Extent<Rank>::Sizes sizes;
    for (std::size_t i = 0; i < Rank; ++i) {
      const std::int64_t size = pooled.values.shape()[static_cast<std::int64_t>(i + 2)];
      sizes[i] = (size - 1) * stride_[i] - 2 * padding_[i] + kernel_[i];
    }
    return max_unpool(pooled.values, pooled.indices, sizes);
  }
  /// Unpools to a given size (PyTorch's output_size).
  [[nodiscard]] Value operator()(const MaxPooled& pooled, const Extent<Rank>& size) const {
    return max_unpool(pooled.values, pooled.indices, size.sizes());
  }

 private:
  Extent<Rank> kernel_, stride_, padding_;
};
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;

}  // namespace nn
}  // namespace concord
