// Resampling: parts of images at another size, and images as the channels of a column. Internal to the module.
#pragma once

#include <cstdint>
#include <span>

#include "concord/data/image/image.hpp"

namespace concord::data {

/// A rectangle in pixels, whose edges may lie within pixels.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Resizes the part `box` of an image to height × width by a triangle filter, which is as wide as a pixel of the result
/// where the image becomes smaller (bilinear with antialiasing, as PIL and torchvision have it). `box` lies within the
/// image.
void resample(const Image& src, const Box& box, std::int64_t height, std::int64_t width, Image& dst);

/// Nearest neighbour, for masks of classes.
void resample_nearest(const Image& src, const Box& box, std::int64_t height, std::int64_t width, Image& dst);

/// u8 [C, H, W] of an image, mirrored left to right if asked.
void to_planes(const Image& src, bool mirror, std::span<std::uint8_t> dst);

}  // namespace concord::data
