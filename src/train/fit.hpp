// Fit: one call of Trainer::fit. Internal to the room.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "concord/core/error.hpp"
#include "concord/train/batches.hpp"
#include "concord/train/failed_step.hpp"
#include "concord/train/pipeline_update.hpp"
#include "concord/train/state.hpp"
#include "concord/train/step_variables.hpp"

namespace concord::train {

/// One call of fit.
class Fit {
 public:
  Fit(Trainer& trainer, TrainerState& state, const Samples& data, const FitOptions& options);
  History run();

 private:
  /// What all ranks do together before their next step: at the start, and after the loss of a rank.
  void begin();
  void build();
  /// Goes on with the best epoch of a training that was stopped, or begins without one.
  void begin_early_stopping();
  [[nodiscard]] bool is_over() const { return state_.best && state_.best->is_over(*options_.early_stopping); }
  /// Calls `work`, again where ranks are lost in it and the others go on.
  template <class Work>
  auto with_survivors(const Work& work);
  /// After the loss of a rank: no kernel waits for it any more, and `at_` is what the device has done.
  void end_exchange();
  void go_on_without(const RankLost& lost);
  /// Waits until the first rank has written the last checkpoint, also where that rank is lost while it does.
  void confirm_checkpoint();
  /// Returns false if it was stopped before its end.
  bool train_epoch();
  void begin_epoch();
  /// The steps of one update of all ranks, from batch `first` of the epoch on.
  void run_update(std::int64_t first);
  /// What changes from batch to batch and is not in the inputs.
  void place_batch(std::int64_t batch);
  void run_batch(std::int64_t batch, bool is_last_of_update);
  void set_rate();
  [[nodiscard]] bool stop_wanted() const;
  void report_steps(std::chrono::steady_clock::time_point& start, std::int64_t first_batch);
  void finish_epoch(double seconds, std::int64_t samples);
  [[nodiscard]] Metrics validate();
  void check_finite();
  /// Waits for the device. Returns false after a step that it has not applied, and moves back to that one.
  bool is_at_applied_step();
  /// The part of these seconds of the epoch in which the device waited for samples.
  [[nodiscard]] double waiting_part(double seconds) const;
  /// Of the epoch so far, of so many samples.
  [[nodiscard]] double loss_so_far(std::int64_t samples) const { return steps_.loss(programs_.full->terms, samples); }
  [[nodiscard]] Variables& variables() const { return *state_.weights.variables(); }

  TrainingControl training_;
  TrainerState& state_;
  Place& at_;
  const Samples& data_;
  const FitOptions& options_;
  const std::filesystem::path checkpoint_;  // from the root: a callback may change the folder
  const Shape sample_;                      // of the first column of features
  StepVariables steps_;
  std::optional<Batches> batches_;
  EpochPlan plan_;      // of all ranks
  EpochPlan own_plan_;  // of this rank
  EpochPrograms programs_;
  std::optional<FailedStep> failed_step_;
  std::optional<PipelineSteps> stage_;  // of a network in stages
  bool counts_as_rank_ = false;         // the device counts the batches of one of several ranks
  std::int64_t target_epoch_ = 0;
  std::int64_t steps_left_ = 0;  // of max_steps
  SharedSamples validation_;     // without the samples that were found damaged
  std::int64_t validation_batch_;
  double waited_before_ = 0;  // seconds, before this epoch
  History history_;
};

}  // namespace concord::train
