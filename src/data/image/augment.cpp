// The random changes of one sample. Each has its own stream of random numbers.
#include "concord/data/image/augment.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "concord/data/image/colour.hpp"
#include "concord/data/image/draw.hpp"

namespace concord::data {
namespace {

void mirror_image_rows(const Planes& image) {
  const auto row_bytes = static_cast<std::size_t>(image.width);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = 0; y < image.height / 2; ++y) {
      std::uint8_t* const upper = image.row(c, y);
      std::swap_ranges(upper, upper + row_bytes, image.row(c, image.height - 1 - y));
    }
  }
}

void move_randomly(const ImageTransform& transform, const SampleRandom& random, const Planes& image, const Planes& mask,
                   AugmentMemory& memory) {
  const RandomAffine& affine = *transform.augmentation.affine;
  Draws draws(random, "image.affine");
  const double degrees = draws.between(-affine.degrees, affine.degrees);
  const double right = draws.between(-affine.translate, affine.translate) * static_cast<double>(image.width);
  const double down = draws.between(-affine.translate, affine.translate) * static_cast<double>(image.height);
  const double scale = draws.between(affine.smallest, affine.largest);
  const double shear = draws.between(-affine.shear, affine.shear);
  // Whole pixels, as torchvision.
  const AffineMap map =
      affine_map(image.height, image.width, degrees, scale, shear, std::floor(right + 0.5), std::floor(down + 0.5));
  warp(map, transform, image, mask, memory);
}

void jitter_colours(const ColourJitter& jitter, const SampleRandom& random, const Planes& image) {
  const JitterDraw drawn = draw_jitter(jitter, random);
  for (const int which : drawn.order) {
    if (which == 0 && jitter.brightness > 0) change_brightness(image, drawn.brightness);
    if (which == 1 && jitter.contrast > 0) change_contrast(image, drawn.contrast);
    if (which == 2 && jitter.saturation > 0) change_saturation(image, drawn.saturation);
    if (which == 3 && jitter.hue > 0) turn_hue(image, drawn.hue);
  }
}

/// The rectangle may begin and end outside.
void cover_window(const ImageTransform& transform, const Planes& image, const Window& window) {
  const std::int64_t top = std::clamp<std::int64_t>(window.y, 0, image.height);
  const std::int64_t bottom = std::clamp<std::int64_t>(window.y + window.height, 0, image.height);
  const std::int64_t left = std::clamp<std::int64_t>(window.x, 0, image.width);
  const std::int64_t right = std::clamp<std::int64_t>(window.x + window.width, 0, image.width);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = top; y < bottom; ++y) {
      std::memset(image.row(c, y) + left, transform.fill(c), static_cast<std::size_t>(right - left));
    }
  }
}

void cut_out(const ImageTransform& transform, const SampleRandom& random, const Planes& image) {
  Draws draws(random, "image.cutout");
  const double shorter = static_cast<double>(std::min(image.height, image.width));
  const auto side = static_cast<std::int64_t>(transform.augmentation.cutout * shorter + 0.5);
  const std::int64_t y = draws.below(image.height), x = draws.below(image.width);
  cover_window(transform, image, {x - side / 2, y - side / 2, side, side});
}

void erase_randomly(const ImageTransform& transform, const SampleRandom& random, const Planes& image) {
  Draws draws(random, "image.erase");
  if (!draws.happens(transform.augmentation.erase)) return;
  constexpr double kMostLogRatio = 1.1939224684724346, kLeastLogRatio = -1.2039728043259361;  // ln 3.3, ln 0.3
  constexpr int kTries = 10;
  const double area = static_cast<double>(image.plane_size());
  for (int i = 0; i < kTries; ++i) {
    const double part = area * draws.between(0.02, 0.33);
    const double ratio = exponential(draws.between(kLeastLogRatio, kMostLogRatio));
    const auto height = static_cast<std::int64_t>(std::sqrt(part * ratio) + 0.5);
    const auto width = static_cast<std::int64_t>(std::sqrt(part / ratio) + 0.5);
    if (height >= image.height || width >= image.width) continue;
    const std::int64_t y = draws.below(image.height - height + 1), x = draws.below(image.width - width + 1);
    return cover_window(transform, image, {x, y, width, height});
  }
}

}  // namespace

bool is_flipped(const ImageTransform& transform, const SampleRandom& random) {
  return Draws(random, "image.flip").happens(transform.augmentation.flip);
}

bool is_turned_over(const ImageTransform& transform, const SampleRandom& random) {
  return Draws(random, "image.vflip").happens(transform.augmentation.vertical_flip);
}

JitterDraw draw_jitter(const ColourJitter& jitter, const SampleRandom& random) {
  Draws draws(random, "image.jitter");
  const auto factor = [&](double strength) { return draws.between(std::max(1 - strength, 0.0), 1 + strength); };
  JitterDraw drawn;
  drawn.brightness = factor(jitter.brightness), drawn.contrast = factor(jitter.contrast);
  drawn.saturation = factor(jitter.saturation), drawn.hue = draws.between(-jitter.hue, jitter.hue);
  for (std::size_t i = 3; i > 0; --i) {
    std::swap(drawn.order[i], drawn.order[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(i) + 1))]);
  }
  return drawn;
}

void augment(const ImageTransform& transform, const SampleRandom& random, const Planes& image, const Planes& mask,
             AugmentMemory& memory) {
  const ImageAugmentation& augmentation = transform.augmentation;
  if (is_turned_over(transform, random)) {
    mirror_image_rows(image);
    if (mask.pixels != nullptr) mirror_image_rows(mask);
  }
  if (augmentation.rand_augment) rand_augment(transform, random, image, mask, memory);
  if (augmentation.affine) move_randomly(transform, random, image, mask, memory);
  if (augmentation.jitter) jitter_colours(*augmentation.jitter, random, image);
  if (augmentation.cutout > 0) cut_out(transform, random, image);
  if (augmentation.erase > 0) erase_randomly(transform, random, image);
}

}  // namespace concord::data
