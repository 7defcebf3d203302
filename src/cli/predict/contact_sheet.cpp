// Cells on a canvas.
#include "concord/cli/predict/contact_sheet.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "concord/cli/predict/bitmap_font.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/resample.hpp"

namespace concord::cli {
namespace {

constexpr std::size_t kPictureSide = 128, kGap = 8;
constexpr std::size_t kCellWidth = kPictureSide + 2 * kGap;
constexpr std::size_t kLargeText = 2, kSmallText = 1;  // pixels for a pixel of a glyph
constexpr std::size_t kLineHeight = kLargeText * kGlyphHeight + 4;
constexpr std::uint8_t kWhite = 255, kBlack = 0, kGrey = 190;

class Canvas {
 public:
  Canvas(std::size_t height, std::size_t width) : height_(height), width_(width), pixels_(3 * height * width, kWhite) {}

  void set(std::size_t channel, std::size_t y, std::size_t x, std::uint8_t value) {
    pixels_[(channel * height_ + y) * width_ + x] = value;
  }
  void fill(std::size_t y, std::size_t x, std::size_t height, std::size_t width, std::uint8_t value) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < height; ++i) {
        for (std::size_t j = 0; j < width; ++j) set(c, y + i, x + j, value);
      }
    }
  }
  [[nodiscard]] Tensor tensor() const {
    Tensor picture(DType::u8, Shape{3, static_cast<std::int64_t>(height_), static_cast<std::int64_t>(width_)});
    std::ranges::copy(pixels_, picture.values<std::uint8_t>().begin());
    return picture;
  }

 private:
  std::size_t height_, width_;
  std::vector<std::uint8_t> pixels_;
};

/// The picture with sides of at most kPictureSide.
data::Image fitted_picture(const Tensor& picture) {
  const std::int64_t channels = picture.shape()[0], height = picture.shape()[1], width = picture.shape()[2];
  data::Image image;
  image.resize(height, width, channels);
  const auto from = picture.values<std::uint8_t>();
  const auto size = static_cast<std::size_t>(height * width), n = static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t i = 0; i < size; ++i) image.pixels[i * n + c] = from[c * size + i];
  }
  constexpr auto kSide = static_cast<std::int64_t>(kPictureSide);
  const std::int64_t longer = std::max(height, width);
  data::Image fitted;
  if (longer > kSide) {
    const auto side = [&](std::int64_t length) { return std::max<std::int64_t>(1, length * kSide / longer); };
    data::resample(image, {0, 0, static_cast<double>(width), static_cast<double>(height)}, side(height), side(width),
                   fitted);
    return fitted;
  }
  const std::int64_t factor = kSide / longer;
  fitted.resize(height * factor, width * factor, channels);
  for (std::int64_t y = 0; y < fitted.height; ++y) {
    for (std::int64_t x = 0; x < fitted.width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) {
        fitted.pixels[static_cast<std::size_t>((y * fitted.width + x) * channels + c)] =
            image.pixels[static_cast<std::size_t>((y / factor * width + x / factor) * channels + c)];
      }
    }
  }
  return fitted;
}

/// In the middle of the cell.
void draw_picture(Canvas& canvas, const Tensor& picture, std::size_t top, std::size_t left) {
  if (picture.elements() == 0) return canvas.fill(top, left, kPictureSide, kPictureSide, kGrey);
  const data::Image image = fitted_picture(picture);
  const auto height = static_cast<std::size_t>(image.height), width = static_cast<std::size_t>(image.width);
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t y = top + (kPictureSide - height) / 2, x = left + (kPictureSide - width) / 2;
  for (std::size_t i = 0; i < height; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t c = 0; c < 3; ++c) {
        canvas.set(c, y + i, x + j, image.pixels[(i * width + j) * channels + (channels == 3 ? c : 0)]);
      }
    }
  }
}

/// One character for each of the text, so that the font has a box for those it lacks.
std::string in_glyphs(std::string_view text) {
  std::string glyphs;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    glyphs += length == 1 ? text[0] : '\x7f';
    text.remove_prefix(length);
  }
  return glyphs;
}

void draw_text(Canvas& canvas, std::string_view line, std::size_t top, std::size_t left) {
  std::string text = in_glyphs(line);
  const auto room = [](std::size_t scale) { return (kCellWidth - 2) / (scale * (kGlyphWidth + 1)); };
  const std::size_t scale = text.size() <= room(kLargeText) ? kLargeText : kSmallText;
  if (text.size() > room(scale)) text = text.substr(0, room(scale) - 2) + "..";
  const std::size_t advance = scale * (kGlyphWidth + 1);
  std::size_t x = left + (kCellWidth - text.size() * advance) / 2;
  for (const char character : text) {
    const Glyph& glyph = glyph_of(character);
    for (std::size_t i = 0; i < kGlyphHeight; ++i) {
      for (std::size_t j = 0; j < kGlyphWidth; ++j) {
        if ((glyph[i] >> (kGlyphWidth - 1 - j) & 1U) == 0) continue;
        canvas.fill(top + i * scale, x + j * scale, scale, scale, kBlack);
      }
    }
    x += advance;
  }
}

}  // namespace

Tensor contact_sheet(const std::vector<SheetCell>& cells) {
  CONCORD_CHECK(!cells.empty() && std::ssize(cells) <= kMostSheetCells, ArgumentError,
                "a sheet shows 1 to {} pictures, got {}", kMostSheetCells, cells.size());
  std::size_t lines = 0;
  for (const SheetCell& cell : cells) lines = std::max(lines, cell.lines.size());
  const std::size_t cell_height = kGap + kPictureSide + 4 + lines * kLineHeight;
  const auto columns =
      std::min<std::size_t>(10, static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(cells.size())))));
  const std::size_t rows = (cells.size() + columns - 1) / columns;
  Canvas canvas(rows * cell_height + kGap, columns * kCellWidth);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t top = i / columns * cell_height + kGap, left = i % columns * kCellWidth;
    draw_picture(canvas, cells[i].picture, top, left + kGap);
    for (std::size_t l = 0; l < cells[i].lines.size(); ++l) {
      draw_text(canvas, cells[i].lines[l], top + kPictureSide + 4 + l * kLineHeight, left);
    }
  }
  return canvas.tensor();
}

}  // namespace concord::cli
