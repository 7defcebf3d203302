// Random crops of stored images, their masks, and reading by several threads.
#include <cstring>
#include <set>
#include <thread>

#include "concord/data/image/codec.hpp"
#include "concord/data/image/geometry.hpp"
#include "concord/data/image/resample.hpp"
#include "data/image/stored_images.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("a random crop shows a moved image and the mean around it", "[data]") {
  const auto records = one_raw_picture();
  data::ImageTransform transform = transform_of(24, 32, 24, "crop=3");
  transform.mean = {10.0f / 255, 20.0f / 255, 30.0f / 255};
  const auto samples = data::images(records, transform);
  std::set<std::pair<int, int>> moves;
  for (std::uint32_t epoch = 0; epoch < 400; ++epoch) {
    const PixelBytes got = read_pixels(*samples, 0, epoch);
    int found = 0;
    for (int down = -3; down <= 3; ++down) {
      for (int right = -3; right <= 3; ++right) {
        bool is_equal = true;
        for (int c = 0; c < 3 && is_equal; ++c) {
          for (int y = 0; y < 24 && is_equal; ++y) {
            for (int x = 0; x < 32 && is_equal; ++x) {
              const int from_y = y + down, from_x = x + right;
              const bool is_inside = from_y >= 0 && from_y < 24 && from_x >= 0 && from_x < 32;
              const int wanted = is_inside ? picture_planes()[static_cast<std::size_t>((c * 24 + from_y) * 32 + from_x)]
                                           : 10 * (c + 1);
              is_equal = got[static_cast<std::size_t>((c * 24 + y) * 32 + x)] == wanted;
            }
          }
        }
        if (is_equal) moves.insert({down, right}), ++found;
      }
    }
    CHECK(found == 1);
  }
  CHECK(moves.size() == 49);
}

TEST_CASE("a crop that misses the image is all mean", "[data]") {
  const auto samples = data::images(one_raw_picture(), transform_of(4, 4, 4, "crop=200"));
  int empty = 0;
  for (std::uint32_t epoch = 0; epoch < 50; ++epoch) empty += read_pixels(*samples, 0, epoch) == PixelBytes(48) ? 1 : 0;
  CHECK(empty > 40);
}

TEST_CASE("random resized crops have the areas and ratios that are asked for", "[data]") {
  data::ImageTransform transform = transform_of(224, 224, 0, "rrc=0.2:0.6");
  std::set<std::pair<double, double>> places;
  double least = 1, most = 0;
  for (std::int32_t row = 0; row < 500; ++row) {
    const data::Cut cut = data::choose_cut(transform, 375, 500, {1, 0, row});
    const double area = cut.box.width * cut.box.height / (375.0 * 500), ratio = cut.box.width / cut.box.height;
    least = std::min(least, area), most = std::max(most, area);
    CHECK((area > 0.195 && area < 0.605));
    CHECK((ratio > 0.74 && ratio < 1.35));
    CHECK((cut.box.x >= 0 && cut.box.y >= 0 && cut.box.x + cut.box.width <= 500 && cut.box.y + cut.box.height <= 375));
    places.insert({cut.box.x, cut.box.y});
  }
  CHECK((least < 0.25 && most > 0.55));
  CHECK(places.size() > 400);
  // No crop of a strip has the ratio: the centre of the largest one.
  transform.augmentation = data::parse_augment("rrc=1");
  const data::Cut strip = data::choose_cut(transform, 100, 1000, {1, 0, 0});
  CHECK((strip.box.width == 133 && strip.box.height == 100 && strip.box.x == 433));
}

TEST_CASE("a random resized crop is the resized part of the image, mirrored or not", "[data]") {
  auto records = std::make_shared<StoredImages>();
  records->add_file(data::encode_png(picture_image()));
  const data::ImageTransform transform = transform_of(20, 14, 0, "rrc,flip");
  const auto samples = data::images(records, transform);
  int mirrored = 0;
  for (std::uint32_t epoch = 0; epoch < 40; ++epoch) {
    const SampleRandom random{11, epoch, 0};
    const data::Cut cut = data::choose_cut(transform, kPictureHeight, kPictureWidth, random);
    const auto left = static_cast<std::int64_t>(cut.box.x), top = static_cast<std::int64_t>(cut.box.y);
    data::Image part, resized;
    part.resize(static_cast<std::int64_t>(cut.box.height), static_cast<std::int64_t>(cut.box.width), 3);
    const data::Image picture = picture_image();
    for (std::int64_t y = 0; y < part.height; ++y)
      std::memcpy(part.row(y), picture.row(top + y) + left * 3, part.row_bytes());
    data::resample(part, {0, 0, cut.box.width, cut.box.height}, 20, 14, resized);
    PixelBytes straight(3 * 20 * 14), mirror(straight.size());
    data::to_planes(resized, false, straight);
    data::to_planes(resized, true, mirror);
    const PixelBytes got = read_pixels(*samples, 0, epoch);
    CHECK((got == straight || got == mirror));
    mirrored += got == mirror ? 1 : 0;
  }
  CHECK((mirrored > 8 && mirrored < 32));
}

