// Samples from stored images: evaluation against PIL, copies, labels, and what is refused.
#include "concord/data/image/image_samples.hpp"

#include <cstring>

#include "concord/data/image/codec.hpp"
#include "data/image/stored_images.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("evaluation resizes the shorter side and takes the centre, as in torchvision", "[data]") {
  const auto records = one_raw_picture();
  const auto evaluate = [&](std::int64_t height, std::int64_t width, std::int64_t resize) {
    return read_pixels(*data::images(records, transform_of(height, width, resize)));
  };
  CHECK(pixel_difference(evaluate(16, 16, 18), pixels_golden("evaluate 16 of 18")) <= 1);
  CHECK(pixel_difference(evaluate(16, 16, 0), pixels_golden("evaluate 16 of 18")) <= 1);
  CHECK(pixel_difference(evaluate(30, 30, 34), pixels_golden("evaluate 30 of 34")) <= 1);
  CHECK(pixel_difference(evaluate(12, 20, 14), pixels_golden("evaluate 12x20 of 14")) <= 1);
}

TEST_CASE("a file and raw pixels of one picture are the same sample", "[data]") {
  const std::string augment = GENERATE("none", "rrc,flip", "crop=9,flip", "rrc,randaugment,erase");
  auto records = one_raw_picture();
  records->add_file(data::encode_png(picture_image()));
  PixelBytes blue_first = picture_planes();
  const std::ptrdiff_t plane = kPictureHeight * kPictureWidth;
  std::swap_ranges(blue_first.begin(), blue_first.begin() + plane, blue_first.begin() + 2 * plane);
  records->add_raw(blue_first, 3, kPictureHeight, kPictureWidth, true);
  for (const std::int64_t size : {kPictureHeight, std::int64_t{13}}) {
    const auto samples = data::images(records, transform_of(size, size, size + 2, augment));
    for (std::int32_t seed = 0; seed < 10; ++seed) {
      const SampleRandom random{static_cast<std::uint64_t>(seed), 0, 5};
      const PixelBytes raw = read_columns(*samples, 0, random)[0];
      CHECK(read_columns(*samples, 1, random)[0] == raw);
      CHECK(read_columns(*samples, 2, random)[0] == raw);
    }
  }
}

TEST_CASE("pixels that keep their size are copied", "[data]") {
  const auto records = one_raw_picture();
  CHECK(read_pixels(*data::images(records, transform_of(24, 32, 24))) == picture_planes());
  PixelBytes mirrored = picture_planes();
  for (auto row = mirrored.begin(); row != mirrored.end(); row += kPictureWidth) {
    std::reverse(row, row + kPictureWidth);
  }
  CHECK(read_pixels(*data::images(records, transform_of(24, 32, 24, "flip=1"))) == mirrored);
  // The centre of 24 × 24 keeps the rows and loses four columns on each side.
  const PixelBytes centre = read_pixels(*data::images(records, transform_of(24, 24, 24)));
  for (std::size_t row = 0; row < 3 * 24; ++row) {
    CHECK(std::memcmp(&centre[row * 24], &picture_planes()[row * 32 + 4], 24) == 0);
  }
}

TEST_CASE("a PPM or PGM is the same sample as its pixels as planes", "[data]") {
  const std::string augment = GENERATE("none", "flip=1", "crop=5,flip", "rrc");
  auto records = one_raw_picture();
  const data::Image picture = picture_image();
  std::string ppm = fmt::format("P6\n{} {}\n255\n", kPictureWidth, kPictureHeight);
  ppm.append(picture.pixels.begin(), picture.pixels.end());
  records->add_file(ppm);
  const PixelBytes grey(picture_planes().begin(), picture_planes().begin() + kPictureHeight * kPictureWidth);
  records->add_raw(grey, 1, kPictureHeight, kPictureWidth);
  std::string pgm = fmt::format("P5 {} {} 255\n", kPictureWidth, kPictureHeight);
  pgm.append(grey.begin(), grey.end());
  records->add_file(pgm);
  for (const std::int64_t width : {kPictureWidth, std::int64_t{24}, std::int64_t{11}}) {
    for (const std::int64_t channels : {3, 1}) {
      data::ImageTransform transform = transform_of(kPictureHeight, width, kPictureHeight, augment);
      if (width == 11) transform.height = transform.resize = 11;
      transform.channels = channels;
      transform.mean.resize(static_cast<std::size_t>(channels), 0.5F);
      transform.deviation.resize(static_cast<std::size_t>(channels), 0.5F);
      const auto samples = data::images(records, transform);
      for (std::int32_t row = 0; row < 4; ++row) {
        const SampleRandom random{1, 0, row};
        CHECK(read_columns(*samples, 1, random)[0] == read_columns(*samples, 0, random)[0]);
        CHECK(read_columns(*samples, 3, random)[0] == read_columns(*samples, 2, random)[0]);
      }
    }
  }
  records->samples.back().bytes.pop_back();
  data::ImageTransform transform = transform_of(kPictureHeight, kPictureWidth, kPictureHeight);
  CHECK_THROWS_AS(read_columns(*data::images(records, transform), 3, {}), FormatError);
}

