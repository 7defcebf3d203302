// Prediction: a training step on many ranks, from a recorded step and the links between ranks. Internal to the library.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "concord/collective/buckets.hpp"
#include "concord/plan/recorded_step.hpp"
#include "concord/plan/simulation.hpp"

namespace concord::plan {

/// What is predicted; the cluster but for its number of ranks.
struct Setting {
  Cluster cluster;
  Algorithm algorithm = Algorithm::direct;
  std::size_t bucket = 0;     // bytes; 0: as a training has them (collective/buckets.hpp)
  bool is_overlapped = true;  // exchanges run beside the backward pass
  int accumulate = 1;         // batches of each rank in an update
  /// Computation beside an exchange takes 1 + slowdown times as long.
  double slowdown = 0;
  /// Standard deviation of the computation of a step, as a part of it; empty: as it was recorded.
  std::optional<double> deviation;
};

/// Times in seconds.
struct Prediction {
  int ranks = 1;
  std::size_t buckets = 0;
  double single = 0;    // the step of one rank alone
  double step = 0;      // of all ranks
  double exchange = 0;  // the sum of all buckets' times
  double exposed = 0;   // of the exchange, beyond the end of the backward pass
  double waiting = 0;   // for the slowest rank
  std::string limit;    // what takes most of the time that is lost: "bandwidth between machines"
  [[nodiscard]] double efficiency() const { return single / step; }
};

/// Predicts steps from one recorded step. Keeps the times of exchanges that it has simulated.
class Planner {
 public:
  explicit Planner(RecordedStep step) : step_(std::move(step)) {}
  [[nodiscard]] const RecordedStep& step() const { return step_; }
  /// Throws ArgumentError for ranks that do not fill the machines.
  [[nodiscard]] Prediction predict(const Setting& setting);
  /// The slowdown with which the step of this setting takes so many seconds; 0 if it takes longer without any. Throws
  /// ArgumentError if no slowdown below 16 makes it so long.
  [[nodiscard]] double slowdown_of(Setting setting, double seconds);
  /// The size of buckets, from 256 KiB up to all gradients at once, by which the step is shortest, and its prediction.
  [[nodiscard]] std::pair<std::size_t, Prediction> best_bucket(Setting setting);

 private:
  struct Times {
    double step = 0, exchange = 0, exposed = 0, waiting = 0;
    std::size_t buckets = 0;
  };
  [[nodiscard]] Times times(const Setting& setting);
  [[nodiscard]] std::string limit_of(const Setting& setting, double step, double single);

  RecordedStep step_;
};

/// The expected largest of `count` draws from these values, each as likely, minus their median.
[[nodiscard]] double expected_delay(std::span<const double> values, int count);
/// The expected largest of `count` draws from the normal distribution of deviation 1, by Blom's formula.
[[nodiscard]] double expected_largest(int count);

}  // namespace concord::plan
