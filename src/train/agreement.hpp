// What the ranks of a training must have in common before their first step. Internal to the library.
#pragma once

#include "concord/data/samples.hpp"
#include "concord/train/state.hpp"

namespace concord::train {

/// Throws ArgumentError on all ranks if they have other options, data, weights or places in the training.
void require_equal_ranks(const TrainerState& state, const Samples& data, const FitOptions& options);

}  // namespace concord::train
