// ChannelNorm: the base of the batch, group and instance normalisation layers, which have a weight and a bias for each
// channel.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// During its lifetime, running statistics traced in the graph of `batch` become the mean over batches of one size; the
/// momentum of the layers is ignored. `batch` f32 [1] is the number of the batch, from 1. Batch 1 replaces the old
/// statistics. As torch.optim.swa_utils.update_bn. Trainer::refresh_statistics uses it. The graph must outlive it.
class AveragedStatistics {
 public:
  explicit AveragedStatistics(Value batch);
  AveragedStatistics(const AveragedStatistics&) = delete;
  AveragedStatistics& operator=(const AveragedStatistics&) = delete;
  ~AveragedStatistics();

 private:
  Graph& graph_;
  Value outer_;
};

/// During its lifetime, batch norm traced in `graph` for training normalises by the statistics of the batches of all
/// ranks of a training together, instead of those of its own batch: torch.nn.SyncBatchNorm. Also its running statistics
/// are those. The graph must outlive it.
class SynchronisedStatistics {
 public:
  /// Throws ArgumentError unless 0 <= rank < ranks.
  SynchronisedStatistics(Graph& graph, int rank, int ranks);
  SynchronisedStatistics(const SynchronisedStatistics&) = delete;
  SynchronisedStatistics& operator=(const SynchronisedStatistics&) = delete;
  ~SynchronisedStatistics();

 private:
  Graph& graph_;
  int outer_rank_, outer_ranks_;
};

/// The least and the largest rank of the input: 1d layers take (N, C, L), and those of batch norm (N, C) too, 2d
/// (N, C, H, W), 3d (N, C, D, H, W).
struct NormRanks {
  std::size_t least, most;
};

class ChannelNorm : public Module {
 public:
  /// (C). Null if the layer has no weight and bias.
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }
  /// (C). Null if the layer has no running statistics.
  [[nodiscard]] const VariablePtr& running_mean() const { return running_mean_; }
  [[nodiscard]] const VariablePtr& running_var() const { return running_var_; }

 protected:
  /// The statistics of one batch: mean and unbiased variance, (C) each.
  struct Statistics {
    Value mean, variance;
  };

  /// The statistics of the batches of all ranks: mean and biased variance, (C) each, and the factor that makes the
  /// variance unbiased, [].
  struct RankStatistics {
    Value mean, variance, unbiased;
  };

  /// Throws ArgumentError for fewer than 1 channels.
  ChannelNorm(std::string name, std::int64_t channels, float epsilon);
  void add_affine(bool trainable = true);
  /// `momentum` is the weight of the newest batch. Empty: the statistics are the mean over all batches.
  void add_running_statistics(std::optional<float> momentum);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t channels() const { return channels_; }
  [[nodiscard]] float epsilon() const { return epsilon_; }
  /// Throws ShapeError unless x is (N, channels, …) and has one of these ranks.
  void expect(Value x, const NormRanks& ranks) const;
  /// x·weight + bias for each channel; x if the layer has no weight and bias.
  [[nodiscard]] Value affine(Value x) const;
  /// (x − running_mean)/√(running_var + ε)·weight + bias.
  [[nodiscard]] Value by_running_statistics(Value x) const;
  /// (x − mean)/√(variance + ε)·weight + bias.
  [[nodiscard]] Value by_statistics(Value x, Value mean, Value variance) const;
  /// Of all ranks; nothing outside SynchronisedStatistics. A rank without a batch counts 0 values.
  [[nodiscard]] std::optional<RankStatistics> statistics_of_ranks(Value x) const;
  /// Updates the running statistics with those of a batch.
  void move_running_statistics(Graph& graph, const Statistics& batch) const;

 private:
  std::string name_;
  std::int64_t channels_;
  float epsilon_;
  std::optional<float> momentum_;
  VariablePtr weight_, bias_, running_mean_, running_var_;
  VariablePtr batches_;  // "num_batches_tracked", only without momentum
};

}  // namespace nn
}  // namespace concord
