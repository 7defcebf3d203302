// What a training has learned is not lost to a disk that is full at its end. Used by `concord train`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace concord::cli {

/// Lets `save` write `file`. Where that throws an IoError, tries the folder of temporary files, the home folder, the
/// working folder and the system's memory (/dev/shm) one after the other, under a name that none there has, and then
/// throws an IoError that says what failed and where the file is instead. Where none can be written the message names
/// them all.
void save_somewhere(const std::string& what, const std::filesystem::path& file,
                    const std::function<void(const std::filesystem::path&)>& save);

}  // namespace concord::cli
