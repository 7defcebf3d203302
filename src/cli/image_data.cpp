// The preparation of images.
#include "concord/cli/image_data.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/cli/data_parts.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/data/in_memory.hpp"

namespace concord::cli {
namespace {

/// Photos are resized a little larger than what is cut out of them; small pictures are taken whole.
constexpr std::int64_t kLeastPhoto = 96;
/// Means and deviations of the training images of ImageNet, which most published weights are for.
const std::vector<float> kImageNetMean{0.485F, 0.456F, 0.406F};
const std::vector<float> kImageNetDeviation{0.229F, 0.224F, 0.225F};

}  // namespace

data::ImageTransform image_transform(const DataOptions& options, const models::Model& model, const Trained& trained) {
  const std::int64_t trained_side = trained.preprocessing ? data::evaluation_of(*trained.preprocessing).height : 0;
  const Shape sample = published_image(model, options.image > 0 ? options.image : trained_side);
  data::ImageTransform transform;
  transform.channels = sample[0];
  transform.height = sample[1];
  transform.width = sample[2];
  if (transform.channels == 3) {
    transform.mean = kImageNetMean;
    transform.deviation = kImageNetDeviation;
  }
  if (trained.preprocessing) transform = data::evaluation_of(*trained.preprocessing);
  if (options.image > 0) {
    transform.height = transform.width = options.image;
    transform.resize = 0;
  }
  if (options.resize > 0) transform.resize = options.resize;
  const std::int64_t side = std::min(transform.height, transform.width);
  if (transform.resize == 0 && side < kLeastPhoto) transform.resize = side;
  if (!options.mean.empty()) {
    transform.mean = options.mean;
    transform.deviation = options.deviation;
  }
  transform.check();
  return transform;
}

void advise_normalisation(const DataOptions& options, const models::Model& model, const Trained& trained) {
  const bool is_one = model.name == "googlenet" || model.name == "inception_v3";
  if (!is_one || !trained.is_of_file || trained.preprocessing || !options.mean.empty()) return;
  log(LogLevel::warning,
      fmt::format(
          "torchvision's weights of {} need --mean 0.5,0.5,0.5 --deviation 0.5,0.5,0.5; without them images get "
          "the mean and deviation of ImageNet",
          model.name));
}

int mask_classes(const DataSpec& spec, const models::Model& model, const Trained& trained) {
  return classes_of_masks(spec).value_or(trained.classes > 0 ? trained.classes : model.classes);
}

SharedSamples augmented_arrays(const Samples& samples, const data::ImageAugmentation& augmentation) {
  const Dataset* const dataset = data::dataset_of(samples);
  const Shape sample = samples.feature_specs()[0].spec.shape;
  CONCORD_CHECK(dataset != nullptr && sample.rank() == 3, ArgumentError,
                "--augment is for images; {} has samples of shape {}", samples.name, sample.str());
  data::ImageTransform transform;
  transform.channels = sample[0];
  transform.height = sample[1];
  transform.width = sample[2];
  transform.resize = std::min(sample[1], sample[2]);
  transform.augmentation = augmentation;
  return data::image_set(*dataset).with(transform);
}

}  // namespace concord::cli
