// PNG files: every kind of colour and depth, interlaced or not, and every kind of damage.
#include <png.h>

#include "codec_files.hpp"

using namespace concord;
using namespace concord::test;
using data::Image;

namespace {

struct PngKind {
  int colour, bits, channels;
};

// A row of any bits; of a palette, colours that it has.
std::vector<std::uint8_t> png_row(const PngKind& kind, std::size_t width, std::size_t y) {
  const std::size_t samples = width * static_cast<std::size_t>(kind.channels);
  std::vector<std::uint8_t> row((samples * static_cast<std::size_t>(kind.bits) + 7) / 8);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<std::uint8_t>(kind.colour == PNG_COLOR_TYPE_PALETTE && kind.bits == 8 ? (i + y) % 200
                                                                                               : i * 37 + y * 11);
  }
  return row;
}

std::string png_file(const PngKind& kind, std::size_t width, std::size_t height, bool interlaced) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp object, png_bytep bytes, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(object))->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.bits, kind.colour,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette(kind.bits == 8 ? 200 : std::size_t{1} << kind.bits);
  for (std::size_t i = 0; i < palette.size(); ++i) {
    const auto value = static_cast<png_byte>(i);
    palette[i] = {static_cast<png_byte>(255 - value), static_cast<png_byte>(value * 5), value};
  }
  if (kind.colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  png_color_16 transparent{};
  transparent.red = transparent.green = transparent.blue = transparent.gray = 1;
  if (kind.colour == PNG_COLOR_TYPE_GRAY || kind.colour == PNG_COLOR_TYPE_RGB) {
    png_set_tRNS(png, info, nullptr, 0, &transparent);
  }
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<png_bytep> rows;
  for (std::size_t y = 0; y < height; ++y) pixels.push_back(png_row(kind, width, y));
  for (auto& row : pixels) rows.push_back(row.data());
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

// The upper 8 bits of a sample, or its bits stretched to 8.
std::uint8_t png_sample(const PngKind& kind, const std::vector<std::uint8_t>& row, std::size_t i) {
  if (kind.bits >= 8) return row[i * static_cast<std::size_t>(kind.bits / 8)];
  const auto bits = static_cast<std::size_t>(kind.bits), each = 8 / bits;
  const int value = row[i / each] >> (8 - bits - i % each * bits) & ((1 << bits) - 1);
  return static_cast<std::uint8_t>(kind.colour == PNG_COLOR_TYPE_PALETTE ? value : value * 255 / ((1 << bits) - 1));
}

Image png_expected(const PngKind& kind, std::size_t width, std::size_t height) {
  Image image;
  image.resize(static_cast<std::int64_t>(height), static_cast<std::int64_t>(width), 3);
  const auto channels = static_cast<std::size_t>(kind.channels);
  for (std::size_t y = 0; y < height; ++y) {
    const std::vector<std::uint8_t> row = png_row(kind, width, y);
    for (std::size_t x = 0; x < width; ++x) {
      std::uint8_t* const pixel = image.row(static_cast<std::int64_t>(y)) + 3 * x;
      for (std::size_t c = 0; c < 3; ++c) pixel[c] = png_sample(kind, row, x * channels + (channels >= 3 ? c : 0));
      if (kind.colour == PNG_COLOR_TYPE_PALETTE) {
        const std::uint8_t index = pixel[0];
        pixel[0] = static_cast<std::uint8_t>(255 - index), pixel[1] = static_cast<std::uint8_t>(index * 5);
      }
    }
  }
  return image;
}

}  // namespace

