// Codecs of images in general: what is recognised and refused by name, parts of images, and pictures turned upright.
#include "concord/data/image/codec.hpp"

#include "codec_files.hpp"
#include "concord/data/image/exif.hpp"

using namespace concord;
using namespace concord::test;
using data::Image;
using data::ImageFormat;
using data::ImageInfo;

namespace {

// What orientation 2 … 8 makes of a stored picture: EXIF 2.3, 4.6.4.A, by where its first row and column are.
Image codec_upright(const Image& stored, int orientation) {
  Image image;
  const bool turned = orientation >= 5;
  image.resize(turned ? stored.width : stored.height, turned ? stored.height : stored.width, stored.channels);
  const auto right = stored.width - 1, bottom = stored.height - 1;
  for (std::int64_t y = 0; y < stored.height; ++y) {
    for (std::int64_t x = 0; x < stored.width; ++x) {
      std::int64_t to_x = x, to_y = y;
      switch (orientation) {
        case 2: to_x = right - x; break;                     // row 0 is on top, column 0 on the right
        case 3: to_x = right - x, to_y = bottom - y; break;  // bottom, right
        case 4: to_y = bottom - y; break;                    // bottom, left
        case 5: to_x = y, to_y = x; break;                   // row 0 is on the left, column 0 on top
        case 6: to_x = bottom - y, to_y = x; break;          // right, top
        case 7: to_x = bottom - y, to_y = right - x; break;  // right, bottom
        case 8: to_x = y, to_y = right - x; break;           // left, bottom
        default: break;
      }
      std::copy_n(stored.row(y) + x * stored.channels, stored.channels, image.row(to_y) + to_x * stored.channels);
    }
  }
  return image;
}

std::string codec_with_exif(const std::string& file, const std::string& exif, ImageFormat format) {
  if (format == ImageFormat::png) return file.substr(0, 33) + png_chunk_text("eXIf", exif) + file.substr(33);
  const std::string segment = std::string("Exif\0\0", 6) + exif;
  return file.substr(0, 2) + "\xFF\xE1" + big_endian_text(static_cast<std::uint32_t>(segment.size() + 2), 2) + segment +
         file.substr(2);
}

double codec_mean_difference(const Image& a, const Image& b) {
  REQUIRE(a.pixels.size() == b.pixels.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

}  // namespace

TEST_CASE("what is no image of a known format is refused by name", "[data]") {
  CHECK(image_refusal("") == "the file is empty");
  CHECK(image_refusal("GIF89a\1\0\1") == "a GIF image; JPEG, PNG, BMP and PNM are read");
  CHECK_THAT(image_refusal(std::string("RIFF\x20\0\0\0WEBPVP8 ", 16)), contains("a WebP image"));
  CHECK_THAT(image_refusal(std::string("II*\0\x08\0\0\0", 8)), contains("a TIFF image"));
  CHECK_THAT(image_refusal(std::string("MM\0*\0\0\0\x08", 8)), contains("a TIFF image"));
  CHECK_THAT(image_refusal(std::string("\0\0\0\x20"
                                       "ftypheic",
                                       12)),
             contains("a HEIC image"));
  CHECK_THAT(image_refusal(std::string("\0\0\0\x20"
                                       "ftypavif",
                                       12)),
             contains("an AVIF image"));
  CHECK_THAT(image_refusal("P4\n8 1\n\xAA"), contains("a PBM bitmap"));
  CHECK_THAT(image_refusal("<!DOCTYPE html><html>"), contains("a web page"));
  CHECK_THAT(image_refusal("version https://git-lfs.github.com/spec/v1\n"), contains("Git LFS"));
  CHECK_THAT(image_refusal(std::string(5000, '\0')), contains("begins with zeros"));
  CHECK_THAT(image_refusal("label,file\n1,a.jpg\n"), contains("no image of a known format"));
  CHECK_THAT(image_refusal("\xFF"), contains("no image of a known format"));
}

TEST_CASE("a part of an image has the pixels of the whole", "[data]") {
  const std::int64_t channels = GENERATE(1, 3);
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string name :
       {"colour.jpg", "progressive.jpg", "restarts.jpg", "grey.jpg", "cmyk.jpg", "palette.png", "colour.ppm"}) {
    files.emplace_back(name, golden_image(name));
  }
  const Image picture = test_picture(150, 131, 3);
  files.emplace_back("large.jpg", data::encode_jpeg(picture, 85));
  files.emplace_back("large.png", data::encode_png(picture));
  files.emplace_back("turned.jpg", codec_with_exif(files[7].second, exif_text(6, true), ImageFormat::jpeg));
  for (const auto& [name, file] : files) {
    INFO(name);
    const Image whole = decoded_image(file, channels);
    const std::int64_t width = whole.width, height = whole.height;
    for (std::int64_t i = 0; i < 60; ++i) {
      const std::int64_t x = i * 7 % width, y = i * 5 % height;
      const data::Window window{x, y, 1 + i * 11 % (width - x), 1 + i * 13 % (height - y)};
      INFO("part " << window.width << "x" << window.height << " at " << x << "," << y);
      CHECK(decoded_part(file, window, channels).pixels == image_part(whole, window).pixels);
    }
  }
}

TEST_CASE("a part that is not within the image is refused", "[data]") {
  const std::string file = golden_image("colour.jpg");  // 45x34
  const ImageInfo info = data::read_image_info(image_bytes(file));
  Image image;
  for (const data::Window window : {data::Window{0, 0, 46, 1},
                                    {0, 0, 1, 35},
                                    {-1, 0, 3, 3},
                                    {0, -1, 3, 3},
                                    {44, 0, 2, 1},
                                    {0, 0, 0, 1},
                                    {INT64_MAX, 0, 1, 1},
                                    {0, 0, INT64_MAX, 1}}) {
    CHECK_THROWS_AS(data::decode_image(image_bytes(file), info, window, 3, image), ArgumentError);
  }
  CHECK_THROWS_AS(data::decode_image(image_bytes(file), info, {0, 0, 1, 1}, 2, image), ArgumentError);
}

TEST_CASE("photos are turned upright as EXIF says", "[data]") {
  const ImageFormat format = GENERATE(ImageFormat::jpeg, ImageFormat::png);
  const Image picture = test_picture(19, 40, 3);
  const std::string plain = format == ImageFormat::jpeg ? data::encode_jpeg(picture, 95) : data::encode_png(picture);
  const Image stored = decoded_image(plain);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little : {true, false}) {
      INFO("orientation " << orientation);
      const std::string file = codec_with_exif(plain, exif_text(orientation, little), format);
      const ImageInfo info = data::read_image_info(image_bytes(file));
      CHECK(info.format == format);
      CHECK(info.orientation == orientation);
      CHECK(info.height == (orientation >= 5 ? 40 : 19));
      CHECK(info.width == (orientation >= 5 ? 19 : 40));
      const Image expected = codec_upright(stored, orientation);
      CHECK(image_difference(decoded_image(file), expected) == 0);
      const data::Window window{3, 5, 11, 8};
      CHECK(image_difference(decoded_part(file, window, 3), image_part(expected, window)) == 0);
    }
  }
}

