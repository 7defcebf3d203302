// How a batch is split among ranks of different speed (TrainerOptions::split). Internal to the room.
#pragma once

#include <utility>

#include "concord/train/state.hpp"

namespace concord::train {

/// The batches of an epoch: of all ranks, and of this one. If batches are to be split by speed, the first call measures
/// how fast each rank trains, by steps that change nothing. Throws ShapeError if the network does not accept the
/// batches, OutOfMemory, and RankLost.
[[nodiscard]] std::pair<EpochPlan, EpochPlan> plans_of(TrainerState& state, const Samples& data,
                                                       const FitOptions& options);

}  // namespace concord::train
