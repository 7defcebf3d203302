// What files get of a network in stages: rank 0 gathers the variables of all. Internal to the room.
#pragma once

#include <functional>

#include "concord/train/state.hpp"

namespace concord::train {

/// Weights::evaluated and Weights::persistent of all stages, on rank 0; nothing on the others. Without a pipeline,
/// those of this device. All ranks call it together. Throws RankLost.
[[nodiscard]] io::TensorMap gather_evaluated(const TrainerState& state);
[[nodiscard]] io::TensorMap gather_persistent(const TrainerState& state);

/// Lets rank 0 write a file. In a pipeline, an IoError of rank 0 is one on all ranks, so that all try again.
void write_on_first_rank(const TrainerState& state, const std::function<void()>& write);

}  // namespace concord::train
