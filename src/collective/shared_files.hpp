// Open files of one process for the other ranks of the machine. Internal to the library.
#pragma once

#include <vector>

#include "concord/collective/group.hpp"

namespace concord::collective {

/// Gives a file descriptor to all ranks, and returns theirs by rank, as descriptors of this process that the caller
/// closes; -1 at this rank's own place. All ranks call it; they are processes of one machine and one user. Throws
/// IoError.
[[nodiscard]] std::vector<int> share_files(Group& group, int file);

}  // namespace concord::collective
