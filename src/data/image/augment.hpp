// Augment: what an ImageTransform does to an image once it is cropped and resized. Internal to the module.
#pragma once

#include "concord/data/image/geometry.hpp"
#include "concord/data/image/planes.hpp"
#include "concord/data/image/rand_augment.hpp"
#include "concord/data/image/transform.hpp"
#include "concord/data/samples.hpp"

namespace concord::data {

/// Whether a sample is mirrored left to right.
[[nodiscard]] bool is_flipped(const ImageTransform& transform, const SampleRandom& random);

/// All changes after the crop and the flip. `mask`, of one channel, is moved as the image is; without pixels there is
/// none.
void augment(const ImageTransform& transform, const SampleRandom& random, const Planes& image, const Planes& mask,
             AugmentMemory& memory);

}  // namespace concord::data
