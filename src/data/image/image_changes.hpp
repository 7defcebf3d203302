// Image changes: an augmentation of images that keep their size, as a few numbers for each sample. The host draws the
// numbers as it does for a sample that it augments itself; a device changes a batch of images by them. Internal to the
// library; train/augmentation has the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "concord/data/dataset.hpp"
#include "concord/data/image/transform.hpp"

namespace concord::data {

/// Images of a data set in memory under an augmentation that image changes can express.
struct ChangedImages {
  const Dataset* dataset = nullptr;
  const ImageTransform* transform = nullptr;
};
/// What `samples` are, or are a selection of, if they are such images: nothing resizes them, and they are cropped,
/// mirrored, or changed in brightness, contrast and saturation. The images have at most kMostMoved pixels, jittered ones
/// kMostJittered.
[[nodiscard]] std::optional<ChangedImages> changed_images_of(const Samples& samples);

/// So many places are exact in fp32, and sums of so many levels.
inline constexpr std::int64_t kMostMoved = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostJittered = std::int64_t{1} << 16;

/// The numbers of one sample. Pixel (y, x) of the result is pixel (top + down·y, left + right·x) of the image; outside
/// of it the fill of the transform. Then for each mixture of `mixtures_of`: with what the levels are mixed (MixedWith),
/// and the factor in steps of 2^-16 as high·kFactorPart + low.
enum ImageChange : std::size_t { kTop, kDown, kLeft, kRight, kPlaceNumbers };
enum class MixedWith : std::uint8_t { black, mean_luma, luma };
inline constexpr std::size_t kMixtureNumbers = 3;
inline constexpr std::int32_t kFactorPart = 4096;

/// The colour changes of each sample: one for each of brightness, contrast and saturation.
[[nodiscard]] std::size_t mixtures_of(const ImageTransform& transform);
[[nodiscard]] std::size_t change_numbers(const ImageTransform& transform);
/// Draws the numbers of a sample of such images, as ImageSamples::read does.
void draw_changes(const ImageTransform& transform, const SampleRandom& random, std::span<float> numbers);

}  // namespace concord::data
