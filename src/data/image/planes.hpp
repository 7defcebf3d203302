// Planes: the pixels of an image as the network takes them, channel after channel. Augmentation changes them in place.
// Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace concord::data {

/// u8 [channels, height, width] in memory of a caller.
struct Planes {
  std::uint8_t* pixels = nullptr;
  std::int64_t channels = 0, height = 0, width = 0;

  [[nodiscard]] std::size_t plane_size() const { return static_cast<std::size_t>(height * width); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(channels) * plane_size(); }
  [[nodiscard]] std::uint8_t* plane(std::int64_t channel) const {
    return pixels + static_cast<std::size_t>(channel) * plane_size();
  }
  [[nodiscard]] std::uint8_t* row(std::int64_t channel, std::int64_t y) const {
    return plane(channel) + static_cast<std::size_t>(y * width);
  }
};

}  // namespace concord::data
