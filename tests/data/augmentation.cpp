// Augmentations: what they do to pixels, and that they depend on seed, epoch and row alone.
#include "concord/data/augmentation.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Pixels 1, 2, 3, … of a picture u8 [channels, rows, columns].
Bytes counting(std::size_t size) {
  Bytes pixels(size);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  return pixels;
}

Bytes augmented(const data::Augmentation& augmentation, const Shape& shape, std::int32_t row, std::uint32_t epoch = 0) {
  Bytes pixels = counting(static_cast<std::size_t>(shape.elements()));
  augmentation(std::as_writable_bytes(std::span(pixels)), {row, epoch, {DType::u8, shape}});
  return pixels;
}

}  // namespace

TEST_CASE("a flip mirrors each row of each channel", "[data]") {
  const Shape shape{2, 2, 3};
  CHECK(augmented(data::random_horizontal_flip(0, 1), shape, 5) == Bytes{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10});
  CHECK(augmented(data::random_horizontal_flip(0, 0), shape, 5) == counting(12));
  int flipped = 0;
  for (int row = 0; row < 1000; ++row) flipped += augmented(data::random_horizontal_flip(3), shape, row)[0] == 3;
  CHECK(flipped > 430);
  CHECK(flipped < 570);
}

TEST_CASE("a flip moves whole elements of other types", "[data]") {
  std::vector<float> pixels{1, 2, 3, 4};
  data::random_horizontal_flip(0, 1)(std::as_writable_bytes(std::span(pixels)), {0, 0, {DType::f32, Shape{1, 1, 4}}});
  CHECK(pixels == std::vector<float>{4, 3, 2, 1});
}

TEST_CASE("a crop moves the picture and brings in zeros", "[data]") {
  const Shape shape{1, 3, 3};
  std::set<Bytes> seen;
  for (int row = 0; row < 500; ++row) {
    const Bytes got = augmented(data::random_crop(1, 1), shape, row);
    seen.insert(got);
    bool is_shift = false;
    for (int down = -1; down <= 1; ++down) {
      for (int right = -1; right <= 1; ++right) {
        Bytes expected(9, 0);
        for (int y = 0; y < 3; ++y) {
          for (int x = 0; x < 3; ++x) {
            const int from_y = y + down, from_x = x + right;
            if (from_y < 0 || from_y > 2 || from_x < 0 || from_x > 2) continue;
            expected[static_cast<std::size_t>(y * 3 + x)] = static_cast<std::uint8_t>(from_y * 3 + from_x + 1);
          }
        }
        is_shift = is_shift || got == expected;
      }
    }
    CHECK(is_shift);
  }
  CHECK(seen.size() == 9);  // every shift occurs
  CHECK(augmented(data::random_crop(1, 0), shape, 7) == counting(9));
  const Bytes far = augmented(data::random_crop(1, 1000), shape, 7);  // out of sight, most likely
  CHECK(far.size() == 9);
}

TEST_CASE("erasing clears one rectangle in every channel", "[data]") {
  const Shape shape{2, 8, 8};
  for (int row = 0; row < 50; ++row) {
    const Bytes got = augmented(data::random_erasing(1, 1), shape, row);
    const auto zeros = std::ranges::count(got, 0);
    CHECK(zeros >= 2 * 2 * 2);
    CHECK(zeros <= 2 * 4 * 4);
    for (std::size_t i = 0; i < 64; ++i) CHECK((got[i] == 0) == (got[64 + i] == 0));
  }
}

TEST_CASE("an augmentation depends on seed, epoch and row alone", "[data]") {
  const Shape shape{1, 5, 5};
  const auto both = data::in_order({data::random_crop(9, 2), data::random_horizontal_flip(9)});
  CHECK(augmented(both, shape, 3, 1) == augmented(both, shape, 3, 1));
  const auto differs = [&](auto&& other) {  // for one row it may not; for all of twenty it does
    bool any = false;
    for (int row = 0; row < 20; ++row) any = any || augmented(both, shape, row, 1) != other(row);
    return any;
  };
  CHECK(differs([&](int row) { return augmented(both, shape, row, 2); }));
  CHECK(differs([&](int row) { return augmented(both, shape, row + 1, 1); }));
  const auto seeded = data::in_order({data::random_crop(8, 2), data::random_horizontal_flip(8)});
  CHECK(differs([&](int row) { return augmented(seeded, shape, row, 1); }));
}

TEST_CASE("augmentations refuse what is no picture and no probability", "[data]") {
  CHECK_THROWS_AS(data::random_horizontal_flip(0, 1.5), ArgumentError);
  CHECK_THROWS_AS(data::random_crop(0, -1), ArgumentError);
  Bytes pixels(6);
  const auto flip = data::random_horizontal_flip(0, 1);
  CHECK_THROWS_AS(flip(std::as_writable_bytes(std::span(pixels)), {0, 0, {DType::u8, Shape{2, 3}}}), ShapeError);
}
