// Planes of stored pixels.
#include "concord/data/image/image_samples_raw.hpp"

#include <cstring>

#include "concord/core/check.hpp"
#include "concord/data/image/codec.hpp"

namespace concord::data {
namespace {

/// A stored plane: 0 red or grey, 1 green, 2 blue.
const std::uint8_t* raw_plane(std::span<const std::byte> bytes, const RawImage& raw, std::int64_t channel) {
  const std::int64_t place = raw.is_blue_first ? raw.channels - 1 - channel : channel;
  return reinterpret_cast<const std::uint8_t*>(bytes.data()) + place * raw.height * raw.width;
}

CONCORD_SIMD void copy_mirrored(const std::uint8_t* src, std::int64_t size, std::uint8_t* dst) {
  for (std::int64_t i = 0; i < size; ++i) dst[i] = src[size - 1 - i];
}

CONCORD_SIMD void join_planes(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue,
                              std::int64_t size, std::uint8_t* dst) {
  for (std::int64_t i = 0; i < size; ++i) {
    dst[3 * i] = red[i], dst[3 * i + 1] = green[i], dst[3 * i + 2] = blue[i];
  }
}

}  // namespace

void check_raw(const RawImage& raw, std::size_t bytes) {
  CONCORD_CHECK(raw.channels == 1 || raw.channels == 3, FormatError,
                "raw pixels of {} channels; images have 1 (grey) or 3 (colour)", raw.channels);
  const bool has_size = raw.height > 0 && raw.width > 0 && raw.height <= kMostPixels / raw.width;
  CONCORD_CHECK(has_size, FormatError, "raw pixels of {} × {}, but an image has 1 to {} pixels", raw.height, raw.width,
                kMostPixels);
  const auto wanted = static_cast<std::size_t>(raw.channels * raw.height * raw.width);
  CONCORD_CHECK(bytes == wanted, FormatError, "raw pixels of {} × {} × {} are {} bytes, and there are {}", raw.channels,
                raw.height, raw.width, wanted, bytes);
}

void unpack_raw(std::span<const std::byte> bytes, const RawImage& raw, const Window& window, std::int64_t channels,
                Image& to) {
  to.resize(window.height, window.width, channels);
  const bool is_colour = raw.channels == 3;
  const std::uint8_t* const red = raw_plane(bytes, raw, 0);
  const std::uint8_t* const green = is_colour ? raw_plane(bytes, raw, 1) : red;
  const std::uint8_t* const blue = is_colour ? raw_plane(bytes, raw, 2) : red;
  for (std::int64_t y = 0; y < window.height; ++y) {
    const std::int64_t first = (window.y + y) * raw.width + window.x;
    std::uint8_t* dst = to.row(y);
    if (channels == 1 && !is_colour) {
      std::memcpy(dst, red + first, static_cast<std::size_t>(window.width));
    } else if (channels == 1) {
      for (std::int64_t x = first; x < first + window.width; ++x) {
        *dst++ = static_cast<std::uint8_t>((red[x] * 19595 + green[x] * 38470 + blue[x] * 7471 + 0x8000) >> 16);
      }
    } else {
      join_planes(red + first, green + first, blue + first, window.width, dst);
    }
  }
}

void copy_raw(std::span<const std::byte> bytes, const RawImage& raw, std::int64_t x, std::int64_t y, bool mirror,
              const Planes& dst) {
  for (std::int64_t c = 0; c < dst.channels; ++c) {
    const std::uint8_t* const src = raw_plane(bytes, raw, c) + y * raw.width + x;
    if (!mirror && dst.width == raw.width) {
      std::memcpy(dst.plane(c), src, dst.plane_size());
      continue;
    }
    for (std::int64_t row = 0; row < dst.height; ++row) {
      const std::uint8_t* const from = src + row * raw.width;
      if (mirror) {
        copy_mirrored(from, dst.width, dst.row(c, row));
      } else {
        std::memcpy(dst.row(c, row), from, static_cast<std::size_t>(dst.width));
      }
    }
  }
}

}  // namespace concord::data
