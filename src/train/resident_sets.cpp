// Data sets that come to the device, and make room for others.
#include "concord/train/resident_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "concord/core/error.hpp"
#include "concord/core/log.hpp"
#include "concord/data/image/image_changes.hpp"
#include "concord/data/in_memory.hpp"

namespace concord::train {
namespace {

/// For training, for validation and two more.
constexpr std::size_t kMostSets = 4;

/// The names of the variables of a set, in the order of the arrays in its copy.
std::vector<std::string> variables_of(const Dataset& dataset, const std::string& id) {
  std::vector<std::string> names;
  for (const Column& column : dataset.feature_columns()) names.push_back(id + '.' + feature_name(column.name));
  for (const Column& column : dataset.label_columns()) names.push_back(id + '.' + label_name(column.name));
  return names;
}

}  // namespace

bool ResidentSets::Resident::holds(const Dataset& dataset) const {
  return is_copy_of(copy, dataset) && variables == variables_of(dataset, id);
}

bool ResidentSets::contains(const Samples& samples) const {
  const Dataset* const dataset = data::dataset_of(samples);
  return dataset != nullptr && std::ranges::any_of(sets_, [&](const Resident& set) { return set.holds(*dataset); });
}

Source ResidentSets::source_of(const Samples& samples) {
  const Dataset* const dataset = data::dataset_of(samples);
  return dataset == nullptr ? streamed_source(samples) : source_in_memory(*dataset, samples);
}

Source ResidentSets::training_source_of(const Samples& samples) {
  const std::optional<data::ChangedImages> images = data::changed_images_of(samples);
  if (!images) return source_of(samples);
  Source source = source_in_memory(*images->dataset, samples);
  if (!source.is_resident()) return source;
  source.features = samples.feature_specs();
  source.features[0].spec.shape = with_batch(source.features[0].spec.shape, images->dataset->size());
  source.changes = *images->transform;
  return source;
}

Source ResidentSets::moved_source_of(const Samples& samples) {
  const Dataset* const dataset = data::dataset_of(samples);
  const TensorSpec image = samples.feature_specs()[0].spec;
  if (dataset == nullptr || image.dtype != DType::u8 || image.shape.rank() != 3 ||
      image.shape[1] * image.shape[2] > data::kMostMoved) {
    return streamed_source(samples);
  }
  Source source = source_in_memory(*dataset, samples);
  if (!source.is_resident()) return source;
  data::ImageTransform moves{.height = image.shape[1], .width = image.shape[2]};
  moves.augmentation.crop = 1, moves.augmentation.flip = 1;  // both may happen
  source.changes = moves;
  return source;
}

Source ResidentSets::source_in_memory(const Dataset& dataset, const Samples& samples) {
  const auto found = std::ranges::find_if(sets_, [&](const Resident& set) { return set.holds(dataset); });
  if (found != sets_.end()) {
    sets_.splice(sets_.begin(), sets_, found);
    return resident_source(dataset, found->id);
  }
  if (sets_.size() == kMostSets) make_room();
  const auto stream = [&] {
    const Device& device = variables_->device();
    log(LogLevel::info, fmt::format("data set of {} MiB is streamed: {} has {} MiB, {} in use", dataset.bytes() >> 20,
                                    device.info().name, device.info().memory >> 20, device.allocated() >> 20));
    return streamed_source(samples);
  };
  if (!fits(dataset)) return stream();
  DeviceCopies::Copy copy;
  try {
    copy = copy_to_device(dataset, variables_->device_pointer());
  } catch (const OutOfMemory&) {  // others hold what the device seemed to have
    return stream();
  }
  const std::string id = fmt::format("data.{}", seen_++);
  const std::vector<std::string> names = variables_of(dataset, id);
  for (std::size_t i = 0; i < names.size(); ++i) {
    variables_->bind(names[i], copy.sources[i].spec(), copy.buffers[i]);
  }
  sets_.push_front({id, copy, names});
  return resident_source(dataset, id);
}

bool ResidentSets::fits(const Dataset& dataset) const {
  std::size_t bytes = dataset.bytes();
  for (const Resident& set : sets_) {
    for (const BufferPtr& buffer : set.copy.buffers) bytes += buffer->bytes();
  }
  const Device& device = variables_->device();
  const DeviceInfo& info = device.info();
  std::size_t largest = 0;
  for (const auto& columns : {dataset.feature_columns(), dataset.label_columns()}) {
    for (const Column& column : columns) largest = std::max(largest, column.values.spec().bytes());
  }
  return device.allocated() + dataset.bytes() <= info.memory &&
         static_cast<double>(bytes) <= fraction_ * static_cast<double>(info.memory) &&
         (info.max_allocation == 0 || largest <= info.max_allocation);
}

void ResidentSets::make_room() {
  const auto unused = std::prev(sets_.end(), sets_.back().id == kept_ ? 2 : 1);
  programs_.drop(unused->id);
  for (const std::string& name : unused->variables) variables_->erase(name);
  sets_.erase(unused);
}

}  // namespace concord::train
