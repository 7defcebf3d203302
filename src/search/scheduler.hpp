// Scheduler: decides which trials a search trains, with which settings and for how many epochs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "concord/core/export.hpp"
#include "concord/search/space.hpp"

namespace CONCORD_PUBLIC concord {
namespace search {

/// Work for one worker: train a trial until it has so many epochs.
struct Job {
  std::int64_t trial = 0;   // from 0
  std::int64_t rung = 0;    // from 0
  std::int64_t epochs = 1;  // in all, not in addition to earlier rungs
  bool is_last = true;      // the trial is finished after this rung
  Settings settings;
};

/// Decides by the results so far. The same calls in the same order give the same jobs.
///
///     auto scheduler = search::make_scheduler(space, {.kind = search::SchedulerKind::tpe, .trials = 50});
///     while (const auto job = scheduler->next()) scheduler->report(*job, loss_of(job->settings));
class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;
  /// The next job. Nothing if all is done, or if the scheduler waits for the report of a job that is running.
  [[nodiscard]] virtual std::optional<Job> next() = 0;
  /// The result of a job: a score, of which the smaller one is better, or nothing if the trial failed.
  virtual void report(const Job& job, std::optional<double> score) = 0;
};

enum class SchedulerKind : std::uint8_t {
  random,  // settings drawn from the space
  grid,    // all combinations
  asha,    // random settings; only the best part of each rung is trained for longer
  tpe      // settings near those of the best trials
};

struct SchedulerOptions {
  SchedulerKind kind = SchedulerKind::random;
  std::int64_t trials = 20;  // a grid has all of its combinations instead
  std::uint64_t seed = 0;    // of the draws
  std::int64_t epochs = 1;   // of a finished trial
  // Of asha: Li et al., "A System for Massively Parallel Hyperparameter Tuning", arXiv 1810.05934. Rungs end after
  // min_epochs, min_epochs·eta, min_epochs·eta² … epochs, the last one after `epochs`. One in `eta` trials of a rung is
  // promoted to the next one, as soon as so many trials have reached the rung.
  std::int64_t min_epochs = 1;
  int eta = 3;
};

/// tpe: Bergstra et al., "Algorithms for Hyper-Parameter Optimization", 2011, with one Parzen estimator for each
/// parameter. The first ten trials are random ones. Throws ArgumentError for options out of range, and as
/// Space::combinations for a grid.
[[nodiscard]] std::unique_ptr<Scheduler> make_scheduler(const Space& space, const SchedulerOptions& options);

}  // namespace search
}  // namespace concord
