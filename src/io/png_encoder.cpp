// PNG through libpng's simplified interface.
#include "concord/io/png_encoder.hpp"

#include <png.h>

#include <cstring>

#include "concord/core/check.hpp"

namespace concord::io {

std::string encode_png(std::int64_t height, std::int64_t width, std::int64_t channels,
                       std::span<const std::uint8_t> pixels) {
  const bool is_image = height >= 1 && width >= 1 && (channels == 1 || channels == 3) &&
                        pixels.size() == static_cast<std::size_t>(height * width * channels);
  CONCORD_CHECK(is_image, ArgumentError, "an image of {}x{} with {} channels and {} bytes cannot be a PNG", width,
                height, channels, pixels.size());
  constexpr std::int64_t kLongest = 1'000'000;  // libpng's own limit
  CONCORD_CHECK(height <= kLongest && width <= kLongest, IoError, "an image of {}x{} is too large for a PNG", width,
                height);
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(bytes, '\0');
  const int written = png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr);
  CONCORD_CHECK(written != 0, IoError, "cannot encode an image of {}x{}: {}", width, height, image.message);
  file.resize(bytes);
  return file;
}

}  // namespace concord::io
