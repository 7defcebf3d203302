// Which codec a file is for, and pictures turned upright.
#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/data/image/bmp.hpp"
#include "concord/data/image/codec.hpp"
#include "concord/data/image/codec_parts.hpp"
#include "concord/data/image/jpeg.hpp"
#include "concord/data/image/png.hpp"
#include "concord/data/image/pnm.hpp"
#include "concord/io/png_encoder.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kWhatIsRead = "JPEG, PNG, BMP and PNM are read";

struct ForeignMark {
  std::size_t at;
  std::string_view mark;
  std::string_view what;
};

// What people take for pictures, by the bytes that it begins with.
constexpr std::array kForeign = std::to_array<ForeignMark>({
    {0, "GIF8", "a GIF image"},
    {8, "WEBP", "a WebP image"},
    {0, {"II*\0", 4}, "a TIFF image"},
    {0, {"MM\0*", 4}, "a TIFF image"},
    {0, {"II+\0", 4}, "a TIFF image"},
    {0, {"MM\0+", 4}, "a TIFF image"},
    {4, "ftypavif", "an AVIF image"},
    {4, "ftypavis", "an AVIF image"},
    {4, "ftyphei", "a HEIC image"},
    {4, "ftyphev", "a HEIC image"},
    {4, "ftypmif1", "a HEIC or AVIF image"},
    {4, "ftypmsf1", "a HEIC or AVIF image"},
    {4, "ftyp", "a video"},
    {0, {"\0\0\0\x0CjP  ", 8}, "a JPEG 2000 image"},
    {0, "\xFFO\xFFQ", "a JPEG 2000 image"},
    {0, {"\0\0\0\x0CJXL ", 8}, "a JPEG XL image"},
    {0, "\xFF\x0A", "a JPEG XL image"},
    {0, {"\0\0\1\0", 4}, "an icon"},
    {0, "8BPS", "a Photoshop image"},
    {0, "P1", "a PBM bitmap"},
    {0, "P4", "a PBM bitmap"},
    {0, "P7", "a PAM image"},
    {0, "PF", "a PFM image"},
    {0, "Pf", "a PFM image"},
    {0, "<svg", "an SVG drawing"},
    {0, "<?xml", "an XML file"},
    {0, "<!DOCTYPE", "a web page"},
    {0, "<!doctype", "a web page"},
    {0, "<html", "a web page"},
    {0, "version https://git-lfs", "a pointer of Git LFS: the file itself was not fetched"},
    {0, "PK\3\4", "a ZIP archive"},
    {0, "%PDF", "a PDF document"},
});

[[noreturn]] void refuse_foreign(FileBytes file) {
  CONCORD_CHECK(!file.empty(), FormatError, "the file is empty");
  const std::string_view text = text_of(file);
  for (const ForeignMark& foreign : kForeign) {
    CONCORD_CHECK(text.size() < foreign.at || !text.substr(foreign.at).starts_with(foreign.mark), FormatError, "{}; {}",
                  foreign.what, kWhatIsRead);
  }
  const bool zeros = std::ranges::all_of(text.substr(0, 64), [](char c) { return c == '\0'; });
  CONCORD_CHECK(!zeros, FormatError, "no image: the file begins with zeros");
  throw FormatError(fmt::format("no image of a known format; {}", kWhatIsRead));
}

// What an orientation does to a stored picture: EXIF 2.3, 4.6.4.A. First mirrored, then transposed.
struct Turn {
  bool mirror_x, mirror_y, transpose;
  StoredSize stored;

  explicit Turn(const ImageInfo& info)
      : mirror_x(info.orientation == 2 || info.orientation == 3 || info.orientation == 7 || info.orientation == 8),
        mirror_y(info.orientation == 3 || info.orientation == 4 || info.orientation == 6 || info.orientation == 7),
        transpose(info.orientation >= 5),
        stored(stored_size(info)) {}

  [[nodiscard]] Window mirrored(Window window) const {
    if (mirror_x) window.x = stored.width - window.x - window.width;
    if (mirror_y) window.y = stored.height - window.y - window.height;
    return window;
  }
  [[nodiscard]] Window transposed(const Window& window) const {
    return transpose ? Window{window.y, window.x, window.height, window.width} : window;
  }
};

void turn(const Image& from, const Turn& how, Image& to) {
  constexpr std::int64_t kBlock = 32;  // rows of both pictures stay in the cache
  const std::int64_t channels = from.channels;
  to.resize(how.transpose ? from.width : from.height, how.transpose ? from.height : from.width, channels);
  for (std::int64_t top = 0; top < to.height; top += kBlock) {
    for (std::int64_t left = 0; left < to.width; left += kBlock) {
      for (std::int64_t y = top; y < std::min(top + kBlock, to.height); ++y) {
        std::uint8_t* pixel = to.row(y) + left * channels;
        for (std::int64_t x = left; x < std::min(left + kBlock, to.width); ++x, pixel += channels) {
          std::int64_t from_x = how.transpose ? y : x, from_y = how.transpose ? x : y;
          if (how.mirror_x) from_x = from.width - 1 - from_x;
          if (how.mirror_y) from_y = from.height - 1 - from_y;
          std::copy_n(from.row(from_y) + from_x * channels, channels, pixel);
        }
      }
    }
  }
}

Window decode_stored(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to) {
  switch (info.format) {
    case ImageFormat::jpeg: return decode_jpeg(file, info, window, channels, to);
    case ImageFormat::png: decode_png(file, info, window, channels, to); break;
    case ImageFormat::bmp: decode_bmp(file, info, window, channels, to); break;
    case ImageFormat::pnm: decode_pnm(file, info, window, channels, to); break;
  }
  return window;
}

}  // namespace

ImageInfo read_image_info(std::span<const std::byte> file) {
  if (is_jpeg(file)) return jpeg_info(file);
  if (is_png(file)) return png_info(file);
  if (is_bmp(file)) return bmp_info(file);
  if (is_pnm(file)) return pnm_info(file);
  refuse_foreign(file);
}

Window decode_image(std::span<const std::byte> file, const ImageInfo& info, const Window& window, std::int64_t channels,
                    Image& to) {
  CONCORD_CHECK(channels == 1 || channels == 3, ArgumentError, "an image is decoded with 1 or 3 channels, not {}",
                channels);
  const bool within = window.x >= 0 && window.y >= 0 && window.width >= 1 && window.height >= 1 &&
                      window.x <= info.width - window.width && window.y <= info.height - window.height;
  CONCORD_CHECK(within, ArgumentError, "the part {}x{} at {},{} is not within an image of {}x{}", window.width,
                window.height, window.x, window.y, info.width, info.height);
  if (info.orientation == 1) return decode_stored(file, info, window, channels, to);
  const Turn how(info);
  Image stored;
  const Window got = decode_stored(file, info, how.mirrored(how.transposed(window)), channels, stored);
  turn(stored, how, to);
  return how.transposed(how.mirrored(got));
}

void decode_image(std::span<const std::byte> file, std::int64_t channels, Image& to) {
  const ImageInfo info = read_image_info(file);
  (void)decode_image(file, info, {0, 0, info.width, info.height}, channels, to);
}

std::string encode_png(const Image& image) {
  return io::encode_png(image.height, image.width, image.channels, image.pixels);
}

}  // namespace concord::data
