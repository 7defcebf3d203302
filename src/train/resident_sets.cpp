// Data sets that come to the device, and make room for others.
#include "concord/train/resident_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "concord/core/error.hpp"
#include "concord/core/log.hpp"

namespace concord::train {
namespace {

/// For training, for validation and two more.
constexpr std::size_t kMostSets = 4;

bool holds(const DeviceCopies::Copy& copy, const Dataset& dataset) {
  return copy.features_source.bytes().data() == dataset.features.bytes().data() &&
         copy.labels_source.bytes().data() == dataset.labels.bytes().data() &&
         copy.features_source.spec() == dataset.features.spec();
}

Source resident_source(const Dataset& dataset, const std::string& id) {
  return {id, dataset.features.spec(), dataset.labels.spec(), dataset.scale, dataset.shift};
}

}  // namespace

bool ResidentSets::contains(const Dataset& dataset) const {
  return std::ranges::any_of(sets_, [&](const Resident& set) { return holds(set.copy, dataset); });
}

Source ResidentSets::source_of(const Dataset& dataset) {
  const auto found = std::ranges::find_if(sets_, [&](const Resident& set) { return holds(set.copy, dataset); });
  if (found != sets_.end()) {
    sets_.splice(sets_.begin(), sets_, found);
    return resident_source(dataset, found->id);
  }
  if (sets_.size() == kMostSets) make_room();
  const auto stream = [&] {
    const Device& device = variables_->device();
    log(LogLevel::info, fmt::format("data set of {} MiB is streamed: {} has {} MiB, {} in use", dataset.bytes() >> 20,
                                    device.info().name, device.info().memory >> 20, device.allocated() >> 20));
    return streamed_source(dataset);
  };
  if (!fits(dataset)) return stream();
  DeviceCopies::Copy copy;
  try {
    copy = copy_to_device(dataset, variables_->device_pointer());
  } catch (const OutOfMemory&) {  // others hold what the device seemed to have
    return stream();
  }
  const std::string id = fmt::format("data.{}", seen_++);
  variables_->bind(id + ".features", dataset.features.spec(), copy.features);
  variables_->bind(id + ".labels", dataset.labels.spec(), copy.labels);
  sets_.push_front({id, copy});
  return resident_source(dataset, id);
}

bool ResidentSets::fits(const Dataset& dataset) const {
  std::size_t bytes = dataset.bytes();
  for (const Resident& set : sets_) bytes += set.copy.features->bytes() + set.copy.labels->bytes();
  const Device& device = variables_->device();
  const DeviceInfo& info = device.info();
  const std::size_t largest = std::max(dataset.features.spec().bytes(), dataset.labels.spec().bytes());
  return device.allocated() + dataset.bytes() <= info.memory &&
         static_cast<double>(bytes) <= fraction_ * static_cast<double>(info.memory) &&
         (info.max_allocation == 0 || largest <= info.max_allocation);
}

void ResidentSets::make_room() {
  const auto unused = std::prev(sets_.end(), sets_.back().id == kept_ ? 2 : 1);
  programs_.drop(unused->id);
  variables_->erase(unused->id + ".features");
  variables_->erase(unused->id + ".labels");
  sets_.erase(unused);
}

}  // namespace concord::train
