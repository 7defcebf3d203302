// RandAugment: random operations of one strength (Cubuk et al., 2019). Internal to the module.
#pragma once

#include <cstdint>

#include "concord/data/image/geometry.hpp"
#include "concord/data/image/planes.hpp"
#include "concord/data/image/transform.hpp"
#include "concord/data/samples.hpp"

namespace concord::data {

/// In torchvision's order.
enum class RandAugmentOperation : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize
};
inline constexpr int kRandAugmentOperations = 14;

/// One operation of strength `magnitude` of 30; `is_negative` turns the direction of those that have one. `mask`, if it
/// has pixels, is moved as the image is.
void rand_augment_operation(RandAugmentOperation operation, int magnitude, bool is_negative,
                            const ImageTransform& transform, const Planes& image, const Planes& mask,
                            AugmentMemory& memory);

/// The operations that the random numbers of a sample choose.
void rand_augment(const ImageTransform& transform, const SampleRandom& random, const Planes& image, const Planes& mask,
                  AugmentMemory& memory);

}  // namespace concord::data
