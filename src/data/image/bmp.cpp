// BMP: the file header, the headers of OS/2 1 and of Windows 3 to 5 (BITMAPCOREHEADER … BITMAPV5HEADER), and pixels
// without compression.
#include "concord/data/image/bmp.hpp"

#include <array>
#include <bit>
#include <vector>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

constexpr std::string_view kBmp = "BMP";
constexpr std::size_t kBmpHeader = 14;  // where the header of the picture begins

struct BmpLayout {
  std::int64_t height = 0, width = 0;
  bool top_down = false;
  int bits = 0;  // of a pixel
  std::size_t pixels = 0, row_bytes = 0;
  std::size_t palette = 0, colours = 0, colour_bytes = 4;
  std::array<std::uint32_t, 4> masks{};  // red, green, blue, alpha; where there is no palette
};

void require_bmp(FileBytes file, std::size_t at, std::size_t bytes, std::string_view what) {
  if (at > file.size() || file.size() - at < bytes) fail_to_decode(kBmp, file.size(), fmt::format("cut off: {}", what));
}

void set_bmp_masks(FileBytes file, std::size_t header, std::uint32_t compression, BmpLayout& layout) {
  constexpr std::uint32_t kBitFields = 3, kAlphaBitFields = 6;
  constexpr std::size_t kMasks = kBmpHeader + 40;
  if (compression == kBitFields || compression == kAlphaBitFields) {
    const std::size_t count = header >= 56 || compression == kAlphaBitFields ? 4 : 3;
    require_bmp(file, kMasks, 4 * count, "the masks of colours");
    for (std::size_t c = 0; c < count; ++c) {
      const std::uint32_t mask = layout.masks[c] = u32_little(file, kMasks + 4 * c);
      const std::uint32_t ones = mask == 0 ? 0 : mask >> std::countr_zero(mask);
      if (!std::has_single_bit(std::uint64_t{ones} + 1)) {
        fail_to_decode(kBmp, kMasks + 4 * c, fmt::format("a mask of a colour with gaps: {:#x}", mask));
      }
    }
  } else if (layout.bits == 16) {
    layout.masks = {0x7C00, 0x03E0, 0x001F, 0};
  } else {
    layout.masks = {0xFF0000, 0x00FF00, 0x0000FF, 0};
  }
}

BmpLayout bmp_layout(FileBytes file) {
  require_bmp(file, kBmpHeader, 4, "the header");
  const std::size_t header = u32_little(file, kBmpHeader);
  BmpLayout layout;
  std::uint32_t compression = 0;
  if (header == 12) {
    require_bmp(file, kBmpHeader, header, "the header");
    layout.width = u16_little(file, 18), layout.height = u16_little(file, 20);
    layout.bits = static_cast<int>(u16_little(file, 24));
    layout.colour_bytes = 3;
  } else if (header >= 40 && header <= 256) {
    require_bmp(file, kBmpHeader, header, "the header");
    layout.width = static_cast<std::int32_t>(u32_little(file, 18));
    layout.height = static_cast<std::int32_t>(u32_little(file, 22));
    layout.bits = static_cast<int>(u16_little(file, 28));
    compression = u32_little(file, 30);
    layout.colours = u32_little(file, 46);
  } else {
    fail_to_decode(kBmp, kBmpHeader, fmt::format("an unknown header of {} bytes", header));
  }
  if (layout.height < 0) layout.top_down = true, layout.height = -layout.height;
  if (compression == 1 || compression == 2) fail_to_decode(kBmp, 30, "run-length compression (RLE) is not read");
  const bool masked = compression == 3 || compression == 6;
  const bool known = masked ? layout.bits == 16 || layout.bits == 32
                            : layout.bits == 1 || layout.bits == 4 || layout.bits == 8 || layout.bits == 16 ||
                                  layout.bits == 24 || layout.bits == 32;
  if ((compression != 0 && !masked) || !known) {
    fail_to_decode(kBmp, 28, fmt::format("{} bits a pixel with compression {} are not read", layout.bits, compression));
  }
  if (layout.bits <= 8) {
    const std::size_t most = std::size_t{1} << layout.bits;
    layout.palette = kBmpHeader + header;
    if (layout.colours == 0 || layout.colours > most) layout.colours = most;
  } else {
    set_bmp_masks(file, header, compression, layout);
  }
  layout.pixels = u32_little(file, 10);
  return layout;
}