TEST_CASE("PNG files of every kind are read", "[data]") {
  const auto [colour, bits, channels, stored] = GENERATE(table<int, int, int, int>({
      {PNG_COLOR_TYPE_GRAY, 1, 1, 1},
      {PNG_COLOR_TYPE_GRAY, 2, 1, 1},
      {PNG_COLOR_TYPE_GRAY, 4, 1, 1},
      {PNG_COLOR_TYPE_GRAY, 8, 1, 1},
      {PNG_COLOR_TYPE_GRAY, 16, 1, 1},
      {PNG_COLOR_TYPE_RGB, 8, 3, 3},
      {PNG_COLOR_TYPE_RGB, 16, 3, 3},
      {PNG_COLOR_TYPE_PALETTE, 1, 3, 1},
      {PNG_COLOR_TYPE_PALETTE, 2, 3, 1},
      {PNG_COLOR_TYPE_PALETTE, 4, 3, 1},
      {PNG_COLOR_TYPE_PALETTE, 8, 3, 1},
      {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2, 2},
      {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 2, 2},
      {PNG_COLOR_TYPE_RGB_ALPHA, 8, 4, 4},
      {PNG_COLOR_TYPE_RGB_ALPHA, 16, 4, 4},
  }));
  const PngKind kind{colour, bits, stored};
  for (const bool interlaced : {false, true}) {
    for (const auto& [width, height] : {std::pair<std::size_t, std::size_t>{23, 13}, {1, 1}, {5, 2}}) {
      INFO("colour " << colour << ", " << bits << " bits, " << width << "x" << height);
      const std::string file = png_file(kind, width, height, interlaced);
      const data::ImageInfo info = data::read_image_info(image_bytes(file));
      CHECK(info.channels == channels);
      CHECK(info.bits == bits);
      CHECK(info.width == static_cast<std::int64_t>(width));
      const Image expected = png_expected(kind, width, height);
      CHECK(image_difference(decoded_image(file), expected) == 0);
      if (width > 20) {
        const data::Window window{3, 4, 9, 7};
        CHECK(image_difference(decoded_part(file, window, 3), image_part(expected, window)) == 0);
        CHECK_NOTHROW(decoded_part(file, window, 1));
      }
    }
  }
}

TEST_CASE("a PNG with few colours is read as PIL reads it", "[data]") {
  CHECK(image_difference(decoded_image(golden_image("palette.png")), decoded_image(golden_image("palette.ppm"))) == 0);
}

TEST_CASE("a PNG that is cut off or has a wrong checksum is refused", "[data]") {
  const bool interlaced = GENERATE(false, true);
  const std::string file = png_file({PNG_COLOR_TYPE_RGB_ALPHA, 8, 4}, 19, 11, interlaced);
  for (std::size_t length = 1; length < file.size(); ++length) {
    CHECK_THROWS_AS(decoded_image(file.substr(0, length)), FormatError);
  }
  CHECK_THAT(image_refusal(file.substr(0, file.size() - 1)), contains("PNG, byte") && contains("cut off"));
  for (std::size_t at = 0; at < file.size(); ++at) {
    INFO("byte " << at);
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CHECK_THROWS_AS(decoded_image(damaged), FormatError);
  }
  std::string damaged = file;
  damaged[30] = static_cast<char>(damaged[30] ^ 1);
  CHECK_THAT(image_refusal(damaged), contains("PNG, byte") && contains("CRC"));
}

TEST_CASE("animated and enormous PNG files are refused", "[data]") {
  const std::string file = data::encode_png(test_picture(9, 8, 3));
  const std::string animated =
      file.substr(0, 33) + png_chunk_text("acTL", big_endian_text(2, 4) + big_endian_text(0, 4)) + file.substr(33);
  CHECK_THAT(image_refusal(animated), contains("animation"));
  const auto with_sizes = [&](std::uint32_t width, std::uint32_t height) {
    return file.substr(0, 8) +
           png_chunk_text("IHDR", big_endian_text(width, 4) + big_endian_text(height, 4) + file.substr(24, 5)) +
           file.substr(33);
  };
  CHECK_THAT(image_refusal(with_sizes(60000, 60000)), contains("too large: 60000x60000"));
  CHECK_THAT(image_refusal(with_sizes(0xFFFFFFFF, 0xFFFFFFFF)), contains("too large"));
  CHECK_THAT(image_refusal(with_sizes(16000, 16000)), contains("cut off"));
  CHECK_THAT(image_refusal(with_sizes(0, 9)), contains("no pixels"));
  CHECK_THROWS_AS(decoded_image(with_sizes(8, 10)), FormatError);
  CHECK_THAT(image_refusal(file.substr(0, 33) + png_chunk_text("IEND", "")), contains("no picture"));
  CHECK_THAT(image_refusal(file.substr(0, 8) + file.substr(33)), contains("not the first chunk"));
}
