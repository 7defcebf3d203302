// BestEpoch: the best epoch of a fit so far, for early stopping. Internal to the room.
#pragma once

#include <cmath>

#include "concord/train/options.hpp"
#include "concord/train/weights.hpp"

namespace concord::train {

class BestEpoch {
 public:
  BestEpoch(const Weights& weights, const EarlyStopping& options) : weights_(weights), options_(options) {}
  /// Called after each epoch. Returns false if there was no improvement for too long.
  [[nodiscard]] bool worth_going_on(const EpochReport& report) {
    const double score = score_of(*report.validation);
    if (!(score < best_ - options_.min_delta)) return ++since_ < options_.patience;
    best_ = score;
    since_ = 0;
    epoch_ = report.epoch;
    if (options_.restore_best) best_weights_ = weights_.all();
    return true;
  }
  /// Restores the weights of the best epoch, if the options require it.
  void restore_weights() const {
    for (const auto& [name, tensor] : best_weights_) weights_.variables()->write(name, tensor);
  }
  /// 0: there was none yet.
  [[nodiscard]] std::int64_t epoch() const { return epoch_; }

 private:
  /// The smaller, the better.
  [[nodiscard]] double score_of(const Metrics& validation) const {
    if (!options_.metric.empty()) {
      const double value = validation.named.at(options_.metric);
      return options_.larger_is_better ? -value : value;
    }
    return options_.monitor == EarlyStopping::Monitor::loss ? validation.loss : -validation.accuracy.value();
  }

  const Weights& weights_;
  const EarlyStopping& options_;
  double best_ = INFINITY;
  std::int64_t since_ = 0, epoch_ = 0;
  io::TensorMap best_weights_;
};

}  // namespace concord::train
