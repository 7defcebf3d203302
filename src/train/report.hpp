// Reports of a training: results of evaluations, epochs and steps, and the callbacks that receive them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

class Trainer;

/// The results of an evaluation on a data set.
struct Metrics {
  /// The loss of all samples as if they were one batch: their mean, the quotient for a loss::weighted_mean, or the sum
  /// for a loss::total. NaN if all labels are ignored.
  double loss = 0;
  /// The part of the labels with the largest output. Only for class labels; ignored labels do not count.
  std::optional<double> accuracy;
  std::optional<double> top_k;  // part of the labels among the k largest outputs
  int k = 0;
  std::int64_t samples = 0;
  std::map<std::string, double> named = {};  // results of FitOptions::metrics or EvaluateOptions::metrics
};

/// The report after each epoch.
struct EpochReport {
  std::int64_t epoch = 0;   // from 1
  std::int64_t epochs = 0;  // at the end of this `fit`, unless it stops early
  std::int64_t steps = 0;   // steps of the whole training so far
  double loss = 0;          // as Metrics::loss, over the samples of the epoch, each before its update
  double rate = 0;          // learning rate of the last step
  double seconds = 0;       // training time, without validation and callbacks
  double samples_per_second = 0;
  double waiting = 0;  // the part of the seconds in which the device waited for streamed samples
  std::optional<Metrics> validation;
};

/// The report between steps.
struct StepReport {
  std::int64_t epoch = 0, epochs = 0;   // as in EpochReport
  std::int64_t batch = 0, batches = 0;  // batches done, and all batches of this epoch
  double loss = 0;                      // as Metrics::loss, over the epoch so far
  double samples_per_second = 0;
  double waiting = 0;  // as in EpochReport, over the epoch so far
};

/// The result of `fit`.
struct History {
  enum class End : std::uint8_t {
    finished,
    stopped,  // by FitOptions::stop, FitOptions::max_steps or TrainingControl::stop
    early     // by EarlyStopping
  };
  std::vector<EpochReport> epochs;
  End end = End::finished;
  std::int64_t best_epoch = 0;  // with early stopping
  /// If the training stopped within an epoch: Metrics::loss over its samples so far.
  std::optional<double> stopped_loss = std::nullopt;
};

/// How a callback can control the training.
class TrainingControl {
 public:
  explicit TrainingControl(Trainer& trainer) : trainer_(&trainer) {}
  /// A callback may evaluate, predict and save; this does not change the training. `fit` within a callback throws
  /// ArgumentError.
  [[nodiscard]] Trainer& trainer() const { return *trainer_; }
  /// Stops the training: no further step starts. All callbacks still get the report of this step or epoch, and the end.
  /// Another `fit` may continue the training, as after FitOptions::stop. In on_epoch of the last epoch it has no
  /// effect.
  void stop() { is_stopping_ = true; }
  [[nodiscard]] bool is_stopping() const { return is_stopping_; }

 private:
  Trainer* trainer_;
  bool is_stopping_ = false;
};

/// Receives the reports of a training, on the thread that runs `fit`. An exception ends the training and leaves `fit`.
/// Override one function of each pair; the first calls the second.
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;
  /// Called before the first step, when the names of the weights are known.
  virtual void on_begin(TrainingControl&) {}
  virtual void on_step(TrainingControl&, const StepReport& report) { on_step(report); }
  virtual void on_step(const StepReport&) {}
  /// Called after the validation and the checkpoint.
  virtual void on_epoch(TrainingControl&, const EpochReport& report) { on_epoch(report); }
  virtual void on_epoch(const EpochReport&) {}
  virtual void on_end(TrainingControl&, const History& history) { on_end(history); }
  virtual void on_end(const History&) {}
};

}  // namespace concord
