// What a training says about itself: numbers of evaluations, epochs and steps, and who listens to them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace concord {

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
};

/// After each epoch.
struct EpochReport {
  std::int64_t epoch = 0;   // from 1
  std::int64_t epochs = 0;  // at the end of this fit, if nothing stops it
  std::int64_t steps = 0;   // of the whole training so far
  double loss = 0;          // as Metrics::loss, over the epoch's samples, each before its update
  double rate = 0;          // learning rate of the last step
  double seconds = 0;       // of training, without validation
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
  enum class End : std::uint8_t { finished, stopped, early };
  std::vector<EpochReport> epochs;
  End end = End::finished;
  std::int64_t best_epoch = 0;  // with early stopping
  /// As Metrics::loss, over the samples of an epoch until it was stopped within.
  std::optional<double> stopped_loss = std::nullopt;
};

/// Hears of a training's course; called from the thread that runs `fit`.
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}
  virtual void on_end(const History&) {}
};

}  // namespace concord
