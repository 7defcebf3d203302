// ChannelNorm: what the normalisations with a scale and shift for each channel share. Base of the batch, group and
// instance normalisation layers.
#pragma once

#include <optional>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// During its lifetime, on this thread, running statistics that are traced in the graph of `batch` become the plain
/// mean over batches of one size, whatever the layers' momentum: `batch` is the number of this one, f32 [1] from 1; the
/// first replaces what was there. What torch.optim.swa_utils.update_bn does; used by Trainer::refresh_statistics.
class AveragedStatistics {
 public:
  explicit AveragedStatistics(Value batch);
  AveragedStatistics(const AveragedStatistics&) = delete;
  AveragedStatistics& operator=(const AveragedStatistics&) = delete;
  ~AveragedStatistics();

 private:
  Value outer_;
};

/// Which ranks a layer takes: 1d layers (N, C) or (N, C, L), 2d (N, C, H, W), 3d (N, C, D, H, W).
struct NormRanks {
  std::size_t least, most;
};

class ChannelNorm : public Module {
 public:
  /// (C); null without scale and shift.
  [[nodiscard]] const VariablePtr& weight() const { return weight_; }
  [[nodiscard]] const VariablePtr& bias() const { return bias_; }
  /// (C); null where no statistics are kept.
  [[nodiscard]] const VariablePtr& running_mean() const { return running_mean_; }
  [[nodiscard]] const VariablePtr& running_var() const { return running_var_; }

 protected:
  /// Statistics of one batch: mean and unbiased variance, (C) each.
  struct Statistics {
    Value mean, variance;
  };

  /// Throws ArgumentError for channels below 1.
  ChannelNorm(std::string name, std::int64_t channels, float epsilon);
  void add_affine(bool trainable = true);
  /// `momentum` is the weight of the newest batch; without it the statistics are the mean over all batches.
  void add_running_statistics(std::optional<float> momentum);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t channels() const { return channels_; }
  [[nodiscard]] float epsilon() const { return epsilon_; }
  /// Throws ShapeError unless x is (N, channels, …) of one of these ranks.
  void expect(Value x, const NormRanks& ranks) const;
  /// x·weight + bias by channel; x without them.
  [[nodiscard]] Value affine(Value x) const;
  /// (x − running_mean)/√(running_var + ε)·weight + bias.
  [[nodiscard]] Value by_running_statistics(Value x) const;
  /// Assigns the running statistics their next values.
  void move_running_statistics(Graph& graph, const Statistics& batch) const;

 private:
  std::string name_;
  std::int64_t channels_;
  float epsilon_;
  std::optional<float> momentum_;
  VariablePtr weight_, bias_, running_mean_, running_var_;
  VariablePtr batches_;  // "num_batches_tracked", without momentum only
};

}  // namespace nn
}  // namespace concord
