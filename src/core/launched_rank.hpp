// LaunchedRank: what a launcher of several processes, such as torchrun, leaves in the environment of each. Used by
// collective and device. Internal to the library.
#pragma once

#include <optional>

namespace concord {

struct LaunchedRank {
  int rank = 0, size = 1;
  int local_rank = 0;                   // among the ranks of this machine
  const char* size_variable = nullptr;  // "WORLD_SIZE": that it is one of several
};

/// Reads RANK, WORLD_SIZE and LOCAL_RANK, as torchrun and `concord launch` set them; else the variables of Open MPI or
/// Slurm (srun). Nothing for a process that was started alone, and for a world of one. Throws ArgumentError, which
/// names the variable that is wrong.
[[nodiscard]] std::optional<LaunchedRank> launched_rank();

}  // namespace concord
