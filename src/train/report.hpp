// What a training says about itself: numbers of evaluations, epochs and steps, and who listens to them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

class Trainer;

/// Of a network over a data set.
struct Metrics {
  /// That of all samples as one batch, however they were cut: the mean over samples, or what the loss divides by
  /// (concord::Loss), or the sum. NaN where all labels are ignored.
  double loss = 0;
  /// Part of labels that are the largest output; with class labels only. Labels that the loss ignores do not count.
  std::optional<double> accuracy;
  std::optional<double> top_k;  // part of labels that are among the k largest outputs
  int k = 0;
  std::int64_t samples = 0;
  std::map<std::string, double> named = {};  // of FitOptions::metrics or EvaluateOptions::metrics
};

/// After each epoch.
struct EpochReport {
  std::int64_t epoch = 0;   // from 1
  std::int64_t epochs = 0;  // at the end of this fit, if nothing stops it
  std::int64_t steps = 0;   // of the whole training so far
  double loss = 0;          // as Metrics::loss, over the epoch's samples, each before its update
  double rate = 0;          // learning rate of the last step
  double seconds = 0;       // of training, without validation and callbacks
  double samples_per_second = 0;
  std::optional<Metrics> validation;
};

/// Now and then during an epoch.
struct StepReport {
  std::int64_t epoch = 0, epochs = 0;   // as in EpochReport
  std::int64_t batch = 0, batches = 0;  // done, and in all, of this epoch
  double loss = 0;                      // as Metrics::loss, over the epoch so far
  double samples_per_second = 0;
};

/// What `fit` returns.
struct History {
  enum class End : std::uint8_t {
    finished,
    stopped,  // by FitOptions::stop, FitOptions::max_steps or TrainingControl::stop
    early     // by EarlyStopping
  };
  std::vector<EpochReport> epochs;
  End end = End::finished;
  std::int64_t best_epoch = 0;  // with early stopping
  /// As Metrics::loss, over the samples of an epoch until it was stopped within.
  std::optional<double> stopped_loss = std::nullopt;
};

/// What a callback may do with the training that it hears of.
class TrainingControl {
 public:
  explicit TrainingControl(Trainer& trainer) : trainer_(&trainer) {}
  /// May evaluate, predict and save within a callback; training goes on as if it had not. `fit` throws ArgumentError.
  [[nodiscard]] Trainer& trainer() const { return *trainer_; }
  /// No further step is begun. All callbacks still hear of this step or epoch, and of the end; the training may go on
  /// in another `fit`, as after FitOptions::stop. In on_epoch of the last epoch nothing is left to stop.
  void stop() { is_stopping_ = true; }
  [[nodiscard]] bool is_stopping() const { return is_stopping_; }

 private:
  Trainer* trainer_;
  bool is_stopping_ = false;
};

/// Hears of a training's course; called from the thread that runs `fit`. What it throws ends the training and leaves
/// `fit`. Override of each pair the function that takes what is needed: the first calls the second.
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;
  /// Before the first step, when the network's weights are known.
  virtual void on_begin(TrainingControl&) {}
  virtual void on_step(TrainingControl&, const StepReport& report) { on_step(report); }
  virtual void on_step(const StepReport&) {}
  /// After validation and the checkpoint.
  virtual void on_epoch(TrainingControl&, const EpochReport& report) { on_epoch(report); }
  virtual void on_epoch(const EpochReport&) {}
  virtual void on_end(TrainingControl&, const History& history) { on_end(history); }
  virtual void on_end(const History&) {}
};

}  // namespace concord
