// What the tests of image codecs share: files in memory, recorded pictures, and damage.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/image/codec.hpp"
#include "files.hpp"
#include "goldens.hpp"

namespace concord::test {

[[nodiscard]] inline std::span<const std::byte> image_bytes(const std::string& file) {
  return std::as_bytes(std::span(file));
}

[[nodiscard]] inline data::Image decoded_image(const std::string& file, std::int64_t channels = 3) {
  data::Image image;
  data::decode_image(image_bytes(file), channels, image);
  return image;
}

/// Of a file of tests/goldens/images.
[[nodiscard]] inline std::string golden_image(const std::string& name) {
  return content_of(golden_path("images/" + name));
}

[[nodiscard]] inline std::string image_refusal(const std::string& file) {
  return message_of<FormatError>([&] { (void)decoded_image(file); });
}

/// The largest difference of a channel; 256 where the sizes differ.
[[nodiscard]] inline int image_difference(const data::Image& a, const data::Image& b) {
  if (a.height != b.height || a.width != b.width || a.channels != b.channels) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

/// The pixels of a window of an image.
[[nodiscard]] inline data::Image image_part(const data::Image& image, const data::Window& window) {
  data::Image part;
  part.resize(window.height, window.width, image.channels);
  for (std::int64_t y = 0; y < window.height; ++y) {
    std::copy_n(image.row(window.y + y) + window.x * image.channels, part.row_bytes(), part.row(y));
  }
  return part;
}

/// The pixels of a window, decoded without the rest of the image.
[[nodiscard]] inline data::Image decoded_part(const std::string& file, const data::Window& window,
                                              std::int64_t channels) {
  data::Image image;
  const data::ImageInfo info = data::read_image_info(image_bytes(file));
  const data::Window got = data::decode_image(image_bytes(file), info, window, channels, image);
  REQUIRE(got.width == image.width);
  REQUIRE(got.height == image.height);
  REQUIRE((got.x >= 0 && got.y >= 0 && got.x + got.width <= info.width && got.y + got.height <= info.height));
  REQUIRE((got.x <= window.x && got.y <= window.y));
  REQUIRE((got.x + got.width >= window.x + window.width && got.y + got.height >= window.y + window.height));
  return image_part(image, {window.x - got.x, window.y - got.y, window.width, window.height});
}

/// A picture with smooth parts, an edge and every channel its own.
[[nodiscard]] inline data::Image test_picture(std::int64_t height, std::int64_t width, std::int64_t channels) {
  data::Image image;
  image.resize(height, width, channels);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t value = x > width / 2 && y > height / 3 ? 220 - 60 * c : 3 * x + 2 * y + 50 * c;
        image.row(y)[x * channels + c] = static_cast<std::uint8_t>(value % 256);
      }
    }
  }
  return image;
}

[[nodiscard]] inline std::string big_endian_text(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}
[[nodiscard]] inline std::string little_endian_text(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

[[nodiscard]] inline std::string png_chunk_text(const std::string& type, const std::string& content) {
  const std::string checked = type + content;
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian_text(static_cast<std::uint32_t>(content.size()), 4) + checked +
         big_endian_text(static_cast<std::uint32_t>(sum), 4);
}

/// EXIF's structure with an orientation, in either byte order.
[[nodiscard]] inline std::string exif_text(int orientation, bool little) {
  const auto number = [&](std::uint32_t value, int bytes) {
    return little ? little_endian_text(value, bytes) : big_endian_text(value, bytes);
  };
  const auto entry = [&](std::uint32_t tag, const std::string& value) {
    return number(tag, 2) + number(3, 2) + number(1, 4) + value + number(0, 2);
  };
  return (little ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) + entry(0x0100, number(7, 2)) +
         entry(0x0112, number(static_cast<std::uint32_t>(orientation), 2)) + number(0, 4);
}

}  // namespace concord::test
