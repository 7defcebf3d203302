// Augmentation: each operation against PIL (tests/goldens/image_augment.py), and what random numbers choose.
#include "concord/data/image/augment.hpp"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "concord/core/text.hpp"
#include "concord/data/image/colour.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using AugmentBytes = std::vector<std::uint8_t>;

const nlohmann::json& augment_goldens() {
  static const nlohmann::json goldens = golden("image_augment.json");
  return goldens;
}

AugmentBytes augment_golden(const std::string& name) {
  const std::string& digits = augment_goldens()["results"].at(name).get_ref<const std::string&>();
  AugmentBytes bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(number_in_text<std::uint8_t>(std::string_view(digits).substr(i, 2), 16).value());
  }
  return bytes;
}

data::Planes planes_of(AugmentBytes& bytes, std::int64_t channels = 3, std::int64_t height = 11,
                       std::int64_t width = 13) {
  return {bytes.data(), channels, height, width};
}

int largest_difference(const AugmentBytes& a, const AugmentBytes& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

data::ImageTransform transform_with_fill() {
  data::ImageTransform transform;
  transform.mean = {124.0f / 255, 116.0f / 255, 104.0f / 255};
  return transform;
}

/// The largest difference from the golden `name` of what `change` makes of the picture.
template <class Change>
int from_golden(const std::string& name, Change&& change) {
  AugmentBytes bytes = augment_golden("picture");
  change(planes_of(bytes));
  return largest_difference(bytes, augment_golden(name));
}

/// A sample of 3 × 24 × 32 with the given augmentation.
AugmentBytes augmented(const data::ImageAugmentation& augmentation, const SampleRandom& random,
                       AugmentBytes* mask = nullptr) {
  data::ImageTransform transform = transform_with_fill();
  transform.augmentation = augmentation;
  AugmentBytes bytes = augment_golden("equalize of");
  data::AugmentMemory memory;
  data::augment(transform, random, planes_of(bytes, 3, 24, 32),
                mask != nullptr ? planes_of(*mask, 1, 24, 32) : data::Planes{}, memory);
  return bytes;
}

}  // namespace

TEST_CASE("colours change as in PIL", "[data]") {
  std::vector<std::uint8_t> memory;
  for (const auto& [text, factor] : {std::pair{"0.0", 0.0}, {"0.55", 0.55}, {"1.0", 1.0}, {"1.73", 1.73}}) {
    CAPTURE(text);
    const std::string end = std::string(" ") + text;
    const double f = factor;
    CHECK(from_golden("brightness" + end, [&](auto image) { data::change_brightness(image, f); }) <= 1);
    CHECK(from_golden("contrast" + end, [&](auto image) { data::change_contrast(image, f); }) <= 1);
    CHECK(from_golden("saturation" + end, [&](auto image) { data::change_saturation(image, f); }) <= 1);
    CHECK(from_golden("sharpness" + end, [&](auto image) { data::change_sharpness(image, f, memory); }) <= 1);
  }
  for (const auto& [text, part] : {std::pair{"-0.5", -0.5}, {"-0.1", -0.1}, {"0.0", 0.0}, {"0.3", 0.3}, {"0.5", 0.5}}) {
    CAPTURE(text);
    const double p = part;
    CHECK(from_golden(std::string("hue ") + text, [&](auto image) { data::turn_hue(image, p); }) <= 1);
  }
}

TEST_CASE("tables of colours are those of PIL", "[data]") {
  for (const int bits : {4, 7}) {
    CHECK(from_golden(fmt::format("posterize {}", bits), [&](auto image) { data::posterize(image, bits); }) == 0);
  }
  for (const int threshold : {0, 178, 255}) {
    CHECK(from_golden(fmt::format("solarize {}", threshold), [&](auto image) { data::solarize(image, threshold); }) ==
          0);
  }
  CHECK(from_golden("stretch", [](auto image) { data::stretch_contrast(image); }) <= 1);
  AugmentBytes big = augment_golden("equalize of");
  data::equalize(planes_of(big, 3, 24, 32));
  CHECK(big == augment_golden("equalize"));
  big = augment_golden("equalize of");
  data::stretch_contrast(planes_of(big, 3, 24, 32));
  CHECK(largest_difference(big, augment_golden("stretch big")) <= 1);
}

