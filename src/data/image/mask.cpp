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

/// The first number that is neither below `classes` nor kNoClass nor `fill`; the end if classes are not known.
auto find_no_class(std::span<const std::uint8_t> numbers, int classes, std::uint8_t fill) {
  if (classes == 0) return numbers.end();
  return std::ranges::find_if(
      numbers, [=](std::uint8_t number) { return number >= classes && number != kNoClass && number != fill; });
}

[[noreturn]] void fail_for_class(int number, const std::string& place, int classes) {
  throw FormatError(fmt::format("its mask has the number {}{}; {} classes have the numbers 0 to {}, and {} is no class",
                                number, place, classes, classes - 1, kNoClass));
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
  const std::span<const std::uint8_t> numbers = mask.pixels;
  const auto wrong = find_no_class(numbers, classes, kNoClass);
  if (wrong == numbers.end()) return;
  const std::int64_t place = wrong - numbers.begin();
  fail_for_class(*wrong, fmt::format(" (row {}, column {})", place / mask.width, place % mask.width), classes);
}

void check_cut_mask_classes(std::span<const std::uint8_t> numbers, int classes, std::uint8_t fill) {
  const auto wrong = find_no_class(numbers, classes, fill);
  if (wrong != numbers.end()) fail_for_class(*wrong, {}, classes);
}

}  // namespace concord::data
