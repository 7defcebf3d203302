// The processes that a rank has started. Used by Child. Internal to the library.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace concord::collective {

/// The living processes that `rank` has started, directly or through others, without itself; and those that have all of
/// `marks`, which are variables as "NAME=value", in their environment, with what they have started: also once `rank`,
/// which is then 0, has ended. None where there is no /proc.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t rank, const std::vector<std::string>& marks);

}  // namespace concord::collective
