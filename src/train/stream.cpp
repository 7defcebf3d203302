// Stream: two buffers on the device take turns; their transfers run beside the steps.
#include "concord/train/stream.hpp"

#include <chrono>

#include "concord/core/check.hpp"
#include "concord/core/threads.hpp"
#include "concord/data/in_memory.hpp"

namespace concord::train {
namespace {

/// Two batches on their way to the device, the others being filled.
constexpr std::size_t kRing = 5;
/// Seconds: what taking a batch costs that is ready.
constexpr double kShortest = 20e-6;

}  // namespace

Stream::Stream(DevicePtr device, const Samples& samples, const EpochPlan& plan, data::LoaderOptions options)
    : device_(std::move(device)) {
  const std::int64_t batch = plan.full.size;
  const bool merges = plan.last.size > batch;
  const auto largest = static_cast<std::size_t>(merges ? 2 * batch - 1 : batch);
  const Source source = streamed_source(samples);
  for (const ColumnSpec& column : source.features) {
    features_.columns.push_back({feature_name(column.name), column.spec.bytes()});
  }
  for (const ColumnSpec& column : source.labels) {
    labels_.columns.push_back({label_name(column.name), column.spec.bytes()});
  }
  const std::size_t feature_bytes = largest * features_.bytes();
  const std::size_t label_bytes = std::max<std::size_t>(largest * labels_.bytes(), 1);  // there may be no labels
  for (Slot& slot : slots_) {
    slot.features = device_->allocate(feature_bytes);
    slot.labels = device_->allocate(label_bytes);
  }
  std::vector<data::LoaderSlot> ring;
  for (std::size_t i = 0; i < kRing; ++i) {
    ring.push_back({device_->allocate_staging(feature_bytes), device_->allocate_staging(label_bytes)});
  }
  options.batch = batch;
  options.merge_last = merges;
  if (options.threads == 0) options.threads = data::dataset_of(samples) != nullptr ? 2 : num_threads();
  const std::shared_ptr<const Samples> borrowed(std::shared_ptr<void>(), &samples);
  loader_ = std::make_unique<data::Loader>(borrowed, std::move(options), std::move(ring));
}

void Stream::start(std::vector<std::int32_t> order, std::int64_t epoch) {
  for (Slot& slot : slots_) {
    if (slot.arrived) slot.arrived->wait();
    slot.batch.reset();
  }
  loader_->start(std::move(order), static_cast<std::uint32_t>(epoch));
}

std::size_t Stream::Inputs::bytes() const {
  std::size_t sum = 0;
  for (const Input& input : columns) sum += input.bytes;
  return sum;
}

void Stream::copy(const Buffer& from, const Inputs& inputs, std::int64_t samples, Program& program) {
  std::size_t offset = 0;
  for (const Input& input : inputs.columns) {
    const std::size_t bytes = static_cast<std::size_t>(samples) * input.bytes;
    if (program.has_input(input.name)) {
      const Operand to = program.input(input.name);
      device_->copy(from, offset, *to.buffer, to.offset, bytes);
    }
    offset += bytes;
  }
}

void Stream::next(Program& program) {
  const timeline::Span span("next batch");
  Slot& slot = slots_[used_++ % slots_.size()];
  if (slot.arrived) {
    const timeline::Span waiting("wait for an upload");
    slot.arrived->wait();
  }
  slot.batch.reset();
  {
    const timeline::Span waiting("wait for the loader");
    const EventPtr steps = device_->record();
    device_->flush();
    const auto begin = std::chrono::steady_clock::now();
    slot.batch = loader_->next();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > kShortest && steps->is_reached()) seconds_waited_ += waited.count();
  }
  CONCORD_CHECK(slot.batch, ArgumentError, "the epoch has no further batch");
  const data::Batch& batch = *slot.batch;
  const EventPtr features =
      device_->write_async(*slot.features, 0, batch.features(), batch.feature_bytes(), slot.taken);
  slot.arrived = features;
  if (batch.label_bytes() > 0) {
    slot.arrived = device_->write_async(*slot.labels, 0, batch.labels(), batch.label_bytes(), slot.taken);
  }
  device_->wait_for(features);
  device_->wait_for(slot.arrived);
  copy(*slot.features, features_, batch.size(), program);
  copy(*slot.labels, labels_, batch.size(), program);
  slot.taken = device_->record();
}

}  // namespace concord::train