// Row y of the picture in the file, upright, after the sizes were checked.
FileBytes bmp_row(FileBytes file, const BmpLayout& layout, std::int64_t y) {
  const std::int64_t stored = layout.top_down ? y : layout.height - 1 - y;
  return file.subspan(layout.pixels + static_cast<std::size_t>(stored) * layout.row_bytes);
}

void bmp_palette_pixels(FileBytes file, const BmpLayout& layout, std::int64_t y, const Window& window,
                        std::vector<std::uint8_t>& rgb) {
  const FileBytes row = bmp_row(file, layout, y);
  const auto bits = static_cast<std::size_t>(layout.bits), each = 8 / bits;
  for (std::size_t i = 0; i < static_cast<std::size_t>(window.width); ++i) {
    const std::size_t x = static_cast<std::size_t>(window.x) + i, shift = 8 - bits - x % each * bits;
    const std::size_t colour = u8_at(row, x / each) >> shift & ((1U << bits) - 1);
    if (colour >= layout.colours) {
      fail_to_decode(kBmp, file.size() - row.size() + x / each,
                     fmt::format("colour {} of a palette of {}", colour, layout.colours));
    }
    const std::size_t entry = layout.palette + colour * layout.colour_bytes;  // blue, green, red
    for (std::size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<std::uint8_t>(file[entry + 2 - c]);
  }
}

void bmp_masked_pixels(FileBytes file, const BmpLayout& layout, std::int64_t y, const Window& window,
                       std::vector<std::uint8_t>& rgb) {
  const FileBytes row = bmp_row(file, layout, y);
  const auto bytes = static_cast<std::size_t>(layout.bits / 8);
  for (std::size_t i = 0; i < static_cast<std::size_t>(window.width); ++i) {
    const std::size_t at = (static_cast<std::size_t>(window.x) + i) * bytes;
    std::uint32_t pixel = 0;
    for (std::size_t b = 0; b < bytes; ++b) pixel |= u8_at(row, at + b) << (8 * b);
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t mask = layout.masks[c];
      const int shift = mask == 0 ? 0 : std::countr_zero(mask);
      const std::uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
      const std::uint64_t scaled = most == 0 || most == 255 ? value : (value * 255 + most / 2) / most;
      rgb[3 * i + c] = static_cast<std::uint8_t>(scaled);
    }
  }
}

}  // namespace

bool is_bmp(FileBytes file) { return begins_with(file, "BM"); }

ImageInfo bmp_info(FileBytes file) {
  const BmpLayout layout = bmp_layout(file);
  ImageInfo info{.format = ImageFormat::bmp, .channels = layout.masks[3] != 0 ? 4 : 3};
  set_stored_size(info, layout.height, layout.width);
  return info;
}

void decode_bmp(FileBytes file, const ImageInfo& info, const Window& window, std::int64_t channels, Image& to) {
  BmpLayout layout = bmp_layout(file);
  const std::size_t row_bits = static_cast<std::size_t>(info.width) * static_cast<std::size_t>(layout.bits);
  layout.row_bytes = (row_bits + 31) / 32 * 4;
  // Some programs leave out the filling of the last row.
  require_bmp(file, layout.pixels, layout.row_bytes * static_cast<std::size_t>(info.height - 1) + (row_bits + 7) / 8,
              "the pixels");
  if (layout.bits <= 8) require_bmp(file, layout.palette, layout.colours * layout.colour_bytes, "the palette");
  to.resize(window.height, window.width, channels);
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * window.width));
  for (std::int64_t y = 0; y < window.height; ++y) {
    if (layout.bits <= 8) {
      bmp_palette_pixels(file, layout, window.y + y, window, rgb);
    } else {
      bmp_masked_pixels(file, layout, window.y + y, window, rgb);
    }
    take_pixels(rgb.data(), 3, 0, window.width, channels, to.row(y));
  }
}

}  // namespace concord::data
