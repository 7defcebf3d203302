// What the codecs share: numbers and marks in files, the sizes of an image, and rows of pixels with other channels.
// Internal to the image codecs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "concord/data/image/codec.hpp"

namespace concord::data {

using FileBytes = std::span<const std::byte>;

// Numbers at a place that the caller has checked.
[[nodiscard]] inline std::uint32_t u8_at(FileBytes file, std::size_t at) { return static_cast<std::uint8_t>(file[at]); }
[[nodiscard]] inline std::uint32_t u16_big(FileBytes file, std::size_t at) {
  return u8_at(file, at) << 8 | u8_at(file, at + 1);
}
[[nodiscard]] inline std::uint32_t u32_big(FileBytes file, std::size_t at) {
  return u16_big(file, at) << 16 | u16_big(file, at + 2);
}
[[nodiscard]] inline std::uint32_t u16_little(FileBytes file, std::size_t at) {
  return u8_at(file, at + 1) << 8 | u8_at(file, at);
}
[[nodiscard]] inline std::uint32_t u32_little(FileBytes file, std::size_t at) {
  return u16_little(file, at + 2) << 16 | u16_little(file, at);
}

[[nodiscard]] inline std::string_view text_of(FileBytes file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}
[[nodiscard]] inline bool begins_with(FileBytes file, std::string_view mark) { return text_of(file).starts_with(mark); }

/// The sizes as the file stores them, before it is turned upright.
struct StoredSize {
  std::int64_t height = 0, width = 0;
};
[[nodiscard]] inline StoredSize stored_size(const ImageInfo& info) {
  return info.orientation >= 5 ? StoredSize{info.width, info.height} : StoredSize{info.height, info.width};
}
/// Sets height and width. Throws FormatError if the image has no pixels, or more than kMostPixels.
void set_stored_size(ImageInfo& info, std::int64_t height, std::int64_t width);

/// Throws FormatError "<format>, byte <offset>: <message>".
[[noreturn]] void fail_to_decode(std::string_view format, std::size_t offset, std::string_view message);

/// Writes pixels [first, first + width) of a row of grey or RGB pixels, with 1 or 3 channels; grey from RGB is luma.
void take_pixels(const std::uint8_t* row, std::int64_t row_channels, std::int64_t first, std::int64_t width,
                 std::int64_t channels, std::uint8_t* to);

}  // namespace concord::data
