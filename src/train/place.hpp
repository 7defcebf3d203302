// Place: where a training stands. Internal to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/io/checkpoint.hpp"
#include "concord/train/epoch_plan.hpp"

namespace concord::train {

/// Between two steps. `position` is whole batches of `batch`, or all samples of an epoch until it is ended.
struct Place {
  /// Throws FormatError when the numbers of the checkpoint contradict each other: they say which batches the device
  /// reads next. `file` names it.
  [[nodiscard]] static Place of(const io::Checkpoint& checkpoint, const std::string& file);
  void write_to(io::CheckpointInfo& info) const;

  /// Of the epoch that it stands in.
  [[nodiscard]] std::int64_t batches_done(const EpochPlan& plan) const { return plan.batches_in(position); }
  /// Throws ArgumentError unless the epoch that it stands in can go on with this plan.
  void require_fits(const EpochPlan& plan) const;
  void begin_epoch(const EpochPlan& plan);
  /// To after so many batches of the epoch, on or back.
  void move_to(const EpochPlan& plan, std::int64_t batches);
  void end_epoch();
  /// "step 12 (epoch 1, batch 12)", the one that comes next.
  [[nodiscard]] std::string next_step(const EpochPlan& plan) const;

  std::uint64_t seed = 0;               // of the order of samples and of random streams
  std::int64_t accumulate = 1;          // batches an update
  std::int64_t epoch = 0;               // epochs done
  std::int64_t step = 0;                // batches done
  std::int64_t updates = 0;             // for schedules: those that were left out count, too
  std::int64_t position = 0;            // samples of the current epoch done
  std::int64_t first_epoch = 0;         // of the current call of fit, or of the one that was stopped
  std::int64_t batch = 0, samples = 0;  // of the epoch that `position` lies in
  std::vector<double> losses = {};      // of the validations so far
};

}  // namespace concord::train
