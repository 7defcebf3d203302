// PNM files. Used by codec_formats.cpp alone.
#pragma once

#include "concord/data/image/codec_parts.hpp"

namespace concord::data {

[[nodiscard]] bool is_pnm(FileBytes file);
[[nodiscard]] ImageInfo pnm_info(FileBytes file);
/// Decodes `window`, which is in stored coordinates.
void decode_pnm(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to);

/// The pixels of a PGM or PPM of bytes up to 255, row by row; null for another file.
[[nodiscard]] const std::uint8_t* stored_pixels(FileBytes file, const ImageInfo& info);

}  // namespace concord::data
