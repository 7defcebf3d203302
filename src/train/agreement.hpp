// What the ranks of a training must have in common before their first step. Internal to the library.
#pragma once

#include "concord/data/samples.hpp"
#include "concord/train/state.hpp"

namespace concord::train {

/// Throws ArgumentError on all ranks if they have other options, data or places in the training. Before programs are
/// made, for which the ranks work together.
void require_equal_ranks(const TrainerState& state, const Samples& data, const FitOptions& options);
/// Throws ArgumentError on all ranks if they have other weights.
void require_equal_weights(const TrainerState& state);

}  // namespace concord::train
