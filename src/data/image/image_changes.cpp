// Drawing the changes of a sample, and which samples have no others.
#include "concord/data/image/image_changes.hpp"

#include <algorithm>

#include "concord/data/image/augment.hpp"
#include "concord/data/image/colour.hpp"
#include "concord/data/image/image_samples.hpp"
#include "concord/data/selection.hpp"

namespace concord::data {
namespace {

/// Whether the images of a data set keep their size and are changed in no other way.
bool has_only_image_changes(const Dataset& dataset, const ImageTransform& transform) {
  const Shape& shape = dataset.features.shape();
  const bool keeps_size = shape[1] == transform.channels && shape[2] == transform.height &&
                          shape[3] == transform.width && transform.resized() == std::min(shape[2], shape[3]);
  const ImageAugmentation& augmentation = transform.augmentation;
  const bool jitters_exactly =
      !augmentation.jitter || (augmentation.jitter->hue == 0 && shape[2] * shape[3] <= kMostJittered);
  const bool has_others = augmentation.resized_crop || augmentation.rand_augment || augmentation.affine ||
                          augmentation.cutout > 0 || augmentation.erase > 0;
  return keeps_size && shape[2] * shape[3] <= kMostMoved && jitters_exactly && !has_others && dataset.feature_name.empty();
}

double strength_of(const ColourJitter& jitter, int which) {
  return which == 0 ? jitter.brightness : which == 1 ? jitter.contrast : which == 2 ? jitter.saturation : 0;
}

}  // namespace

std::optional<ChangedImages> changed_images_of(const Samples& samples) {
  if (const auto* selection = dynamic_cast<const Selection*>(&samples)) return changed_images_of(*selection->all());
  const auto* images = dynamic_cast<const ImageSamples*>(&samples);
  const Dataset* const dataset = images == nullptr ? nullptr : images->records().dataset();
  if (dataset == nullptr || !has_only_image_changes(*dataset, images->transform())) return std::nullopt;
  return ChangedImages{dataset, &images->transform()};
}

std::size_t mixtures_of(const ImageTransform& transform) {
  const std::optional<ColourJitter>& jitter = transform.augmentation.jitter;
  if (!jitter) return 0;
  std::size_t mixtures = 0;
  for (const int which : {0, 1, 2}) mixtures += strength_of(*jitter, which) > 0 ? 1 : 0;
  return mixtures;
}

std::size_t change_numbers(const ImageTransform& transform) {
  return kPlaceNumbers + kMixtureNumbers * mixtures_of(transform);
}

void draw_changes(const ImageTransform& transform, const SampleRandom& random, std::span<float> numbers) {
  const Cut cut = choose_cut(transform, transform.height, transform.width, random);
  const auto first = [](double begin, std::int64_t place) { return static_cast<std::int64_t>(begin) - place; };
  const std::int64_t top = first(cut.box.y, cut.top), left = first(cut.box.x, cut.left);
  const bool over = is_turned_over(transform, random), mirrored = is_flipped(transform, random);
  numbers[kTop] = static_cast<float>(over ? top + transform.height - 1 : top);
  numbers[kDown] = over ? -1.0F : 1.0F;
  numbers[kLeft] = static_cast<float>(mirrored ? left + transform.width - 1 : left);
  numbers[kRight] = mirrored ? -1.0F : 1.0F;
  if (!transform.augmentation.jitter) return;
  const JitterDraw drawn = draw_jitter(*transform.augmentation.jitter, random);
  std::span<float> mixture = numbers.subspan(kPlaceNumbers);
  for (const int which : drawn.order) {
    if (!(strength_of(*transform.augmentation.jitter, which) > 0)) continue;
    MixedWith with = which == 0 ? MixedWith::black : which == 1 ? MixedWith::mean_luma : MixedWith::luma;
    double factor = which == 0 ? drawn.brightness : which == 1 ? drawn.contrast : drawn.saturation;
    if (with == MixedWith::luma && transform.channels == 1) factor = 1;  // grey has no saturation
    const std::int32_t steps = colour_steps(factor);
    mixture[0] = static_cast<float>(with);
    mixture[1] = static_cast<float>(steps / kFactorPart);
    mixture[2] = static_cast<float>(steps % kFactorPart);
    mixture = mixture.subspan(kMixtureNumbers);
  }
}

}  // namespace concord::data
