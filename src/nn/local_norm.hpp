// Local response and local contrast normalisation: they normalise a value by its neighbourhood and have no parameters.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct LocalResponseNormOptions {
  enum class Region : std::uint8_t {
    across_channels,  // `size` neighbouring channels, as in PyTorch and AlexNet
    within_channel,   // a window of size x size in the same channel, as Caffe's WITHIN_CHANNEL
  };
  float alpha = 1e-4F;
  float beta = 0.75F;
  float k = 1;
  Region region = Region::across_channels;
};

/// x/(k + alpha·mean of x² over the region)^beta. Values outside the image or the channels count as 0 (Krizhevsky et
/// al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012). Across channels, x is (N, C, …);
/// within a channel, x is (N, C, H, W).
class LocalResponseNorm : public Module {
 public:
  /// Throws ArgumentError for a size below 1. Region::within_channel needs an odd size.
  explicit LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;

 private:
  std::int64_t size_;
  LocalResponseNormOptions options_;
};

struct LocalContrastNormOptions {
  std::int64_t window = 9;  // odd
  double deviation = 0;     // standard deviation of the Gaussian window; 0: a quarter of `window`
  bool subtractive = true;
  bool divisive = true;
};

/// x (N, C, H, W) → the same shape. Subtractive: v = x − the mean of x over all channels and a Gaussian window.
/// Divisive: v/max(c, σ), where σ² is the mean of v² over the same window and c is the mean of σ over the image.
/// Windows are cut at the borders of the image. Jarrett et al., "What is the Best Multi-Stage Architecture for Object
/// Recognition?", 2009.
class LocalContrastNorm : public Module {
 public:
  /// Throws ArgumentError for an even window or a negative deviation.
  explicit LocalContrastNorm(const LocalContrastNormOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;

 private:
  LocalContrastNormOptions options_;
};

}  // namespace nn
}  // namespace concord