TEST_CASE("a mask has the class of each pixel of its image", "[data]") {
  // The image shows the mask: each class is a grey.
  const std::string augment = GENERATE("none", "rrc,flip", "crop=6,flip,vflip", "rotate=30,flip");
  PixelBytes classes(24 * 32), planes(3 * 24 * 32);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::uint8_t>((i / 8) % 2 + (i / 256));
  for (std::size_t i = 0; i < planes.size(); ++i)
    planes[i] = static_cast<std::uint8_t>(50 * classes[i % classes.size()] + 20);
  auto records = std::make_shared<StoredImages>();
  records->add_raw(planes, 3, 24, 32);
  records->masks.push_back({StoredImages::bytes_of(classes), data::RawImage{1, 24, 32}});
  const auto samples = data::images(records, transform_of(48, 64, 48, augment));
  REQUIRE(samples->label_specs().size() == 1);  // instead of the class
  CHECK(samples->label_specs()[0].spec == TensorSpec{DType::i32, Shape{48, 64}});
  int inside = 0, equal = 0;
  for (std::uint32_t epoch = 0; epoch < 5; ++epoch) {
    const auto columns = read_columns(*samples, 0, {3, epoch, 0});
    for (std::size_t i = 0; i < 48 * 64; ++i) {
      std::int32_t mask = 0;
      std::memcpy(&mask, &columns[1][4 * i], sizeof(mask));
      if (mask == 255) {
        CHECK(columns[0][i] == 0);
        continue;
      }
      REQUIRE((mask >= 0 && mask <= 4));
      ++inside;
      equal += std::abs(columns[0][i] - (50 * mask + 20)) <= 25 ? 1 : 0;
    }
  }
  CAPTURE(augment);
  CHECK(inside > 5000);
  CHECK(equal > inside * 0.97);
}

TEST_CASE("a mask file has the numbers of classes, in a palette or grey", "[data]") {
  const auto mask_of = [](const std::string& name) {
    auto records = one_raw_picture();
    records->masks.push_back({StoredImages::bytes_of(pixels_golden(name, "masks")), std::nullopt});
    const auto columns = read_columns(*data::images(records, transform_of(24, 32, 24)), 0, {});
    std::vector<std::int32_t> classes(24 * 32);
    std::memcpy(classes.data(), columns[1].data(), columns[1].size());
    return classes;
  };
  std::vector<std::int32_t> four, two;
  for (std::int32_t i = 0; i < 24 * 32; ++i) {
    four.push_back(i / 8 % 2 + i / 256);
    two.push_back(four.back() % 2);
  }
  CHECK(mask_of("palette of 2 bits") == four);
  CHECK(mask_of("palette of 8 bits") == four);
  CHECK(mask_of("grey of 8 bits") == four);
  CHECK(mask_of("grey of 1 bit") == two);
  CHECK_THROWS_WITH(mask_of("colours"), contains("picture 0: its mask is no PNG"));
  CHECK_THROWS_WITH(mask_of("grey of 16 bits"), contains("picture 0: its mask is no PNG"));

  auto records = one_raw_picture();
  records->masks.push_back({StoredImages::bytes_of(data::encode_jpeg(picture_image(1), 90)), std::nullopt});
  CHECK_THROWS_WITH(read_columns(*data::images(records, transform_of(24, 32, 24)), 0, {}), contains("no PNG"));
}

TEST_CASE("threads read the same bytes at the same time", "[data]") {
  auto records = one_raw_picture();
  records->add_file(data::encode_jpeg(picture_image(), 90));
  records->add_file(data::encode_png(picture_image()));
  const auto samples = data::images(
      records, transform_of(20, 20, 22, "rrc,flip,randaugment,affine=10:0.1,jitter=0.4:0.4:0.4:0.1,cutout=0.3"));
  const auto all = [&] {
    std::vector<PixelBytes> result;
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::uint32_t epoch = 0; epoch < 20; ++epoch) result.push_back(read_pixels(*samples, row, epoch));
    }
    return result;
  };
  const std::vector<PixelBytes> alone = all();
  std::vector<std::vector<PixelBytes>> together(4);
  std::vector<std::thread> threads;
  for (auto& result : together) threads.emplace_back([&] { result = all(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : together) CHECK(result == alone);
}
