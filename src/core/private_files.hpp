// Files that no other user may have written: built programs are native code, and tables choose which of them run. Used
// by whatever reads from the cache folder.
#pragma once

#include <filesystem>
#include <string>

namespace concord {

/// Why another user than this one and root may have written to this file or folder: it, or the folder of a link's
/// target, belongs to another user, or others may write to it; a folder above it may be written by everybody and is not
/// sticky. Empty where none may, and where there is nothing.
[[nodiscard]] std::string foreign_access(const std::filesystem::path& path);

/// Creates a folder and those above it that are missing, for this user alone (0700). Throws IoError.
void create_private_directories(const std::filesystem::path& folder);

/// cache_directory(), or an empty path, with a warning the first time, where another user may have written there.
[[nodiscard]] std::filesystem::path private_cache_directory();

}  // namespace concord
