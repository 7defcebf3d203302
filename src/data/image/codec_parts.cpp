// Sizes, errors and rows of pixels that the codecs share.
#include "concord/data/image/codec_parts.hpp"

#include <algorithm>

#include "concord/core/check.hpp"

namespace concord::data {

void set_stored_size(ImageInfo& info, std::int64_t height, std::int64_t width) {
  CONCORD_CHECK(height >= 1 && width >= 1, FormatError, "the image has no pixels: {}x{}", width, height);
  CONCORD_CHECK(height <= kMostPixels / width, FormatError, "the image is too large: {}x{} pixels, at most {} are read",
                width, height, kMostPixels);
  info.height = info.orientation >= 5 ? width : height;
  info.width = info.orientation >= 5 ? height : width;
}

void fail_to_decode(std::string_view format, std::size_t offset, std::string_view message) {
  throw FormatError(fmt::format("{}, byte {}: {}", format, offset, message));
}

void take_pixels(const std::uint8_t* row, std::int64_t row_channels, std::int64_t first, std::int64_t width,
                 std::int64_t channels, std::uint8_t* to) {
  row += first * row_channels;
  if (row_channels == channels) {
    std::copy_n(row, width * channels, to);
  } else if (row_channels == 1) {
    for (std::int64_t x = 0; x < width; ++x) std::fill_n(to + 3 * x, 3, row[x]);
  } else {
    for (std::int64_t x = 0; x < width; ++x) {  // ITU-R BT.601 in 16 bits
      const std::uint32_t red = row[3 * x], green = row[3 * x + 1], blue = row[3 * x + 2];
      to[x] = static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
    }
  }
}

}  // namespace concord::data
