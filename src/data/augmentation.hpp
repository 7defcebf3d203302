// Augmentations of images, for FitOptions::augmentation or a Loader. A sample is [C, H, W] of any type. The result
// depends only on (seed, epoch, row), not on threads or devices.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/loader_options.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// Mirrors an image left to right with probability p in [0, 1].
[[nodiscard]] Augmentation random_horizontal_flip(std::uint64_t seed, double p = 0.5);

/// Moves an image by up to `padding` >= 0 pixels in each direction and fills the edges with zeros. (A random crop of
/// the image after padding it.)
[[nodiscard]] Augmentation random_crop(std::uint64_t seed, std::int64_t padding);

/// Sets a random rectangle to zero with probability p. Its sides are a quarter to a half of the image's sides (after
/// Zhong et al., "Random Erasing Data Augmentation", 2020).
[[nodiscard]] Augmentation random_erasing(std::uint64_t seed, double p = 0.5);

/// Applies the augmentations one after the other.
[[nodiscard]] Augmentation in_order(std::vector<Augmentation> augmentations);

}  // namespace data
}  // namespace concord
