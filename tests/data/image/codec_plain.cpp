// BMP and PNM files, written by hand: layouts, depths, orders of rows, and every kind of damage.
#include "codec_files.hpp"

using namespace concord;
using namespace concord::test;
using data::Image;

namespace {

struct BmpParts {
  std::uint32_t header = 40, width = 3, height = 2, bits = 24, compression = 0, colours = 0;
  std::string after_header = {}, pixels = {};
};

std::string bmp_file(const BmpParts& parts) {
  const auto u = little_endian_text;
  std::string dib = parts.header == 12
                        ? u(12, 4) + u(parts.width, 2) + u(parts.height, 2) + u(1, 2) + u(parts.bits, 2)
                        : u(parts.header, 4) + u(parts.width, 4) + u(parts.height, 4) + u(1, 2) + u(parts.bits, 2) +
                              u(parts.compression, 4) + u(0, 4) + u(0, 8) + u(parts.colours, 4) + u(0, 4);
  dib += parts.after_header;
  return "BM" + u(0, 8) + u(static_cast<std::uint32_t>(14 + dib.size()), 4) + dib + parts.pixels;
}

using Bytes = std::vector<std::uint8_t>;

// Black, red / green, white and so on, as three channels.
const Bytes kTwoByTwo{255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7};

}  // namespace

TEST_CASE("BMP files of every kind are read", "[data]") {
  const std::string blue_row("\xFF\0\0\7\x8\x9\0\0", 8), red_row("\0\0\xFF\0\xFF\0\0\0", 8);  // bottom, top
  BmpParts parts{.width = 2, .pixels = blue_row + red_row};
  CHECK(decoded_image(bmp_file(parts)).pixels == kTwoByTwo);
  CHECK(data::read_image_info(image_bytes(bmp_file(parts))).channels == 3);

  parts.height = static_cast<std::uint32_t>(-2);  // from the top down
  parts.pixels = red_row + blue_row;
  CHECK(decoded_image(bmp_file(parts)).pixels == kTwoByTwo);
  parts.pixels.resize(14);  // without the filling of the last row
  CHECK(decoded_image(bmp_file(parts)).pixels == kTwoByTwo);

  parts = {.header = 12, .width = 2, .pixels = blue_row + red_row};
  CHECK(decoded_image(bmp_file(parts)).pixels == kTwoByTwo);

  parts = {.width = 2, .bits = 32};
  parts.pixels = std::string("\xFF\0\0\1\7\x8\x9\2", 8) + std::string("\0\0\xFF\3\0\xFF\0\4", 8);
  CHECK(decoded_image(bmp_file(parts)).pixels == kTwoByTwo);
  parts.compression = 3;  // with masks: red is the lowest byte
  parts.after_header = little_endian_text(0xFF, 4) + little_endian_text(0xFF00, 4) + little_endian_text(0xFF0000, 4);
  parts.pixels = std::string("\0\0\xFF\1\x9\x8\7\2", 8) + std::string("\xFF\0\0\3\0\xFF\0\4", 8);
  CHECK(decoded_image(bmp_file(parts)).pixels == kTwoByTwo);
  parts.header = 56;
  parts.after_header += little_endian_text(0xFF000000, 4);
  CHECK(decoded_image(bmp_file(parts)).pixels == kTwoByTwo);
  CHECK(data::read_image_info(image_bytes(bmp_file(parts))).channels == 4);

  parts = {.width = 2, .height = 1, .bits = 16, .pixels = std::string("\x1F\x7C\xE0\x03", 4)};  // 5 bits each
  CHECK(decoded_image(bmp_file(parts)).pixels == Bytes{255, 0, 255, 0, 255, 0});
  parts.compression = 3;
  parts.after_header = little_endian_text(0xF800, 4) + little_endian_text(0x07E0, 4) + little_endian_text(0, 4);
  CHECK(decoded_image(bmp_file(parts)).pixels == Bytes{123, 130, 0, 0, 125, 0});  // 15·255/31, 32·255/63, 31·255/63
}

