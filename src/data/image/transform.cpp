// ImageTransform: what is in range.
#include "concord/data/image/transform.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

/// Throws unless least <= value <= most, also for NaN.
void check_transform_range(const char* what, double value, double least, double most) {
  CONCORD_CHECK(value >= least && value <= most, ArgumentError, "image: {} {} is outside [{}, {}]", what, value, least,
                most);
}

void check_augmentation(const ImageAugmentation& augmentation) {
  const auto range = check_transform_range;
  if (augmentation.resized_crop) {
    const RandomResizedCrop& crop = *augmentation.resized_crop;
    range("the largest part of rrc", crop.largest, 1e-6, 1);
    range("the smallest part of rrc", crop.smallest, 1e-6, crop.largest);
    CONCORD_CHECK(augmentation.crop == 0, ArgumentError,
                  "image: rrc and crop={} both choose a part of the image; take one of them", augmentation.crop);
  }
  range("crop", static_cast<double>(augmentation.crop), 0, static_cast<double>(kLongestSide));
  range("the probability of flip", augmentation.flip, 0, 1);
  range("the probability of vflip", augmentation.vertical_flip, 0, 1);
  if (augmentation.rand_augment) {
    range("the number of operations of randaugment", augmentation.rand_augment->operations, 0, 100);
    range("the magnitude of randaugment", augmentation.rand_augment->magnitude, 0, 30);
  }
  if (augmentation.affine) {
    const RandomAffine& affine = *augmentation.affine;
    range("the angle in degrees", affine.degrees, 0, 180);
    range("the translation", affine.translate, 0, 1);
    range("the smallest scale", affine.smallest, 0.01, 100);
    range("the largest scale", affine.largest, affine.smallest, 100);
    range("the shear in degrees", affine.shear, 0, 80);
  }
  if (augmentation.jitter) {
    range("the brightness of jitter", augmentation.jitter->brightness, 0, 100);
    range("the contrast of jitter", augmentation.jitter->contrast, 0, 100);
    range("the saturation of jitter", augmentation.jitter->saturation, 0, 100);
    range("the hue of jitter", augmentation.jitter->hue, 0, 0.5);
  }
  range("cutout", augmentation.cutout, 0, 1);
  range("the probability of erase", augmentation.erase, 0, 1);
}

}  // namespace

std::int64_t ImageTransform::resized() const {
  return resize > 0 ? resize : (std::min(height, width) * 256 + 112) / 224;
}

std::uint8_t ImageTransform::fill(std::int64_t channel) const {
  if (mean.empty()) return 0;
  const float level = mean[static_cast<std::size_t>(channel)] * 255.0f + 0.5f;
  return static_cast<std::uint8_t>(std::clamp(level, 0.0f, 255.0f));
}

void ImageTransform::check() const {
  const auto sides = static_cast<double>(kLongestSide);
  check_transform_range("the height", static_cast<double>(height), 1, sides);
  check_transform_range("the width", static_cast<double>(width), 1, sides);
  check_transform_range("resize", static_cast<double>(resize), 0, sides);
  CONCORD_CHECK(channels == 1 || channels == 3, ArgumentError, "image: {} channels; there are 1 (grey) and 3 (colour)",
                channels);
  const auto per_channel = [&](const char* what, const std::vector<float>& values) {
    const bool fits = values.empty() || values.size() == static_cast<std::size_t>(channels);
    CONCORD_CHECK(fits, ArgumentError, "image: {} values of the {} for {} channels", values.size(), what, channels);
    for (const float value : values) {
      CONCORD_CHECK(std::isfinite(value), ArgumentError, "image: the {} has the value {}", what, value);
    }
  };
  per_channel("mean", mean);
  per_channel("deviation", deviation);
  for (const float value : deviation) {
    CONCORD_CHECK(value > 0, ArgumentError, "image: the deviation {} is not above 0", value);
  }
  check_augmentation(augmentation);
}

}  // namespace concord::data
