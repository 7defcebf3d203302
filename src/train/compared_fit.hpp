// Trainings that are compared on several devices instead of run. Internal to the room.
#pragma once

#include "concord/train/state.hpp"

namespace concord::train {

/// Where `concord compare PROGRAM` started this process (CompareRequest): compares devices on the step that this fit
/// would take, answers, and ends the process, with exit code 1 where they do not agree or the comparison fails.
/// Network, loss, optimizer, clipping, groups, precision, seed, batch and data are the training's; its schedule,
/// accumulation, averages, augmentation and loaded weights are left out.
void compare_if_asked(const TrainerState& state, const Dataset& data, const FitOptions& options);

}  // namespace concord::train
