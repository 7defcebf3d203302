// Augment: what an ImageTransform does to an image once it is cropped and resized. Internal to the module.
#pragma once

#include <array>

#include "concord/data/image/geometry.hpp"
#include "concord/data/image/planes.hpp"
#include "concord/data/image/rand_augment.hpp"
#include "concord/data/image/transform.hpp"
#include "concord/data/samples.hpp"

namespace concord::data {

/// Whether a sample is mirrored left to right.
[[nodiscard]] bool is_flipped(const ImageTransform& transform, const SampleRandom& random);

/// Whether it is mirrored top to bottom.
[[nodiscard]] bool is_turned_over(const ImageTransform& transform, const SampleRandom& random);

/// The factors of a sample's colours, and the order in which they apply: 0 brightness, 1 contrast, 2 saturation, 3 hue.
struct JitterDraw {
  double brightness = 1, contrast = 1, saturation = 1, hue = 0;
  std::array<int, 4> order{0, 1, 2, 3};
};
[[nodiscard]] JitterDraw draw_jitter(const ColourJitter& jitter, const SampleRandom& random);

/// All changes after the crop and the flip. `mask`, of one channel, is moved as the image is; without pixels there is
/// none.
void augment(const ImageTransform& transform, const SampleRandom& random, const Planes& image, const Planes& mask,
             AugmentMemory& memory);

}  // namespace concord::data
