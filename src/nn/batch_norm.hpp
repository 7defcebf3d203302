// Batch normalisation (Ioffe and Szegedy, "Batch Normalization", 2015) with running statistics for evaluation.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/channel_norm.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct BatchNormOptions {
  float epsilon = 1e-5F;
  /// The weight of the newest batch in the running statistics. Empty: they are the mean over all batches so far.
  std::optional<float> momentum = 0.1F;
  bool affine = true;  // with a weight and a bias for each channel
  /// false: no running statistics; evaluation, too, normalises by the statistics of the batch.
  bool track_running_stats = true;
  /// Training, too, normalises by the running statistics and does not change them. Weight and bias are not trained.
  bool frozen = false;
};

/// x (N, C, …) → the same shape. Training normalises by the mean and variance of the batch, and updates running_mean
/// and running_var (unbiased, as in PyTorch); it needs more than one value per channel. Evaluation normalises by the
/// running statistics. weight, bias, running_mean and running_var are (C).
class BatchNorm : public ChannelNorm {
 public:
  [[nodiscard]] Value forward(Value x) override;

 protected:
  /// Throws ArgumentError for fewer than 1 channels, and for `frozen` without running statistics.
  BatchNorm(const char* name, std::int64_t channels, const BatchNormOptions& options, NormRanks ranks);

 private:
  BatchNormOptions options_;
  NormRanks ranks_;
};

/// x (N, C) or (N, C, L).
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm1d", channels, options, {2, 3}) {}
};

using BatchNorm2dOptions = BatchNormOptions;
/// x (N, C, H, W).
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm2d", channels, options, {4, 4}) {}
};

/// x (N, C, D, H, W).
class BatchNorm3d : public BatchNorm {
 public:
  explicit BatchNorm3d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm3d", channels, options, {5, 5}) {}
};

}  // namespace nn
}  // namespace concord
