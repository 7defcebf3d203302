// The formats that are zip archives. Internal to the room.
#pragma once

#include <memory>

#include "concord/io/zip.hpp"
#include "concord/weights/reader.hpp"

namespace concord::weights {

/// Each takes an archive of its format and returns null for another, which then stays as it is.
[[nodiscard]] std::unique_ptr<Reader> open_torch_zip(std::unique_ptr<io::ZipArchive>& archive);
[[nodiscard]] std::unique_ptr<Reader> open_keras_zip(std::unique_ptr<io::ZipArchive>& archive);

}  // namespace concord::weights
