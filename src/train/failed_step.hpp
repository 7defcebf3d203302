// FailedStep: runs a failed step of a fit again and finds the value that is not finite. Internal to the room.
#pragma once

#include "concord/train/non_finite_search.hpp"
#include "concord/train/state.hpp"

namespace concord::train {

/// For one fit. All functions examine the next step (TrainerState::at) with the present weights.
class FailedStep {
 public:
  /// `state`, `data` and `options` must outlive it.
  FailedStep(const TrainerState& state, const Samples& data, const FitOptions& options, const EpochPlan& plan,
             EpochPrograms programs, bool is_streamed);
  /// For FitOptions::nan_trace. Throws NonFinite with the first value that is not finite.
  void require_finite_values();
  /// For a step that the device has not applied. Throws NonFinite with the first value that is not finite, and with the
  /// first parameter whose gradient has one. Throws ArgumentError if a wrong index is the cause.
  [[noreturn]] void explain();

 private:
  /// The batch of this rank in the epoch.
  [[nodiscard]] std::int64_t batch() const { return state_.ranks.own_of(state_.at.batches_done(plan_)); }
  [[nodiscard]] bool is_full() const { return batch() < plan_.full.rows; }
  [[nodiscard]] const StepProgramPtr& step() const { return is_full() ? programs_.full : programs_.last; }
  /// Of its batch, in the data set.
  [[nodiscard]] std::vector<std::int32_t> rows() const;
  /// As the loader does.
  void augment(Tensor& features, std::span<const std::int32_t> rows) const;
  [[nodiscard]] NonFiniteReport search();
  [[nodiscard]] std::string name() const { return state_.at.next_step(plan_); }

  const TrainerState& state_;
  const Samples& data_;
  const FitOptions& options_;
  EpochPlan plan_;
  EpochPrograms programs_;
  bool is_streamed_;
  NonFiniteSearch search_;
};

}  // namespace concord::train
