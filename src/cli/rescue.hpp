// Saves trained weights to another place if the disk is full at the end of a training. Used by `concord train`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace concord::cli {

/// Lets `save` write `file`. If that throws an IoError, tries the folder of temporary files, the home folder, the
/// working folder and the system's memory (/dev/shm) in this order, under an unused name. Then throws an IoError that
/// says what failed and where the file is. If no folder works, the message names them all.
void save_somewhere(const std::string& what, const std::filesystem::path& file,
                    const std::function<void(const std::filesystem::path&)>& save);

}  // namespace concord::cli