TEST_CASE("a uniform image and one of few pixels keep their values", "[data]") {
  AugmentBytes grey(3 * 40 * 40, 77);
  const AugmentBytes before = grey;
  const data::Planes image = planes_of(grey, 3, 40, 40);
  data::stretch_contrast(image);
  data::equalize(image);
  data::turn_hue(image, 0.25);
  data::change_contrast(image, 3);
  data::change_saturation(image, 0);
  CHECK(grey == before);
  AugmentBytes pixel{10, 20, 30};
  std::vector<std::uint8_t> memory;
  data::change_sharpness(planes_of(pixel, 3, 1, 1), 2, memory);
  data::equalize(planes_of(pixel, 3, 1, 1));
  CHECK(pixel == AugmentBytes{10, 20, 30});
}

TEST_CASE("grey images have no saturation and no hue", "[data]") {
  AugmentBytes bytes{0, 50, 100, 150, 200, 250};
  const data::Planes image = planes_of(bytes, 1, 2, 3);
  data::change_saturation(image, 0);
  data::turn_hue(image, 0.5);
  CHECK(bytes == AugmentBytes{0, 50, 100, 150, 200, 250});
  data::change_contrast(image, 0);
  CHECK(bytes == AugmentBytes(6, 125));
}

TEST_CASE("images turn, shear and move as in torchvision", "[data]") {
  data::AugmentMemory memory;
  struct Move {
    std::string name;
    double degrees, right, down, scale, shear;
  };
  for (const Move& move :
       {Move{"affine 30", 30, 0, 0, 1, 0}, Move{"affine -171.5", -171.5, 0, 0, 1, 0},
        Move{"affine 12:3:-2:0.8:14", 12, 3, -2, 0.8, 14}, Move{"affine -40:0:1:1.4:-20", -40, 0, 1, 1.4, -20}}) {
    CAPTURE(move.name);
    const data::AffineMap map = data::affine_map(11, 13, move.degrees, move.scale, move.shear, move.right, move.down);
    AugmentBytes bytes = augment_golden("picture");
    data::warp(map, transform_with_fill(), planes_of(bytes), memory);
    CHECK(largest_difference(bytes, augment_golden(move.name)) <= 1);
    const AugmentBytes moved(bytes.begin(), bytes.begin() + 11 * 13);

    AugmentBytes red = augment_golden("picture");
    red.resize(11 * 13);
    const AugmentBytes before = red;
    data::warp(map, transform_with_fill(), planes_of(red, 1), memory);
    CHECK(red == moved);
    red = before;
    data::warp_nearest(map, 124, planes_of(red, 1), memory);
    AugmentBytes nearest = augment_golden(move.name + " nearest");
    nearest.resize(11 * 13);
    CHECK(red == nearest);
  }
}

TEST_CASE("the operations of RandAugment are torchvision's", "[data]") {
  using Operation = data::RandAugmentOperation;
  struct Named {
    std::string name;
    Operation operation;
    bool has_sign;
  };
  data::AugmentMemory memory;
  for (const Named& named :
       {Named{"shear_x", Operation::shear_x, true}, Named{"shear_y", Operation::shear_y, true},
        Named{"translate_x", Operation::translate_x, true}, Named{"translate_y", Operation::translate_y, true},
        Named{"rotate", Operation::rotate, true}, Named{"brightness_op", Operation::brightness, true},
        Named{"color_op", Operation::color, true}, Named{"contrast_op", Operation::contrast, true},
        Named{"sharpness_op", Operation::sharpness, true}, Named{"posterize_op", Operation::posterize, false},
        Named{"solarize_op", Operation::solarize, false}}) {
    for (const int magnitude : {9, 30}) {
      for (const bool is_negative : {false, true}) {
        if (is_negative && !named.has_sign) continue;
        const std::string name = fmt::format("{} {}", named.name, is_negative ? -magnitude : magnitude);
        CAPTURE(name);
        CHECK(from_golden(name, [&](auto image) {
                data::rand_augment_operation(named.operation, magnitude, is_negative, transform_with_fill(), image, {},
                                             memory);
              }) <= 1);
      }
    }
  }
}

TEST_CASE("augmentation depends on seed, epoch and row alone", "[data]") {
  const data::ImageAugmentation all = data::parse_augment(
      "vflip,randaugment=3:12,affine=20:0.1:0.8:1.2:10,jitter=0.4:0.4:0.4:0.1,cutout=0.3,erase=0.5");
  std::set<AugmentBytes> results;
  for (std::int32_t row = 0; row < 20; ++row) {
    const AugmentBytes once = augmented(all, {7, 3, row});
    CHECK(once == augmented(all, {7, 3, row}));
    results.insert(once);
    results.insert(augmented(all, {8, 3, row}));
    results.insert(augmented(all, {7, 4, row}));
  }
  CHECK(results.size() == 60);
  // The same on every machine: a change of this sum changes everyone's training.
  std::uint64_t sum = 0;
  for (std::int32_t row = 0; row < 20; ++row) {
    for (const std::uint8_t value : augmented(all, {7, 3, row})) sum = sum * 31 + value;
  }
  CHECK(sum == 0x9f0f9478628deff6);
}

