// What differs by operating system: folders, memory and terminal queries. Used by every room; with atomic_file,
// private_files and child_process the only place for system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace concord {

/// Throws that `path` was not opened, for the reason in errno: OutOfMemory where the host has none left, else IoError.
[[noreturn]] void fail_to_open(const std::filesystem::path& path);

/// The whole content of a file. Throws IoError when it cannot be read.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// The paths of all that lies in a folder, `folder` before each name, sorted; empty where the folder cannot be read.
/// Throws OutOfMemory where the host has no memory left: a directory_iterator of GCC's library ends the program then.
[[nodiscard]] std::vector<std::filesystem::path> paths_in(const std::filesystem::path& folder);

/// `path` from the root, so that it stays the same file when the program changes its folder; as it is where the current
/// folder is gone. Empty stays empty.
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Where compiled kernels and tuning results are kept: $CONCORD_CACHE_DIR, else $XDG_CACHE_HOME/concord, else
/// ~/.cache/concord; empty when there is none of these. From the root. Not created.
[[nodiscard]] std::filesystem::path cache_directory();

/// The folders that this library's own `lib` may lie in, nearest first: what was installed with it lies there too. From
/// the root, also if the program was started by a relative path or found in $PATH.
[[nodiscard]] std::vector<std::filesystem::path> library_prefixes();

/// The folder share/concord that was installed with this library; empty when there is none.
[[nodiscard]] std::filesystem::path shared_data_directory();

/// The value of an environment variable, or nothing when it is unset or empty.
[[nodiscard]] std::optional<std::string> environment(const char* name);

/// Most bytes of memory this process has occupied so far; 0 where the system does not say.
[[nodiscard]] std::uint64_t peak_resident_bytes();

/// Bytes of main memory, or of its part that the process's container may use; 0 where the system does not say.
[[nodiscard]] std::uint64_t physical_memory_bytes();

/// What the processor reports about itself; "CPU" without a vendor if the system does not report it.
struct ProcessorInfo {
  std::string name;    // "AMD EPYC 9454"
  std::string vendor;  // "AuthenticAMD"
};
[[nodiscard]] ProcessorInfo processor_info();

/// Seconds since this process was started, to a hundredth; 0 if the system does not report it.
[[nodiscard]] double process_age_seconds();

/// After this call the process keeps freed memory for its next allocations, if the system allows that. Returning
/// gigabytes and getting them cleared again costs more than filling them. For programs, not for libraries.
void keep_freed_memory();

/// Whether the calling thread is the process's first.
[[nodiscard]] bool in_main_thread();

/// Columns of the terminal that standard error goes to, or nothing when it goes to a file or pipe.
[[nodiscard]] std::optional<int> terminal_width();

}  // namespace concord