TEST_CASE("colour becomes grey and grey becomes colour", "[data]") {
  auto records = one_raw_picture();
  const PixelBytes grey(picture_planes().begin(), picture_planes().begin() + kPictureHeight * kPictureWidth);
  records->add_raw(grey, 1, kPictureHeight, kPictureWidth);
  records->add_file(data::encode_png(picture_image(1)));
  data::ImageTransform transform = transform_of(24, 32, 24);
  const auto colour = data::images(records, transform);
  CHECK(read_pixels(*colour, 1) == read_pixels(*colour, 2));
  const PixelBytes copied = read_pixels(*colour, 1);
  for (std::ptrdiff_t c = 0; c < 3; ++c) CHECK(std::equal(grey.begin(), grey.end(), copied.begin() + c * 24 * 32));
  transform.channels = 1;
  const auto greys = data::images(records, transform);
  CHECK(read_pixels(*greys, 1) == grey);
  const PixelBytes luma = read_pixels(*greys, 0);
  for (std::size_t i = 0; i < luma.size(); ++i) {
    const double wanted =
        0.299 * picture_planes()[i] + 0.587 * picture_planes()[i + 768] + 0.114 * picture_planes()[i + 2 * 768];
    CHECK(std::abs(luma[i] - wanted) <= 0.51);
  }
}

TEST_CASE("samples have the labels of their records", "[data]") {
  auto records = one_raw_picture();
  records->add_raw(picture_planes(), 3, kPictureHeight, kPictureWidth);
  records->class_names = {"a", "b", "c"};
  records->labels.push_back({"target", Tensor::of<float>(Shape{2, 2}, std::vector<float>{1, 2, 3, 4}), 0});
  data::ImageTransform transform = transform_of(8, 8, 8);
  transform.mean = {0.5f, 0.4f, 0.3f}, transform.deviation = {0.2f, 0.3f, 0.4f};
  const auto samples = data::images(records, transform);
  REQUIRE(samples->label_specs().size() == 2);
  CHECK(samples->label_specs()[0].classes == 3);
  CHECK(samples->label_specs()[0].spec == TensorSpec{DType::i32, Shape{}});
  CHECK(samples->label_specs()[1].spec == TensorSpec{DType::f32, Shape{2}});
  CHECK(samples->label_specs()[1].name == "target");
  const ColumnSpec image = samples->feature_specs()[0];
  CHECK(image.spec == TensorSpec{DType::u8, Shape{3, 8, 8}});
  CHECK((image.mean == transform.mean && image.deviation == transform.deviation && image.scale == 1.0f / 255));
  CHECK(samples->class_names == std::vector<std::string>{"a", "b", "c"});
  CHECK(samples->class_of(1) == 1);
  CHECK(samples->name_of(1) == "picture 1");
  const auto columns = read_columns(*samples, 1, {});
  std::int32_t label = 0;
  float targets[2] = {};
  std::memcpy(&label, columns[1].data(), sizeof(label));
  std::memcpy(targets, columns[2].data(), sizeof(targets));
  CHECK(label == 1);
  CHECK((targets[0] == 3 && targets[1] == 4));
  records->labels.erase(records->labels.begin());
  CHECK_FALSE(samples->class_of(0).has_value());
}

TEST_CASE("damaged images are refused by name", "[data]") {
  auto records = std::make_shared<StoredImages>();
  records->add_file("this is no image");
  records->add_file(data::encode_jpeg(picture_image(), 90).substr(0, 300));
  records->add_file("");
  records->add_raw(PixelBytes(100), 3, 10, 10);
  records->add_raw(PixelBytes(64), 4, 4, 4);
  records->add_raw({}, 3, 0, 0);
  records->add_raw(PixelBytes(8), 1, std::int64_t{1} << 40, std::int64_t{1} << 40);
  const auto samples = data::images(records, transform_of(8, 8, 8));
  for (std::int64_t row = 0; row < records->size(); ++row) {
    CHECK_THROWS_AS(read_pixels(*samples, row), FormatError);
    CHECK_THROWS_WITH(read_pixels(*samples, row), contains(fmt::format("picture {}: ", row)));
  }
  CHECK_THROWS_WITH(read_pixels(*samples, 3), contains("300 bytes, and there are 100"));
  CHECK_THROWS_AS(read_pixels(*samples, 7), ArgumentError);

  auto masked = one_raw_picture();
  masked->masks.push_back({std::vector<std::byte>(12), data::RawImage{1, 3, 4}});
  CHECK_THROWS_WITH(read_columns(*data::images(masked, transform_of(8, 8, 8)), 0, {}), contains("mask has 3 × 4"));
}

TEST_CASE("wrong memory and wrong transforms are refused", "[data]") {
  const auto records = one_raw_picture();
  const auto samples = data::images(records, transform_of(8, 8, 8));
  CHECK_THROWS_AS(samples->read(0, {}, {}), ShapeError);
  PixelBytes small(7), label(4);
  std::vector<std::span<std::byte>> memory{std::as_writable_bytes(std::span(small)),
                                           std::as_writable_bytes(std::span(label))};
  CHECK_THROWS_AS(samples->read(0, memory, {}), ShapeError);
  data::ImageTransform transform = transform_of(8, 8, 8);
  transform.channels = 2;
  CHECK_THROWS_AS(data::images(records, transform), ArgumentError);
  records->labels[0].values = Tensor(DType::i32, Shape{2});
  CHECK_THROWS_AS(data::images(records, transform_of(8, 8, 8)), ShapeError);
}
