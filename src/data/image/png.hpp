// PNG files. Used by codec_formats.cpp alone.
#pragma once

#include "concord/data/image/codec_parts.hpp"

namespace concord::data {

[[nodiscard]] bool is_png(FileBytes file);
[[nodiscard]] ImageInfo png_info(FileBytes file);
/// Decodes `window`, which is in stored coordinates.
void decode_png(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to);

}  // namespace concord::data
