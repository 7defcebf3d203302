// Batch normalisation (Ioffe and Szegedy, "Batch Normalization", 2015) with running statistics for evaluation.
#pragma once

#include "concord/core/export.hpp"
#include "concord/nn/channel_norm.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

struct BatchNormOptions {
  float epsilon = 1e-5F;
  /// Weight of the newest batch in the running statistics; without it they are the mean over all batches so far.
  std::optional<float> momentum = 0.1F;
  bool affine = true;               // with weight and bias
  bool track_running_stats = true;  // without them evaluation, too, normalises by the batch's statistics
  /// The running statistics are used and kept in training, too, and weight and bias are not trained.
  bool frozen = false;
};

/// x (N, C, …) with more than one value a channel in training. Training normalises by the batch's statistics and moves
/// running_mean and running_var (unbiased, as PyTorch keeps it); evaluation normalises by these. weight, bias,
/// running_* are (C).
class BatchNorm : public ChannelNorm {
 public:
  [[nodiscard]] Value forward(Value x) override;

 protected:
  /// Throws ArgumentError for channels below 1, or frozen without running statistics.
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
