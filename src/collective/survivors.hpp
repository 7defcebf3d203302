// Which ranks of a group go on, agreed over the store: where ranks share no memory. Internal to the library.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "concord/collective/store.hpp"

namespace concord::collective {

/// The name of what the store says when the rank of a group has left, however it did: its connection leaves it behind
/// (Store::leave_behind). `prefix` is that of the group's names.
[[nodiscard]] std::string left_name(const std::string& prefix, int rank);

/// The names of what the store says of the rank of a group that was missed first: a sentence, and its number.
[[nodiscard]] std::string lost_name(const std::string& prefix);
[[nodiscard]] std::string lost_rank_name(const std::string& prefix);

/// The ranks of a group of `size` that go on, in their order; the same on all of them. Each calls it. Waits for those
/// that have not left, at most for the deadline. Throws RankLost on a rank that the others have gone on without, and if
/// the store is lost.
[[nodiscard]] std::vector<int> agree_on_survivors(Store& store, const std::string& prefix, int rank, int size,
                                                  std::chrono::duration<double> deadline);

}  // namespace concord::collective
