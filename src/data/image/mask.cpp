// What masks must be.
#include "concord/data/image/mask.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/data/image/image_samples_raw.hpp"

namespace concord::data {
namespace {

enum PngColour : int { kGrey = 0, kColours = 2, kPalette = 3, kGreyAlpha = 4, kColoursAlpha = 6, kNoPng = -1 };

/// The colour type in the header of a PNG.
int png_colour(const ImageInfo& info, std::span<const std::byte> file) {
  constexpr std::size_t kColourByte = 25;
  if (info.format != ImageFormat::png || file.size() <= kColourByte) return kNoPng;
  return static_cast<int>(file[kColourByte]);
}

std::string kind_of(const ImageInfo& info, int colour) {
  if (info.format == ImageFormat::jpeg) return "a JPEG, which does not keep numbers";
  if (info.format == ImageFormat::bmp) return "a BMP";
  if (info.format == ImageFormat::pnm) return "a PNM";
  if (info.bits > 8) return fmt::format("a PNG of {} bits", info.bits);
  if (colour == kColours || colour == kColoursAlpha) return "a PNG with colours (RGB) without a palette";
  return "a PNG of grey levels with an alpha channel";
}

}  // namespace

ImageInfo read_mask_info(const Record& mask) {
  ImageInfo info;
  if (mask.raw) {
    check_raw(*mask.raw, mask.bytes.size());
    CONCORD_CHECK(mask.raw->channels == 1, FormatError, "its mask has {} channels; a mask has 1, of classes",
                  mask.raw->channels);
    info.height = mask.raw->height, info.width = mask.raw->width, info.channels = 1;
    return info;
  }
  try {
    info = read_image_info(mask.bytes);
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("its mask: {}", error.what()));
  }
  const int colour = png_colour(info, mask.bytes);
  CONCORD_CHECK(
      (colour == kGrey || colour == kPalette) && info.bits <= 8, FormatError,
      "its mask is no PNG of up to 8 bits with a palette or grey levels, whose numbers are the classes; it is "
      "{}",
      kind_of(info, colour));
  info.as_numbers = true;
  return info;
}

void check_mask_size(const ImageInfo& mask, std::int64_t height, std::int64_t width) {
  CONCORD_CHECK(mask.height == height && mask.width == width, FormatError,
                "its mask has {} × {} pixels, the image has {} × {}", mask.height, mask.width, height, width);
}

void decode_mask(const Record& mask, const ImageInfo& info, Image& to) {
  if (mask.raw) return unpack_raw(mask.bytes, *mask.raw, {0, 0, info.width, info.height}, 1, to);
  try {
    static_cast<void>(decode_image(mask.bytes, info, {0, 0, info.width, info.height}, 1, to));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("its mask: {}", error.what()));
  }
}

void check_mask_classes(const Image& mask, int classes) {
  if (classes == 0) return;
  const auto wrong = std::ranges::find_if(
      mask.pixels, [classes](std::uint8_t number) { return number >= classes && number != kNoClass; });
  if (wrong == mask.pixels.end()) return;
  const std::int64_t place = wrong - mask.pixels.begin();
  throw FormatError(fmt::format(
      "its mask has the number {} (row {}, column {}); {} classes have the numbers 0 to {}, and {} is no class", *wrong,
      place / mask.width, place % mask.width, classes, classes - 1, kNoClass));
}

}  // namespace concord::data
