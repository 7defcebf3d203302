// What all ranks of a divided network do, or none of them uses. Internal to the room.
#pragma once

#include <functional>
#include <string_view>

#include "concord/collective/group.hpp"

namespace concord::train {

/// Makes something on each rank. Where it fails on one, the others throw OutOfMemory or ArgumentError.
/// `make` must not call the group. `what`: that a rank has of the network, "stage" or "part".
void on_all_ranks(collective::Group& group, std::string_view what, const std::function<void()>& make);

}  // namespace concord::train
