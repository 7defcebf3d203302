// Fuzzing the codecs of images, and resampling: what is decoded of a part is what the whole image has there, and damage
// is a FormatError.
#include <algorithm>
#include <cstdlib>

#include "concord/core/error.hpp"
#include "concord/data/image/codec.hpp"
#include "concord/data/image/resample.hpp"

using namespace concord::data;

namespace {

// The picture, or one without pixels.
Window decoded(std::span<const std::byte> file, const ImageInfo& info, const Window& window, std::int64_t channels,
               Image& to) {
  try {
    const Window got = decode_image(file, info, window, channels, to);
    const bool around = got.x <= window.x && got.y <= window.y && got.x + got.width >= window.x + window.width &&
                        got.y + got.height >= window.y + window.height;
    if (!around || to.height != got.height || to.width != got.width || to.channels != channels) std::abort();
    return got;
  } catch (const concord::FormatError& error) {
    if (*error.what() == '\0') std::abort();
    to.resize(0, 0, channels);
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const auto file = std::as_bytes(std::span(data, size));
  ImageInfo info;
  try {
    info = read_image_info(file);
  } catch (const concord::FormatError& error) {
    if (*error.what() == '\0') std::abort();
    return 0;
  }
  if (info.height > 4096 || info.width > 4096) return 0;  // in the time of one, thousands of others
  const std::int64_t x = data[size - 1] % info.width, y = data[size - 2] % info.height;
  const Window window{x, y, 1 + data[size - 3] % (info.width - x), 1 + data[size - 4] % (info.height - y)};
  for (const std::int64_t channels : {1, 3}) {
    Image whole, part;
    decoded(file, info, {0, 0, info.width, info.height}, channels, whole);
    const Window got = decoded(file, info, window, channels, part);
    if (whole.height == 0) continue;  // the damage may lie behind the part
    if (part.height == 0) std::abort();
    for (std::int64_t row = window.y; row < window.y + window.height; ++row) {
      const std::uint8_t* const expected = whole.row(row) + window.x * channels;
      if (!std::equal(expected, expected + window.width * channels,
                      part.row(row - got.y) + (window.x - got.x) * channels)) {
        std::abort();
      }
    }
    Image smaller, nearest;
    const auto left = static_cast<double>(window.x - got.x), top = static_cast<double>(window.y - got.y);
    const Box box{left + 0.25, top, static_cast<double>(window.width) - 0.5, static_cast<double>(window.height)};
    resample(part, box, 1 + data[0] % 70, 1 + data[1] % 70, smaller);
    resample_nearest(part, box, smaller.height, smaller.width, nearest);
    to_planes(smaller, data[2] % 2 != 0, nearest.pixels);
  }
  return 0;
}
