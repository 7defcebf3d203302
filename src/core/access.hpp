// What the system lets this process use: device files and shared libraries. For `concord doctor`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace concord {

/// Whether this process may read and write an existing file or device.
[[nodiscard]] bool may_read_and_write(const std::filesystem::path& path);

/// Why a shared library does not load, in the words of the system; nothing when it does. It stays loaded.
[[nodiscard]] std::optional<std::string> library_error(const std::string& name);

/// The user this process runs as; its number where it has no name.
[[nodiscard]] std::string user_name();

}  // namespace concord
