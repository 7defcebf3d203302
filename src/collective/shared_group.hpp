// SharedGroup: the ranks of one machine exchange data by memory that they share. Internal to the library.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/collective/shared_memory.hpp"

namespace concord::collective {

/// The size of the block of memory for a group of so many ranks.
[[nodiscard]] std::size_t shared_bytes(int size);
/// A rank of the group whose block this is; `memory` must be of shared_bytes(size). The transport is `host`.
[[nodiscard]] GroupPtr make_shared_group(std::shared_ptr<SharedMemory> memory, int rank, int size,
                                         std::chrono::duration<double> deadline);
/// The ranks of a group within this process, one for each of `size` threads.
[[nodiscard]] std::vector<GroupPtr> make_groups_of_threads(int size, std::chrono::duration<double> deadline);

}  // namespace concord::collective
