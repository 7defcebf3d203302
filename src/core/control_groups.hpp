// What a process may use of its machine: processors by affinity, processors and memory by Linux's control groups, of
// version 1 or 2 (https://docs.kernel.org/admin-guide/cgroup-v2.html). Containers and system services have such limits.
// Used by platform, threads and the building of kernels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace concord {

/// Where the groups of this process are described.
struct ControlGroups {
  std::filesystem::path mounted = "/sys/fs/cgroup";
  std::filesystem::path of_process = "/proc/self/cgroup";
};

/// The processors that the process may keep busy, in parts of one too; nothing without a quota. The quota of a group
/// holds for the groups in it.
[[nodiscard]] std::optional<double> processor_quota(const ControlGroups& groups = {});

/// The bytes of memory that the process and the others of its group may use; nothing without a limit.
[[nodiscard]] std::optional<std::uint64_t> memory_limit(const ControlGroups& groups = {});

/// How many threads can run at once: the processors of the calling thread's affinity, at most the quota rounded up. At
/// least 1.
[[nodiscard]] int usable_processors(const ControlGroups& groups = {});

}  // namespace concord
