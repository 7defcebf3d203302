// Group and instance normalisation: they normalise each sample by its own statistics.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/channel_norm.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct GroupNormOptions {
  float epsilon = 1e-5F;
  bool affine = true;
};

/// x (N, C, …) → the same shape. Divides the channels into `groups` groups of neighbours and normalises each group of
/// each sample (Wu and He, "Group Normalization", 2018). weight and bias are (C).
class GroupNorm : public ChannelNorm {
 public:
  /// Throws ArgumentError if `groups` does not divide `channels`.
  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {});
  [[nodiscard]] Value forward(Value x) override;

 private:
  std::int64_t groups_;
};

struct InstanceNormOptions {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // weight of the newest batch in the running statistics
  bool affine = false;
  /// Training updates running statistics with the mean over the samples; evaluation normalises by them.
  bool track_running_stats = false;
};

/// x (N, C, …) → the same shape. Normalises each channel of each sample (Ulyanov et al., "Instance Normalization",
/// 2016).
class InstanceNorm : public ChannelNorm {
 public:
  [[nodiscard]] Value forward(Value x) override;

 protected:
  InstanceNorm(const char* name, std::int64_t channels, const InstanceNormOptions& options, std::size_t rank);

 private:
  InstanceNormOptions options_;
  std::size_t rank_;
};

/// x (N, C, L).
class InstanceNorm1d : public InstanceNorm {
 public:
  explicit InstanceNorm1d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm1d", channels, options, 3) {}
};

/// x (N, C, H, W).
class InstanceNorm2d : public InstanceNorm {
 public:
  explicit InstanceNorm2d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm2d", channels, options, 4) {}
};

/// x (N, C, D, H, W).
class InstanceNorm3d : public InstanceNorm {
 public:
  explicit InstanceNorm3d(std::int64_t channels, const InstanceNormOptions& options = {})
      : InstanceNorm("InstanceNorm3d", channels, options, 5) {}
};

}  // namespace nn
}  // namespace concord
