// Files that are given for safetensors and are something else: what they are, and how to convert them. Internal to the
// room.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace concord::io {

/// "a PyTorch file (a zip archive with pickled tensors); write it anew with ...", or an empty text for a format that is
/// not known. `begin` is the first bytes of the file, 64 or all of it.
[[nodiscard]] std::string foreign_format(const std::filesystem::path& path, std::string_view begin);

}  // namespace concord::io
