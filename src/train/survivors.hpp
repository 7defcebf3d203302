// Going on with fewer ranks. Internal to the room.
#pragma once

#include <filesystem>

#include "concord/core/error.hpp"
#include "concord/train/state.hpp"

namespace concord::train {

/// Throws NotSupported if the training is to go on when ranks are lost, and cannot.
void check_survivors(const TrainerState& state);

/// Makes the ranks that are left those of the training, at the last update that one of them has made: all have its
/// weights, states and place after it. An update keeps its number of batches. Programs are forgotten; `state.at` must
/// be what the device has done. All ranks that are left call it after `lost`. Throws RankLost, which names the
/// checkpoint of this training if it has one, if they are too few or cannot meet.
void go_on_with_survivors(TrainerState& state, const RankLost& lost, const std::filesystem::path& checkpoint);

/// Calls `work`, which all ranks do. Tells the ranks (Ranks::fail) if it may have failed on this one alone. A NonFinite
/// is thrown on all ranks together if `finds_non_finite_together`.
template <class Work>
auto failing_alone(TrainerState& state, bool finds_non_finite_together, const Work& work) {
  state.ranks.begin();
  try {
    return work();
  } catch (const NonFinite&) {
    if (!finds_non_finite_together) state.ranks.fail();
    throw;
  } catch (...) {
    state.ranks.fail();
    throw;
  }
}

}  // namespace concord::train