TEST_CASE("nothing random changes nothing", "[data]") {
  CHECK(augmented({}, {1, 2, 3}) == augment_golden("equalize of"));
  data::ImageAugmentation still;
  still.affine.emplace();
  still.jitter.emplace();
  still.rand_augment = data::RandAugment{0, 9};
  CHECK(augmented(still, {1, 2, 3}) == augment_golden("equalize of"));
}

TEST_CASE("flips and erasing happen as often as they are asked to", "[data]") {
  data::ImageTransform transform;
  transform.augmentation = data::parse_augment("flip=0.25,erase=0.75");
  int flips = 0, erased = 0;
  AugmentBytes bytes(32 * 32);
  data::AugmentMemory memory;
  constexpr int kSamples = 4000;
  for (std::int32_t row = 0; row < kSamples; ++row) {
    const SampleRandom random{5, 0, row};
    flips += data::is_flipped(transform, random) ? 1 : 0;
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{200});
    data::augment(transform, random, planes_of(bytes, 1, 32, 32), {}, memory);
    const auto covered = std::count(bytes.begin(), bytes.end(), std::uint8_t{0});
    erased += covered > 0 ? 1 : 0;
    if (covered > 0) CHECK((covered >= 10 && covered <= 400));
  }
  CHECK(flips / double{kSamples} == Approx(0.25).margin(0.03));
  CHECK(erased / double{kSamples} == Approx(0.75).margin(0.03));
}

TEST_CASE("cutout covers a square with the mean", "[data]") {
  std::int64_t most = 0;
  for (std::int32_t row = 0; row < 50; ++row) {
    const AugmentBytes before = augment_golden("equalize of");
    const AugmentBytes after = augmented(data::parse_augment("cutout=0.5"), {5, 0, row});
    std::int64_t changed = 0;
    for (std::size_t i = 0; i < 24 * 32; ++i) {
      if (after[i] == before[i]) continue;
      CHECK((after[i] == 124 && after[i + 24 * 32] == 116));
      ++changed;
    }
    most = std::max(most, changed);
  }
  CHECK((most > 120 && most <= 12 * 12));
}

TEST_CASE("masks move with their images", "[data]") {
  // Each pixel of the mask is the number of its place, so a mask shows where pixels came from.
  data::ImageAugmentation moves = data::parse_augment("vflip,affine=25:0.2:0.7:1.3:10,jitter=0.5");
  data::ImageTransform transform = transform_with_fill();
  transform.augmentation = moves;
  AugmentBytes mask = augment_golden("equalize of");
  mask.resize(24 * 32);  // the red plane
  for (std::uint8_t& value : mask) value = value < 128 ? 0 : 1;
  int inside = 0, equal = 0;
  for (std::int32_t row = 0; row < 20; ++row) {
    AugmentBytes moved = mask;
    AugmentBytes image(3 * mask.size());
    for (std::size_t i = 0; i < image.size(); ++i) image[i] = mask[i % mask.size()] == 0 ? 40 : 210;
    data::AugmentMemory memory;
    transform.augmentation.jitter.reset();
    data::augment(transform, {3, 0, row}, planes_of(image, 3, 24, 32), planes_of(moved, 1, 24, 32), memory);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (moved[i] == transform.mask_fill) {
        CHECK(image[i] == 124);
        continue;
      }
      ++inside;
      equal += (moved[i] == 1) == (image[i] > 125) ? 1 : 0;
    }
  }
  CHECK(inside > 5000);
  CHECK(equal > inside * 0.97);  // all but mixtures at edges
}

TEST_CASE("sine, cosine and exponential are exact to the last bits", "[data]") {
  for (double degrees = -180; degrees <= 180; degrees += 0.37) {
    const data::SineCosine got = data::sine_cosine(degrees);
    CHECK(got.sine == Approx(std::sin(degrees * 3.14159265358979323846 / 180)).margin(1e-15));
    CHECK(got.cosine == Approx(std::cos(degrees * 3.14159265358979323846 / 180)).margin(1e-15));
  }
  for (double x = -2; x <= 2; x += 0.013) CHECK(data::exponential(x) == Approx(std::exp(x)).epsilon(1e-13));
}