TEST_CASE("damaged EXIF leaves a photo as it is", "[data]") {
  for (const bool little : {true, false}) {
    const std::string exif = exif_text(6, little);
    CHECK(data::exif_orientation(image_bytes(exif)) == 6);
    CHECK(data::exif_orientation(image_bytes(exif_text(0, little))) == 1);
    CHECK(data::exif_orientation(image_bytes(exif_text(9, little))) == 1);
    for (std::size_t length = 0; length < exif.size() - 6; ++length) {
      CHECK(data::exif_orientation(image_bytes(exif.substr(0, length))) == 1);
    }
    for (std::size_t at = 0; at < 10; ++at) {  // marks, the place of the directory, its size
      std::string damaged = exif;
      damaged[at] = '\xFF';
      const int orientation = data::exif_orientation(image_bytes(damaged));
      CHECK((orientation == 1 || (at >= 8 && orientation == 6)));
    }
  }
  const std::string plain = data::encode_jpeg(test_picture(8, 9, 3), 90);
  for (const std::string& exif : {std::string(), std::string("II"), std::string("II*\0\xFF\xFF\xFF\xFF", 8)}) {
    const std::string file = codec_with_exif(plain, exif, ImageFormat::jpeg);
    CHECK(data::read_image_info(image_bytes(file)).orientation == 1);
    CHECK(decoded_image(file).pixels == decoded_image(plain).pixels);
  }
}

TEST_CASE("grey of colour is luma, and colour of grey the same three times", "[data]") {
  const Image picture = test_picture(10, 12, 3);
  const Image grey = decoded_image(data::encode_png(picture), 1);
  for (std::size_t i = 0; i < grey.pixels.size(); ++i) {
    const double luma =
        0.299 * picture.pixels[3 * i] + 0.587 * picture.pixels[3 * i + 1] + 0.114 * picture.pixels[3 * i + 2];
    CHECK(std::abs(grey.pixels[i] - luma) < 0.51);
  }
  // A JPEG has luma already.
  const std::string jpeg = data::encode_jpeg(picture, 100);
  CHECK(image_difference(decoded_image(jpeg, 1), grey) <= 2);
  for (const std::string& file : {data::encode_png(grey), data::encode_jpeg(grey, 100)}) {
    CHECK(data::read_image_info(image_bytes(file)).channels == 1);
    const Image colour = decoded_image(file, 3), one = decoded_image(file, 1);
    for (std::size_t i = 0; i < one.pixels.size(); ++i) {
      CHECK(colour.pixels[3 * i] == one.pixels[i]);
      CHECK(colour.pixels[3 * i + 1] == one.pixels[i]);
      CHECK(colour.pixels[3 * i + 2] == one.pixels[i]);
    }
  }
}

TEST_CASE("what is encoded comes back", "[data]") {
  for (const std::int64_t channels : {1, 3}) {
    for (const auto& [height, width] : {std::pair{1, 1}, {1, 37}, {40, 1}, {33, 47}}) {
      INFO(width << "x" << height << ", " << channels << " channels");
      const Image picture = test_picture(height, width, channels);
      CHECK(image_difference(decoded_image(data::encode_png(picture), channels), picture) == 0);
      const std::string jpeg = data::encode_jpeg(picture, 100);
      CHECK(codec_mean_difference(decoded_image(jpeg, channels), picture) < (channels == 1 ? 1 : 6));
      CHECK(data::encode_jpeg(picture, 10).size() <= jpeg.size());
    }
  }
  const Image large = test_picture(300, 400, 3);  // more than one buffer of the writer
  CHECK(data::encode_jpeg(large, 100).size() > 20000);
  CHECK(codec_mean_difference(decoded_image(data::encode_jpeg(large, 100)), large) < 6);
  CHECK_THROWS_AS(data::encode_jpeg(large, 0), ArgumentError);
  CHECK_THROWS_AS(data::encode_jpeg(large, 101), ArgumentError);
  CHECK_THROWS_AS(data::encode_jpeg(Image{}, 90), ArgumentError);
  CHECK_THROWS_AS(data::encode_jpeg(test_picture(2, 2, 4), 90), ArgumentError);
  CHECK_THROWS_AS(data::encode_png(Image{}), ArgumentError);
  CHECK_THROWS_AS(data::encode_png(test_picture(2, 2, 2)), ArgumentError);
}
