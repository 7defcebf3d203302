// RandAugment: torchvision's operations and strengths.
#include "concord/data/image/rand_augment.hpp"

#include "concord/data/image/colour.hpp"
#include "concord/data/image/draw.hpp"

namespace concord::data {

void rand_augment_operation(RandAugmentOperation operation, int magnitude, bool is_negative,
                            const ImageTransform& transform, const Planes& image, const Planes& mask,
                            AugmentMemory& memory) {
  const double part = static_cast<double>(magnitude) / 30;
  const double sign = is_negative ? -1 : 1;
  const double factor = 1 + sign * 0.9 * part;
  const double shear = sign * 0.3 * part;
  // Whole pixels; 150/331 as in AutoAugment.
  const auto pixels = [&](std::int64_t side) {
    return sign * static_cast<double>(static_cast<std::int64_t>(150.0 / 331.0 * static_cast<double>(side) * part));
  };
  const auto move = [&](const AffineMap& map) { warp(map, transform, image, mask, memory); };
  using enum RandAugmentOperation;
  switch (operation) {
    case identity: return;
    case shear_x: return move({.xy = shear});
    case shear_y: return move({.yx = shear});
    case translate_x: return move({.x0 = -pixels(image.width)});
    case translate_y: return move({.y0 = -pixels(image.height)});
    case rotate: return move(affine_map(image.height, image.width, -sign * 30 * part, 1, 0, 0, 0));
    case brightness: return change_brightness(image, factor);
    case color: return change_saturation(image, factor);
    case contrast: return change_contrast(image, factor);
    case sharpness: return change_sharpness(image, factor, memory.source);
    case posterize: return concord::data::posterize(image, 8 - (magnitude * 4 + 15) / 30);
    case solarize: return concord::data::solarize(image, static_cast<int>(255 * (1 - part) + 0.999));
    case auto_contrast: return stretch_contrast(image);
    case equalize: return concord::data::equalize(image);
  }
}

void rand_augment(const ImageTransform& transform, const SampleRandom& random, const Planes& image, const Planes& mask,
                  AugmentMemory& memory) {
  const RandAugment& chosen = *transform.augmentation.rand_augment;
  Draws draws(random, "image.randaugment");
  for (int i = 0; i < chosen.operations; ++i) {
    const auto operation = static_cast<RandAugmentOperation>(draws.below(kRandAugmentOperations));
    const bool is_negative = draws.happens(0.5);
    rand_augment_operation(operation, chosen.magnitude, is_negative, transform, image, mask, memory);
  }
}

}  // namespace concord::data
