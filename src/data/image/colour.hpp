// Colour: changes of u8 planes in place, each by a given amount, as torchvision and PIL define them to within a grey
// level. All of it is integers. Jitter and RandAugment choose the amounts. Internal to the module.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/data/image/planes.hpp"

namespace concord::data {

// Factors are in [0, 101]: 1 changes nothing, 0 leaves what the image is mixed with. A value v mixed with b becomes
// b + factor·(v − b), rounded, within 0 … 255.

/// A factor in steps of 2^-16.
[[nodiscard]] std::int32_t colour_steps(double factor);

/// Mixes with black.
void change_brightness(const Planes& image, double factor);
/// Mixes with the mean grey of the image.
void change_contrast(const Planes& image, double factor);
/// Mixes with the grey of each pixel (ITU-R BT.601 luma). A grey image stays as it is.
void change_saturation(const Planes& image, double factor);
/// Mixes with the image smoothed by 3×3 pixels; the border stays. `memory` is for a plane and is reused.
void change_sharpness(const Planes& image, double factor, std::vector<std::uint8_t>& memory);
/// Turns the hue by a part in [−1, 1] of the circle; the largest and the smallest channel of a pixel keep their values.
void turn_hue(const Planes& image, double part);

/// Keeps the upper `bits` of 8.
void posterize(const Planes& image, int bits);
/// Inverts values of at least `threshold`.
void solarize(const Planes& image, int threshold);
/// Stretches each channel to 0 … 255.
void stretch_contrast(const Planes& image);
/// Gives each channel a flat histogram.
void equalize(const Planes& image);

}  // namespace concord::data
