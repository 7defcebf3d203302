// Files that no other user may have written: built programs are native code, and tables choose which of them run. Used
// by whatever reads from the cache folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace concord {

/// Why another user than this one and root may have written to this file or folder: it, or the folder of a link's
/// target, belongs to another user, or others may write to it; a folder above it may be written by everybody and is not
/// sticky. Empty where none may, and where there is nothing.
[[nodiscard]] std::string foreign_access(const std::filesystem::path& path);

/// Creates a folder and those above it that are missing, for this user alone (0700). Throws IoError.
void create_private_directories(const std::filesystem::path& folder);

/// The folder, or an empty path, with a warning the first time, where another user may have written there.
[[nodiscard]] std::filesystem::path if_private(const std::filesystem::path& folder);

/// cache_directory(), or with `part` the folder of that name in it; an empty path, with a warning the first time, where
/// there is none or another user may have written there. One that does not exist yet is private.
[[nodiscard]] std::filesystem::path private_cache_directory(std::string_view part = {});

/// The whole content of a file that no other user may have written; nothing, with a warning the first time, where one
/// may have. It is looked at after it was opened, so that it is not another by the time it is read. Throws IoError when
/// it cannot be read.
[[nodiscard]] std::optional<std::string> read_private_file(const std::filesystem::path& file);

}  // namespace concord
