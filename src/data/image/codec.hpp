// Codecs: images in files of JPEG, PNG, BMP and PNM (PGM, PPM). Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "concord/data/image/image.hpp"

namespace concord::data {

enum class ImageFormat : std::uint8_t { jpeg, png, bmp, pnm };

/// What the beginning of a file says.
struct ImageInfo {
  ImageFormat format = ImageFormat::jpeg;
  std::int64_t height = 0, width = 0;  // upright, that is after `orientation`
  std::int64_t channels = 0;  // of the file: 1 grey, 2 grey and alpha, 3 RGB or palette, 4 RGB and alpha, or CMYK
  int bits = 8;               // of a channel
  int orientation = 1;        // 1 … 8: the tag of EXIF 2.3, 4.6.4.A; 1: upright as stored
  /// For a caller to set, of a PNG of up to 8 bits that has a palette or is grey: decode_image gives the numbers that are
  /// stored, such as classes, in 1 channel, and no colours.
  bool as_numbers = false;
};

/// An image that has more pixels is refused before memory is taken for it.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

/// Reads the beginning of a file. Throws FormatError (which does not know the name of the file) if it is none of the
/// formats, is empty or damaged, is an animation, or has 0 or more than kMostPixels pixels.
[[nodiscard]] ImageInfo read_image_info(std::span<const std::byte> file);

/// Decodes at least the pixels of `window`, which is in upright coordinates and lies within the image, with 1 or 3
/// `channels`. Returns what `to` holds, a rectangle around `window`: a JPEG is not decoded outside it. Grey from colour
/// is ITU-R BT.601 luma; an alpha channel is left out; 16 bits become the upper 8; CMYK becomes RGB. Throws FormatError
/// if the file is damaged or cut off.
Window decode_image(std::span<const std::byte> file, const ImageInfo& info, const Window& window, std::int64_t channels,
                    Image& to);

/// The whole image.
void decode_image(std::span<const std::byte> file, std::int64_t channels, Image& to);

/// JPEG of an image with 1 or 3 channels; `quality` 1 … 100.
[[nodiscard]] std::string encode_jpeg(const Image& image, int quality);
/// PNG of an image with 1 or 3 channels.
[[nodiscard]] std::string encode_png(const Image& image);

}  // namespace concord::data