TEST_CASE("BMP files with a palette are read", "[data]") {
  const std::string palette = std::string("\1\2\3\0", 4) + std::string("\4\5\6\0", 4) + std::string("\7\x8\x9\0", 4);
  const auto bits = GENERATE(1U, 4U, 8U);
  INFO(bits << " bits");
  BmpParts parts{.width = 9, .height = 1, .bits = bits, .colours = bits == 1 ? 2U : 3U};
  parts.after_header = palette.substr(0, 4 * parts.colours);
  parts.pixels = bits == 1   ? std::string("\xA0\x80\0\0", 4)
                 : bits == 4 ? std::string("\x10\x10\0\0\x10\0\0\0", 8)
                             : std::string("\1\0\1\0\0\0\0\0\1\0\0\0", 12);
  const Bytes zero{3, 2, 1}, one{6, 5, 4};
  const Image image = decoded_image(bmp_file(parts));
  for (std::size_t x = 0; x < 9; ++x) {
    const bool is_one = x == 0 || x == 2 || x == 8;
    CHECK(Bytes(image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * x),
                image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * x + 3)) == (is_one ? one : zero));
  }
  CHECK(decoded_part(bmp_file(parts), {7, 0, 2, 1}, 3).pixels == Bytes{3, 2, 1, 6, 5, 4});
  if (bits == 8) {
    parts.pixels[5] = 3;
    CHECK_THAT(image_refusal(bmp_file(parts)), contains("colour 3 of a palette of 3"));
  }
}

TEST_CASE("damaged BMP files are refused", "[data]") {
  const BmpParts whole{.width = 2, .pixels = std::string(14, '\7')};
  const std::string file = bmp_file(whole);
  REQUIRE_NOTHROW(decoded_image(file));
  for (std::size_t length = 1; length < file.size(); ++length) {
    CHECK_THROWS_AS(decoded_image(file.substr(0, length)), FormatError);
  }
  CHECK_THAT(image_refusal(file.substr(0, file.size() - 1)), contains("BMP, byte") && contains("cut off: the pixels"));
  const auto refusal = [&](auto change) {
    BmpParts parts = whole;
    change(parts);
    return image_refusal(bmp_file(parts));
  };
  CHECK_THAT(refusal([](BmpParts& p) { p.compression = 1; }), contains("RLE"));
  CHECK_THAT(refusal([](BmpParts& p) { p.compression = 4; }), contains("compression 4"));
  CHECK_THAT(refusal([](BmpParts& p) { p.bits = 7; }), contains("7 bits"));
  CHECK_THAT(refusal([](BmpParts& p) { p.header = 20; }), contains("unknown header of 20 bytes"));
  CHECK_THAT(refusal([](BmpParts& p) { p.width = p.height = 60000; }), contains("too large: 60000x60000"));
  CHECK_THAT(refusal([](BmpParts& p) { p.width = p.height = 16000; }), contains("cut off: the pixels"));
  CHECK_THAT(refusal([](BmpParts& p) { p.height = 0x80000000; }), contains("too large"));
  CHECK_THAT(refusal([](BmpParts& p) { p.width = 0x80000000; }), contains("no pixels"));
  CHECK_THAT(refusal([](BmpParts& p) { p.width = 0; }), contains("no pixels"));
  CHECK_THAT(refusal([](BmpParts& p) {
               p.bits = 32, p.compression = 3;
               p.after_header = little_endian_text(0xF0F, 4) + std::string(8, '\0');
             }),
             contains("gaps"));
  CHECK_THAT(refusal([](BmpParts& p) { p.bits = 8, p.pixels = std::string(8, '\0'); }), contains("the palette"));
  std::string away = file;
  away.replace(10, 4, little_endian_text(0xFFFFFFFF, 4));
  CHECK_THAT(image_refusal(away), contains("cut off: the pixels"));
}

