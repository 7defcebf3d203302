// Files that no other user may have written: built programs are native code, and tables choose which of them run. Used
// by whatever reads from the cache folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace concord {

/// The reason why a user other than this one and root may have written to this file or folder: it, or the folder of a
/// link's target, belongs to another user, or others may write to it, or everyone may write to a folder above it that
/// is not sticky. Empty if no other user may write, and if the path does not exist.
[[nodiscard]] std::string foreign_access(const std::filesystem::path& path);

/// Creates a folder and those above it that are missing, for this user alone (0700). Throws IoError.
void create_private_directories(const std::filesystem::path& folder);

/// The folder. An empty path, with a warning the first time, if another user may have written to it.
[[nodiscard]] std::filesystem::path if_private(const std::filesystem::path& folder);

/// cache_directory(), or with `part` the folder of that name in it. An empty path, with a warning the first time, if
/// there is none or another user may have written to it. A folder that does not exist yet counts as private.
[[nodiscard]] std::filesystem::path private_cache_directory(std::string_view part = {});

/// The whole content of a file that no other user may have written. Nothing, with a warning the first time, if another
/// user may have. The check uses the open file, so the file cannot be replaced between the check and the reading.
/// Throws IoError if it cannot be read.
[[nodiscard]] std::optional<std::string> read_private_file(const std::filesystem::path& file);

}  // namespace concord
