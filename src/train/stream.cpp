// Stream: two buffers on the device take turns; their transfers run beside the steps.
#include "concord/train/stream.hpp"

#include "concord/core/check.hpp"

namespace concord::train {
namespace {

/// Two batches on their way to the device, the others being filled.
constexpr std::size_t kRing = 5;

}  // namespace

Stream::Stream(DevicePtr device, const Dataset& dataset, const EpochPlan& plan, const FitOptions& options)
    : device_(std::move(device)) {
  const std::int64_t batch = plan.full.size;
  const bool merges = plan.last.size > batch;
  const auto largest = static_cast<std::size_t>(merges ? 2 * batch - 1 : batch);
  const std::size_t feature_bytes = largest * dataset.feature_spec().bytes();
  const std::size_t label_bytes = largest * dataset.label_spec().bytes();
  for (Slot& slot : slots_) {
    slot.features = device_->allocate(feature_bytes);
    slot.labels = device_->allocate(label_bytes);
  }
  std::vector<data::LoaderSlot> ring;
  for (std::size_t i = 0; i < kRing; ++i) {
    ring.push_back({device_->allocate_staging(feature_bytes), device_->allocate_staging(label_bytes)});
  }
  data::LoaderOptions loader;
  loader.batch = batch;
  loader.merge_last = merges;
  loader.threads = options.loader_threads;
  loader.augmentation = options.augmentation;
  loader_ = std::make_unique<data::Loader>(dataset, std::move(loader), std::move(ring));
}

void Stream::start(std::vector<std::int32_t> order, std::int64_t epoch) {
  for (Slot& slot : slots_) {
    if (slot.arrived) slot.arrived->wait();
    slot.batch.reset();
  }
  loader_->start(std::move(order), static_cast<std::uint32_t>(epoch));
}

void Stream::next(Program& program, bool with_labels) {
  const timeline::Span span("next batch");
  Slot& slot = slots_[used_++ % slots_.size()];
  if (slot.arrived) {
    const timeline::Span waiting("wait for an upload");
    slot.arrived->wait();
  }
  slot.batch.reset();
  {
    const timeline::Span waiting("wait for the loader");
    slot.batch = loader_->next();
  }
  CONCORD_CHECK(slot.batch, ArgumentError, "the epoch has no further batch");
  const data::Batch& batch = *slot.batch;
  const EventPtr features =
      device_->write_async(*slot.features, 0, batch.features(), batch.feature_bytes(), slot.taken);
  slot.arrived = device_->write_async(*slot.labels, 0, batch.labels(), batch.label_bytes(), slot.taken);
  device_->wait_for(features);
  device_->wait_for(slot.arrived);
  const Operand features_at = program.input("features");
  device_->copy(*slot.features, 0, *features_at.buffer, features_at.offset, batch.feature_bytes());
  if (with_labels) {
    const Operand labels_at = program.input("labels");
    device_->copy(*slot.labels, 0, *labels_at.buffer, labels_at.offset, batch.label_bytes());
  }
  slot.taken = device_->record();
}

}  // namespace concord::train
