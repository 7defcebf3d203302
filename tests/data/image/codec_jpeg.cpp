// JPEG files: every kind beside what PIL reads in it, and every kind of damage.
#include "codec_files.hpp"

using namespace concord;
using namespace concord::test;
using data::Image;
using data::ImageInfo;

namespace {

// With other sizes in the frame: SOF0 or SOF2.
std::string jpeg_with_sizes(std::string file, std::uint32_t height, std::uint32_t width) {
  std::size_t frame = file.find("\xFF\xC0");
  if (frame == std::string::npos) frame = file.find("\xFF\xC2");
  REQUIRE(frame != std::string::npos);
  return file.replace(frame + 5, 4, big_endian_text(height, 2) + big_endian_text(width, 2));
}

}  // namespace

TEST_CASE("JPEG files of every kind are read", "[data]") {
  const auto [name, channels] = GENERATE(table<std::string, int>(
      {{"colour", 3}, {"progressive", 3}, {"restarts", 3}, {"grey", 1}, {"cmyk", 4}, {"ycck", 4}}));
  INFO(name);
  const std::string file = golden_image(name + ".jpg");
  const ImageInfo info = data::read_image_info(image_bytes(file));
  CHECK(info.format == data::ImageFormat::jpeg);
  CHECK(info.height == 34);
  CHECK(info.width == 45);
  CHECK(info.channels == channels);
  CHECK(info.bits == 8);
  CHECK(info.orientation == 1);
  const Image expected = decoded_image(golden_image(name + ".ppm"));
  CHECK(image_difference(decoded_image(file), expected) <= 3);  // another libjpeg may round otherwise
}

TEST_CASE("a JPEG that is cut off is refused, wherever that is", "[data]") {
  for (const std::string name : {"colour.jpg", "progressive.jpg", "restarts.jpg", "grey.jpg", "cmyk.jpg"}) {
    const std::string file = golden_image(name);
    for (std::size_t length = 1; length < file.size(); ++length) {
      INFO(name << ", " << length << " bytes");
      CHECK_THROWS_AS(decoded_image(file.substr(0, length)), FormatError);
    }
    CHECK_THAT(image_refusal(file.substr(0, file.size() - 2)), contains("JPEG, byte") && contains("cut off"));
    CHECK_THAT(image_refusal(file.substr(0, 20)), contains("cut off within the header"));
  }
  // Also where the part that is wanted is there.
  const std::string file = data::encode_jpeg(test_picture(200, 200, 3), 80);
  CHECK_NOTHROW(decoded_part(file, {10, 10, 20, 20}, 3));
  CHECK_THAT(message_of<FormatError>([&] {
               (void)decoded_part(file.substr(0, file.size() - 40), {10, 10, 20, 20}, 3);
             }),
             contains("cut off"));
}

TEST_CASE("bytes before and after the end of a JPEG are no damage", "[data]") {
  const std::string file = golden_image("colour.jpg");
  const Image image = decoded_image(file);
  CHECK(decoded_image(file + "more").pixels == image.pixels);
  CHECK(decoded_image(file.substr(0, file.size() - 2) + std::string(3, '\0') + "\xFF\xD9").pixels == image.pixels);
}

TEST_CASE("sizes of a JPEG are checked before memory is taken", "[data]") {
  const std::string file = golden_image("colour.jpg");
  CHECK_THAT(image_refusal(jpeg_with_sizes(file, 60000, 60000)), contains("too large: 60000x60000"));
  CHECK_THAT(image_refusal(jpeg_with_sizes(file, 16000, 16000)), contains("cut off"));
  CHECK_THAT(image_refusal(jpeg_with_sizes(file, 0, 45)), contains("no pixels"));
  CHECK_THAT(image_refusal(jpeg_with_sizes(file, 34, 0)), contains("no pixels"));
  CHECK_THROWS_AS(decoded_image(jpeg_with_sizes(file, 340, 450)), FormatError);
  // Another picture than the one whose sizes were read.
  const ImageInfo info = data::read_image_info(image_bytes(file));
  Image image;
  const std::string other = jpeg_with_sizes(file, 33, 45);
  CHECK_THROWS_AS(data::decode_image(image_bytes(other), info, {0, 0, 45, 34}, 3, image), FormatError);
}

TEST_CASE("damaged JPEG files are refused", "[data]") {
  const std::string file = golden_image("colour.jpg");
  const std::size_t frame = file.find("\xFF\xC0"), scan = file.find("\xFF\xDA");
  std::string damaged = file;
  damaged[frame + 4] = 12;
  CHECK_THAT(image_refusal(damaged), contains("12 bits"));
  damaged = file;
  damaged[frame + 1] = '\xC3';
  CHECK_THAT(image_refusal(damaged), contains("lossless"));
  damaged = file;
  damaged[frame + 9] = 2;
  CHECK_THAT(image_refusal(damaged), contains("2 channels"));
  damaged = file;
  damaged.replace(scan + 14, 6, 6, '\xFF');
  CHECK_THROWS_AS(decoded_image(damaged), FormatError);
  CHECK_THAT(image_refusal(file.substr(0, 2) + file.substr(scan)), contains("no frame"));
  CHECK_THAT(image_refusal(std::string("\xFF\xD8\xFF\xE0\0\1", 6)), contains("without a length"));
  // Whatever byte is damaged: an error or a picture of the size.
  for (std::size_t at = 2; at < file.size(); ++at) {
    damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    try {
      const Image image = decoded_image(damaged);
      CHECK(image.pixels.size() == static_cast<std::size_t>(image.height * image.width * 3));
    } catch (const FormatError& error) {
      CHECK_FALSE(std::string_view(error.what()).empty());
    }
  }
}
