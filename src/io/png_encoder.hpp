// PNG in memory: for write_png and for the images of data sets. Internal to the library.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace concord::io {

/// The PNG file of an image: rows from top to bottom, the 1 or 3 `channels` of a pixel side by side. Throws
/// ArgumentError if the sizes are not those of `pixels`, OutOfMemory.
[[nodiscard]] std::string encode_png(std::int64_t height, std::int64_t width, std::int64_t channels,
                                     std::span<const std::uint8_t> pixels);

}  // namespace concord::io
