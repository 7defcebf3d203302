// Fuzzing the texts about images: an augmentation, which is then carried out on a small image, and preprocessing as
// JSON. What is accepted is the same after being written and read again.
#include <cstdlib>
#include <vector>

#include "concord/core/error.hpp"
#include "concord/data/image/augment.hpp"
#include "concord/data/image/preprocessing.hpp"

using namespace concord::data;

namespace {

void augment_by(std::string_view text) {
  ImageTransform transform;
  try {
    transform.augmentation = parse_augment(text);
  } catch (const concord::ArgumentError& error) {
    if (std::string_view(error.what()).empty()) std::abort();
    return;
  }
  if (parse_augment(transform.augmentation.str()) != transform.augmentation) std::abort();
  if (transform.augmentation.rand_augment && transform.augmentation.rand_augment->operations > 4) return;
  const auto size = static_cast<std::int64_t>(text.size());
  transform.height = 1 + size % 17, transform.width = 1 + size % 23;
  const std::int64_t height = 1 + size * 37 % 301, width = 1 + size * 53 % 211;
  const concord::SampleRandom random{text.size(), 1, 2};
  const Cut cut = choose_cut(transform, height, width, random);
  const Window window = window_of(cut);
  const bool has_pixels = cut.kept.height > 0 && cut.kept.width > 0;
  const bool is_inside = window.x >= 0 && window.y >= 0 && window.width > 0 && window.height > 0 &&
                         window.x + window.width <= width && window.y + window.height <= height;
  if (has_pixels && !is_inside) std::abort();
  std::vector<std::uint8_t> image(static_cast<std::size_t>(3 * transform.height * transform.width), 99);
  std::vector<std::uint8_t> mask(image.size() / 3, 1);
  AugmentMemory memory;
  augment(transform, random, {image.data(), 3, transform.height, transform.width},
          {mask.data(), 1, transform.height, transform.width}, memory);
}

void read_preprocessing(std::string_view text) {
  try {
    const Preprocessing read = Preprocessing::from_json(text, "net");
    if (Preprocessing::from_json(read.to_json(), "net") != read) std::abort();
  } catch (const concord::FormatError& error) {
    if (!std::string_view(error.what()).starts_with("net")) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  augment_by(text);
  read_preprocessing(text);
  return 0;
}
