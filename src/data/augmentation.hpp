// Augmentations of pictures, to be handed to FitOptions::augmentation or a Loader. Samples are [C, H, W] of any type;
// what happens to one depends on (seed, epoch, row) alone, not on threads or devices.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/loader.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// Mirrors a picture left to right with probability p in [0, 1].
[[nodiscard]] Augmentation random_horizontal_flip(std::uint64_t seed, double p = 0.5);

/// Moves a picture by up to `padding` >= 0 pixels each way; zeros come in at the edges. (A random crop of the picture
/// with that padding around it.)
[[nodiscard]] Augmentation random_crop(std::uint64_t seed, std::int64_t padding);

/// Sets a random rectangle to zero with probability p; its sides are a quarter to a half of the picture's (after Zhong
/// et al., "Random Erasing Data Augmentation", 2020).
[[nodiscard]] Augmentation random_erasing(std::uint64_t seed, double p = 0.5);

/// One after the other.
[[nodiscard]] Augmentation in_order(std::vector<Augmentation> augmentations);

}  // namespace data
}  // namespace concord
