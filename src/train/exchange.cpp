// Buckets of variables: first the counts of the loss, and the others in the order in which the backward pass makes
// them.
#include "concord/train/exchange.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "concord/collective/buckets.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/timeline_label.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/train/peers.hpp"
#include "concord/train/trace.hpp"

namespace concord::train {
namespace {

constexpr std::size_t kAlign = 256;  // bytes; kernels read whole vectors
/// Late buckets: those that are complete at the very end of the backward pass. What needs each of them is launched
/// apart.
constexpr std::size_t kMostLate = 2;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

std::vector<Exchange::Slot> Exchange::slots_of(const Graph& graph) const {
  std::vector<const Value*> ordered;
  for (const Value& variable : graph.exchanged()) ordered.insert(ordered.begin(), &variable);
  std::ranges::stable_partition(ordered, [](const Value* value) { return value->name() == kExchangedCounts; });
  // What is no gradient is never rounded: it travels in a bucket of its own.
  std::size_t exact = 0;
  if (gradients_ != Precision::fp32) {
    const auto rest = std::ranges::stable_partition(ordered, [](const Value* value) {
      return value->name() == kExchangedCounts || value->name() == optim::kExchangedNumbers;
    });
    exact = ordered.size() - rest.size();
  }
  std::vector<std::size_t> bytes;
  for (const Value* variable : ordered) bytes.push_back(aligned(variable->spec().bytes()));
  const bool is_one_machine = group_->transport() == "host";
  const std::size_t most = collective::bucket_bytes(is_one_machine);
  std::vector<std::size_t> buckets(exact, 0);
  for (const std::size_t bucket : collective::buckets_of(std::span(bytes).subspan(exact), most)) {
    buckets.push_back(bucket + (exact > 0 ? 1 : 0));
  }
  std::vector<Slot> slots;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (i > 0 && buckets[i] != buckets[i - 1]) offset = 0;
    slots.push_back({ordered[i]->name(), ordered[i]->spec(), buckets[i], offset});
    offset += bytes[i];
  }
  return slots;
}

bool Exchange::connect_peers() {
  Device& device = variables_->device();
  bool is_good = may_share_memory(*group_, device.info());
  for (Bucket& bucket : buckets_) {
    if (!is_good) break;
    bucket.peer = connected_peer_memory(*group_, device, bucket.bytes);
    is_good = bucket.peer != nullptr;
  }
  CONCORD_CHECK(
      is_good || collective::wanted_transport() != "peer", NotSupported,
      "the exchange is to be peer (--exchange, CONCORD_EXCHANGE), but the devices of this training do not read "
      "each other's memory");
  if (!is_good) {
    for (Bucket& bucket : buckets_) bucket.peer.reset();
  }
  return is_good;
}

Exchange::Exchange(collective::GroupPtr group, VariablesPtr variables, const Graph& graph, Precision gradients,
                   bool updates_are_whole)
    : group_(std::move(group)),
      variables_(std::move(variables)),
      gradients_(gradients),
      updates_are_whole_(updates_are_whole),
      slots_(slots_of(graph)) {
  const timeline::Span span("connect ranks");
  Device& device = variables_->device();
  std::size_t all = 0;
  for (const Slot& slot : slots_) {
    if (slot.bucket == buckets_.size()) buckets_.emplace_back();
    buckets_.back().bytes = slot.offset + aligned(slot.spec.bytes());
    all += aligned(slot.spec.bytes());
    if (slot.name == kExchangedCounts) started_ = aligned(slot.spec.bytes()) / sizeof(float);
  }
  const auto most_in_step = static_cast<std::size_t>(most_all_reduced(graph));
  const bool shares = connect_peers();
  for (Bucket& bucket : buckets_) {
    bucket.buffer = shares ? bucket.peer->buffer() : device.allocate(bucket.bytes);
    if (!shares) bucket.staging = device.allocate_staging(bucket.bytes);
  }
  if (shares) last_counts_ = device.allocate(std::max<std::size_t>(started_ * sizeof(float), kAlign));
  if (most_in_step > 0) step_sums_.emplace(*group_, device, most_in_step, shares);
  sum_label_ =
      timeline::label_with("sum over ranks", transport(), {{"ranks", static_cast<std::uint64_t>(group_->size())}});
  start_.resize(buckets_[0].bytes / sizeof(float));
  clear();
  if (shares && !updates_are_whole_) late_.resize(std::min(kMostLate, buckets_.size() - 1));
  const std::size_t early = buckets_.size() - late_.size();
  for (const Slot& slot : slots_) {
    variables_->bind(slot.name, slot.spec, Storage(buckets_[slot.bucket].buffer, slot.offset));
    if (slot.bucket >= early) late_[slot.bucket - early].push_back(slot.name);
  }
  log(LogLevel::info, fmt::format("rank {} of {} exchanges {} MiB in {} parts by {}", group_->rank(), group_->size(),
                                  all >> 20, buckets_.size(), transport()));
}

bool Exchange::fits(const Graph& graph) const {
  return slots_ == slots_of(graph) && std::cmp_less_equal(most_all_reduced(graph), step_sums_ ? step_sums_->most() : 0);
}

void Exchange::start_counts(std::vector<float> counts) {
  std::ranges::copy(counts, start_.begin());
  if (!last_counts_ || started_ == 0) return;
  variables_->device().write(*last_counts_, 0, std::as_bytes(std::span(start_).first(started_)));
}

void Exchange::clear() {
  for (const Bucket& bucket : buckets_) variables_->device().fill(*bucket.buffer, 0, bucket.bytes, 0);
}

std::vector<std::size_t> Exchange::marks_of(const Program& step) const {
  std::vector<std::vector<std::string>> names(buckets_.size());
  for (const Slot& slot : slots_) names[slot.bucket].push_back(slot.name);
  std::vector<std::size_t> marks;
  for (const std::vector<std::string>& bucket : names) {
    const std::size_t complete = step.launches_until_assigned(bucket);
    marks.push_back(std::max(complete, marks.empty() ? 0 : marks.back()));
  }
  return marks;
}

void Exchange::begin(std::size_t number) {
  Device& device = variables_->device();
  Bucket& bucket = buckets_[number];
  const EventPtr steps = device.record();
  if (bucket.peer) {
    const std::size_t started = number == 0 ? started_ : 0;
    bucket.arrived = bucket.peer->sum(0, bucket.bytes / sizeof(float), last_counts_.get(), started, steps);
  } else {
    bucket.arrived = device.download_async(*bucket.buffer, 0, bucket.staging, bucket.bytes, steps);
    bucket.summed = sums_.add([this, number] { sum_on_host(number); });
  }
}

void Exchange::sum_on_host(std::size_t number) {
  const Bucket& bucket = buckets_[number];
  if (bucket.arrived) bucket.arrived->wait();
  const timeline::Time begin = timeline::now();
  const std::span<float> numbers = floats(bucket.staging->bytes().first(bucket.bytes));
  if (number == 0) {
    group_->all_reduce(numbers, start_);
    std::copy_n(numbers.begin(), started_, start_.begin());
  } else if (gradients_ == Precision::fp32) {
    group_->all_reduce(numbers);
  } else {
    group_->all_reduce_rounded(numbers, gradients_);
  }
  timeline::add(track_, sum_label_, begin, timeline::now(), bucket.bytes);
}

void Exchange::finish() {
  const timeline::Span span("exchange");
  Device& device = variables_->device();
  if (buckets_[0].peer) {
    if (updates_are_whole_) require_all_ranks();
    for (std::size_t i = 0; i + late_.size() < buckets_.size(); ++i) device.wait_for(buckets_[i].arrived);
    if (started_ > 0) device.copy(*buckets_[0].buffer, 0, *last_counts_, 0, started_ * sizeof(float));
    return;
  }
  EventPtr sent;
  for (Bucket& bucket : buckets_) {
    bucket.summed.get();
    sent = device.write_async(*bucket.buffer, 0, bucket.staging, bucket.bytes, nullptr);
  }
  device.wait_for(sent);
}

std::vector<std::size_t> Exchange::late_marks_of(const Program& update) const {
  std::vector<std::size_t> marks;
  for (const std::vector<std::string>& names : late_) marks.push_back(update.launches_until_read(names));
  for (std::size_t i = marks.size(); i > 1; --i) marks[i - 2] = std::min(marks[i - 2], marks[i - 1]);
  return marks;
}

void Exchange::finish_late(std::size_t number) {
  variables_->device().wait_for(buckets_[buckets_.size() - late_.size() + number].arrived);
}

void Exchange::finish_all() {
  finish();
  for (std::size_t i = 0; i < late_.size(); ++i) finish_late(i);
}

void Exchange::require_all_ranks() {
  for (Bucket& bucket : buckets_) {
    if (bucket.peer) require_all_ranks_of(*bucket.peer);
  }
  if (step_sums_) step_sums_->require_all_ranks();
}

void Exchange::give_up() {
  if (step_sums_) step_sums_->give_up();
  for (Bucket& bucket : buckets_) {
    if (bucket.peer) bucket.peer->give_up();
    if (!bucket.summed.valid()) continue;
    try {
      bucket.summed.get();
    } catch (const RankLost&) {  // as those before it
    }
  }
}

void Exchange::unbind() {
  for (const Slot& slot : slots_) variables_->erase(slot.name);
}

}  // namespace concord::train
