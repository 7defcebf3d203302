// Image: 8-bit pixels as files have them, between decoding and the columns of a sample. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace concord::data {

/// u8 pixels, rows from top to bottom, the channels of a pixel side by side.
struct Image {
  std::int64_t height = 0, width = 0, channels = 0;  // 1 channel: grey; 3: red, green, blue
  std::vector<std::uint8_t> pixels;                  // height·width·channels

  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(width * channels); }
  [[nodiscard]] std::uint8_t* row(std::int64_t y) { return pixels.data() + static_cast<std::size_t>(y) * row_bytes(); }
  [[nodiscard]] const std::uint8_t* row(std::int64_t y) const {
    return pixels.data() + static_cast<std::size_t>(y) * row_bytes();
  }
  /// Takes other sizes. Pixels are undefined; memory is reused.
  void resize(std::int64_t new_height, std::int64_t new_width, std::int64_t new_channels) {
    height = new_height, width = new_width, channels = new_channels;
    pixels.resize(static_cast<std::size_t>(height * width * channels));
  }
};

/// A rectangle of pixels.
struct Window {
  std::int64_t x = 0, y = 0, width = 0, height = 0;
};

}  // namespace concord::data
