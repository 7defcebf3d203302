// PipelineSteps: the updates of a fit of a network in stages, as one stage runs them. Used by fit.cpp.
#pragma once

#include <cstdint>
#include <functional>

#include "concord/train/batches.hpp"
#include "concord/train/state.hpp"
#include "concord/train/step_variables.hpp"

namespace concord::train {

class PipelineSteps {
 public:
  /// All must outlive it.
  PipelineSteps(TrainerState& state, const EpochPrograms& programs, const EpochPlan& plan, Batches& batches,
                StepVariables& steps)
      : state_(state), programs_(programs), plan_(plan), batches_(batches), steps_(steps) {}

  /// In an epoch of which so many batches are done.
  void begin_epoch(std::int64_t done);
  /// Runs the next update, and moves the place of the training behind it. `place` is called before each batch. Throws
  /// RankLost.
  void run_update(const std::function<void(std::int64_t batch)>& place);
  /// Throws NonFinite if the updates so far were not good, with what was not finite.
  void require_finite(bool is_good);

 private:
  [[nodiscard]] StageProgram& program(std::int64_t batch) const;
  /// Batches [first, end) of the epoch: one forward pass and one backward pass in turn, with at most as many batches
  /// between the two as there are stages from this one on (PipeDream-Flush: Narayanan et al., 2021).
  void run_batches(std::int64_t first, std::int64_t end, const std::function<void(std::int64_t batch)>& place);

  TrainerState& state_;
  const EpochPrograms& programs_;
  const EpochPlan& plan_;
  Batches& batches_;
  StepVariables& steps_;
  std::int64_t begin_ = 0;  // the batch of the epoch from which on the cursor counts updates
};

}  // namespace concord::train
