// JPEG files. Used by codec_formats.cpp alone.
#pragma once

#include "concord/data/image/codec_parts.hpp"

namespace concord::data {

[[nodiscard]] bool is_jpeg(FileBytes file);
[[nodiscard]] ImageInfo jpeg_info(FileBytes file);
/// Decodes a rectangle around `window`, both in stored coordinates, and returns it.
Window decode_jpeg(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to);

}  // namespace concord::data
