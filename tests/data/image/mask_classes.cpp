// Masks from which nothing can be learned are told before a training.
#include "concord/data/image/mask_classes.hpp"

#include "data/image/stored_images.hpp"
#include "data/records/records_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// A record for each mask, whose two pixels have these numbers.
std::shared_ptr<StoredImages> pairs_of_pixels(const std::vector<std::array<std::uint8_t, 2>>& masks, int classes) {
  auto records = std::make_shared<StoredImages>();
  records->mask_classes = classes;
  for (const auto& pixels : masks) {
    records->add_raw({0, 0}, 1, 1, 2);
    records->masks.push_back({StoredImages::bytes_of(pixels), data::RawImage{1, 1, 2}});
  }
  return records;
}

std::string refusal_of_masks(const std::vector<std::array<std::uint8_t, 2>>& masks, int classes) {
  return message_of<FormatError>([&] { data::check_classes_in_masks(*pairs_of_pixels(masks, classes), false); });
}

}  // namespace

TEST_CASE("masks of 0 and 255 have one class, from which nothing is learned", "[data][masks]") {
  CHECK_THAT(refusal_of_masks({{0, 255}, {0, 0}}, 2),
             contains("all pixels of the masks with a class are of class 0; 255 means no class") &&
                 contains("Write the classes as the numbers 0 to 1, such as 1 instead of 255"));
  CHECK_THAT(refusal_of_masks({{255, 255}, {255, 255}}, 3), contains("no pixel of the masks has a class"));
  const WarningsHeard warnings;
  data::check_classes_in_masks(*pairs_of_pixels({{0, 255}}, 2), true);
  CHECK(warnings.one("all pixels of the masks with a class are of class 0"));
}

TEST_CASE("masks whose classes occur, rarely too, are right", "[data][masks]") {
  const WarningsHeard warnings;
  data::check_classes_in_masks(*pairs_of_pixels({{0, 255}, {1, 0}}, 2), false);
  data::check_classes_in_masks(*pairs_of_pixels({{0, 0}, {0, 0}}, 2), false);  // no 255
  std::vector<std::array<std::uint8_t, 2>> many(100, {0, 255});
  many[98] = {1, 0};  // in none of a few
  data::check_classes_in_masks(*pairs_of_pixels(many, 2), false);
  data::check_classes_in_masks(*pairs_of_pixels(many, 0), false);
  CHECK(warnings.all().empty());
  data::check_classes_in_masks(*pairs_of_pixels({{0, 255}, {1, 0}}, 3), false);
  CHECK(warnings.one("none of 2 masks has a pixel of the classes 2, but some have 255"));
}
