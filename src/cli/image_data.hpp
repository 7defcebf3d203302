// How the images behind --data become the inputs of a network.
#pragma once

#include "concord/cli/data_options.hpp"
#include "concord/cli/data_spec.hpp"
#include "concord/cli/trained.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// The preparation of images: what options say, else what the training had, else the size of the network's samples and
/// the mean and deviation of ImageNet. Throws ArgumentError for a network that takes no images.
[[nodiscard]] data::ImageTransform image_transform(const DataOptions& options, const models::Model& model,
                                                   const Trained& trained);
/// Warns where weights that say nothing of images may be those of torchvision that want another mean and deviation.
void advise_normalisation(const DataOptions& options, const models::Model& model, const Trained& trained);
/// The number of classes in masks. Throws ArgumentError for a number that is none.
[[nodiscard]] int mask_classes(const DataSpec& spec, const models::Model& model, const Trained& trained);
/// Images in memory, augmented when they are read, at their own size. Throws ArgumentError for other samples.
[[nodiscard]] SharedSamples augmented_arrays(const Samples& samples, const data::ImageAugmentation& augmentation);

}  // namespace concord::cli
