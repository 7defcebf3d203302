// BestEpoch: the best epoch of a fit so far, for early stopping. A checkpoint keeps it. Internal to the room.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "concord/train/options.hpp"
#include "concord/train/weights.hpp"

namespace concord::train {

class BestEpoch {
 public:
  explicit BestEpoch(const EarlyStopping& options);
  /// Takes what a checkpoint has of it, and its tensors, out of it; nothing if it has none. Throws FormatError, with
  /// the name of the file, for what cannot be read.
  [[nodiscard]] static std::optional<BestEpoch> take_from(io::Checkpoint& checkpoint, const std::string& file);
  /// `weights`: its own, of the whole network.
  void write_to(io::CheckpointInfo& info, io::TensorMap& tensors, const io::TensorMap& weights) const;

  /// Whether these options watch the same number.
  [[nodiscard]] bool fits(const EarlyStopping& options) const;
  /// Of a checkpoint: keeps the parts of its weights that this rank has. Throws FormatError for those of another
  /// network.
  void cut(const Weights& weights);
  /// Called after each epoch.
  void note(const EpochReport& report, const EarlyStopping& options, const Weights& weights);
  /// Whether there was no improvement for too long.
  [[nodiscard]] bool is_over(const EarlyStopping& options) const {
    return score_.since > 0 && score_.since >= options.patience;
  }
  /// Restores the weights of the best epoch, if the options require it.
  void restore_weights(const EarlyStopping& options, const Weights& weights) const;

  struct Score {
    double best = INFINITY;             // the smaller, the better
    std::int64_t since = 0, epoch = 0;  // epochs without improvement; 0: there was no best epoch yet
  };
  [[nodiscard]] const Score& score() const { return score_; }
  /// Becomes that of a rank which has ended one epoch more, and whose weights this one has taken over.
  void follow(const Score& score, const Weights& weights);
  /// Of the best epoch; empty where they are not kept.
  [[nodiscard]] const io::TensorMap& weights() const { return weights_; }
  /// Whether they are those of the whole network, not yet cut.
  [[nodiscard]] bool are_whole() const { return are_whole_; }

 private:
  BestEpoch() = default;

  std::string monitor_;  // what is watched
  Score score_;
  bool keeps_weights_ = true;
  bool are_whole_ = false;
  io::TensorMap weights_;
};

}  // namespace concord::train
