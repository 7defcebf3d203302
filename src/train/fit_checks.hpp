// What a fit asks for: checked before any work on the device. Internal to the room.
#pragma once

#include "concord/train/state.hpp"

namespace concord::train {

/// Throws what Trainer::fit throws for a data set or options that do not go with the training or with each other.
void check(const TrainerState& state, const Dataset& data, const FitOptions& options);
/// Throws ShapeError where the network does not take the batches of an epoch.
void check_batches(const TrainerState& state, const Dataset& data, const EpochPlan& plan);

/// That a fit runs, for as long as it does. Throws ArgumentError where one does already.
class InFit {
 public:
  explicit InFit(TrainerState& state);
  InFit(const InFit&) = delete;
  InFit& operator=(const InFit&) = delete;
  ~InFit();

 private:
  TrainerState& state_;
};

}  // namespace concord::train