TEST_CASE("PNM files of every kind are read", "[data]") {
  const Bytes grey{0, 10, 255, 128, 64, 32};
  const std::string pixels("\0\x0A\xFF\x80\x40\x20", 6);
  CHECK(decoded_image("P5\n3 2\n255\n" + pixels, 1).pixels == grey);
  CHECK(decoded_image("P5 # by hand\n3 #width\n# 7\n2\t255 " + pixels, 1).pixels == grey);
  CHECK(decoded_image("P2\n3 2\n255\n0 10 255\n128 64 32", 1).pixels == grey);
  CHECK(decoded_image("P2 3 2 255 0 10 #255\n255\r\n128 64 32 7 7 7", 1).pixels == grey);
  CHECK(decoded_image("P6 2 1 255\n" + pixels).pixels == grey);
  CHECK(decoded_image("P3 2 1 255\n0 10 255 128 64 32\n").pixels == grey);
  CHECK(decoded_image("P6 2 1 255\n" + pixels + "P6 2 1 255\n" + pixels).pixels == grey);  // the first of two
  // Other values of white.
  CHECK(decoded_image("P2 3 1 15\n0 7 15", 1).pixels == Bytes{0, 119, 255});
  CHECK(decoded_image(std::string("P5 3 1 15\n\0\7\xF", 13), 1).pixels == Bytes{0, 119, 255});
  CHECK(decoded_image("P2 3 1 1000\n0 500 1000", 1).pixels == Bytes{0, 128, 255});
  const std::string wide = std::string("P5 3 1 65535\n\0\xFF\x12\xFF\xFF\xFF", 19);
  CHECK(decoded_image(wide, 1).pixels == Bytes{0, 0x12, 255});
  const data::ImageInfo info = data::read_image_info(image_bytes(wide));
  CHECK(info.format == data::ImageFormat::pnm);
  CHECK(info.bits == 16);
  CHECK(info.channels == 1);
}

TEST_CASE("damaged PNM files are refused", "[data]") {
  for (const std::string file :
       {"P5\n3 2\n255\nabcdef", "P2\n3 2\n255\n0 10 255\n128 64 3", "P6 1 2 65535 abcdefabcdef"}) {
    REQUIRE_NOTHROW(decoded_image(file));
    for (std::size_t length = 1; length < file.size(); ++length) {
      INFO(file.substr(0, length));
      CHECK_THROWS_AS(decoded_image(file.substr(0, length)), FormatError);
    }
  }
  CHECK(image_refusal("P5\n3 2\n255\nabcde") == "PNM, byte 16: cut off: the pixels");
  CHECK_THAT(image_refusal("P2 2 1 255\n0 256"), contains("a value is above 255"));
  CHECK_THAT(image_refusal("P5 2 1 20\n\x05\x15"), contains("PNM, byte 11: a value is above 20"));
  CHECK_THAT(image_refusal("P2 2 1 255\n0 -1"), contains("a value is not a number"));
  CHECK_THAT(image_refusal("P2 2 1 255\n0 x"), contains("a value is not a number"));
  CHECK_THAT(image_refusal("P5 2 1 0\n\1\1"), contains("the largest value is 0"));
  CHECK_THAT(image_refusal("P5 2 1 65536\n\1\1"), contains("above 65535"));
  CHECK_THAT(image_refusal("P5 0 1 255\n"), contains("no pixels"));
  CHECK_THAT(image_refusal("P5 60000 60000 255\n "), contains("too large: 60000x60000"));
  CHECK_THAT(image_refusal("P5 99999999999 1 255\n "), contains("the width is above"));
  CHECK_THAT(image_refusal("P5 16000 16000 255\n "), contains("cut off: the pixels"));
  CHECK_THAT(image_refusal("P3 16000 16000 255\n 1"), contains("cut off: the pixels"));
  CHECK_THAT(image_refusal("P5 2 1 255x12"), contains("no space"));
}
