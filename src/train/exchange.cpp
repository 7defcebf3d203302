// Buckets of variables: first the counts and numbers of the loss, and the gradients in the order in which the backward
// pass makes them.
#include "concord/train/exchange.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
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

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

/// Places in buckets, one behind the other.
class Exchange::Packing {
 public:
  explicit Packing(std::size_t most) : most_(most) {}

  void add(const Value& variable) {
    slots_.push_back({variable.name(), variable.spec(), bucket_, offset_});
    offset_ += aligned(variable.spec().bytes());
  }
  /// What follows goes into another bucket than what there is.
  void begin_bucket() {
    if (offset_ == 0) return;
    ++bucket_;
    offset_ = 0;
  }
  /// In as many new buckets as they need. `is_end`: no computation goes on beside the last one.
  void add_all(const std::vector<Value>& variables, bool is_end) {
    std::vector<std::size_t> bytes;
    for (const Value& variable : variables) bytes.push_back(aligned(variable.spec().bytes()));
    const std::vector<std::size_t> buckets = collective::buckets_of(bytes, most_, is_end);
    begin_bucket();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (i > 0 && buckets[i] != buckets[i - 1]) begin_bucket();
      add(variables[i]);
    }
  }
  [[nodiscard]] std::vector<Slot> slots() { return std::move(slots_); }

 private:
  std::size_t most_, bucket_ = 0, offset_ = 0;
  std::vector<Slot> slots_;
};

std::vector<Exchange::Slot> Exchange::slots_of(const Graph& graph) const {
  std::vector<Value> numbers, gradients, last;  // in the order in which they are complete
  Value bad;
  for (const Value& variable : graph.exchanged()) {
    if (variable.name() == kExchangedCounts) {
      numbers.insert(numbers.begin(), variable);
    } else if (variable.name() == optim::kExchangedNumbers) {
      numbers.push_back(variable);
    } else if (variable.name() == optim::kExchangedBad) {
      bad = variable;
      last.swap(gradients);
    } else {
      gradients.push_back(variable);
    }
  }
  std::ranges::reverse(gradients);
  std::ranges::reverse(last);
  if (!has_late_) {
    gradients.insert(gradients.end(), last.begin(), last.end());
    last.clear();
  }
  Packing packing(collective::bucket_bytes(group_->transport() == "host"));
  const bool is_rounded = gradients_ != Precision::fp32;
  if (is_rounded) {  // what is no gradient travels in buckets of its own, which are not
    packing.add_all(numbers, false);
  } else {
    gradients.insert(gradients.begin(), numbers.begin(), numbers.end());
  }
  packing.add_all(gradients, last.empty());
  if (has_late_ || is_rounded) packing.begin_bucket();
  if (bad) packing.add(bad);
  packing.add_all(last, true);
  return packing.slots();
}

bool Exchange::connect_peers(const Graph& graph) {
  Device& device = variables_->device();
  bool is_good = may_share_memory(*group_, device.info());
  has_late_ = is_good && !updates_are_whole_;
  lay_out(graph);
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
    has_late_ = false;
    lay_out(graph);
  }
  return is_good;
}

void Exchange::lay_out(const Graph& graph) {
  slots_ = slots_of(graph);
  buckets_.clear();
  late_.clear();
  for (const Slot& slot : slots_) {
    if (slot.bucket == buckets_.size()) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket.bytes = slot.offset + aligned(slot.spec.bytes());
    bucket.is_exact = gradients_ == Precision::fp32 || slot.name == kExchangedCounts ||
                      slot.name == optim::kExchangedNumbers || slot.name == optim::kExchangedBad;
    if (slot.name == kExchangedCounts) started_ = aligned(slot.spec.bytes()) / sizeof(float);
  }
  std::size_t early = buckets_.size();
  for (const Slot& slot : slots_) {
    if (has_late_ && slot.name == optim::kExchangedBad) early = slot.bucket + 1;
  }
  late_.resize(buckets_.size() - early);
  for (const Slot& slot : slots_) {
    if (slot.bucket >= early) late_[slot.bucket - early].push_back(slot.name);
  }
}

Exchange::Exchange(collective::GroupPtr group, VariablesPtr variables, const Graph& graph, Precision gradients,
                   bool updates_are_whole)
    : group_(std::move(group)),
      variables_(std::move(variables)),
      gradients_(gradients),
      updates_are_whole_(updates_are_whole) {
  const timeline::Span span("connect ranks");
  Device& device = variables_->device();
  const auto most_in_step = static_cast<std::size_t>(most_all_reduced(graph));
  const bool shares = connect_peers(graph);
  std::size_t all = 0;
  for (Bucket& bucket : buckets_) {
    all += bucket.bytes;
    bucket.buffer = shares ? bucket.peer->buffer() : device.allocate(bucket.bytes);
    if (!shares) bucket.staging = device.allocate_staging(bucket.bytes);
  }
  if (shares) last_counts_ = device.allocate(std::max<std::size_t>(started_ * sizeof(float), kAlign));
  if (most_in_step > 0) step_sums_.emplace(*group_, device, most_in_step, shares);
  sum_label_ =
      timeline::label_with("sum over ranks", transport(), {{"ranks", static_cast<std::uint64_t>(group_->size())}});
  start_.resize(buckets_[0].bytes / sizeof(float));
  clear();
  for (const Slot& slot : slots_) {
    variables_->bind(slot.name, slot.spec, Storage(buckets_[slot.bucket].buffer, slot.offset));
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
  } else if (bucket.is_exact) {
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

void Exchange::wait_for_sums() {
  constexpr std::chrono::milliseconds kLook{1};
  std::chrono::steady_clock::time_point next = std::chrono::steady_clock::now() + kLook;
  for (const Bucket& bucket : buckets_) {
    if (!bucket.peer || !bucket.arrived) continue;
    while (!bucket.arrived->is_reached()) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() < next) continue;
      try {
        group_->look_for_lost();
      } catch (const RankLost&) {
        if (!bucket.arrived->is_reached()) throw;  // else it had come to this sum, and ended after it
      }
      next = std::chrono::steady_clock::now() + kLook;
    }
  }
}

void Exchange::require_all_ranks() {
  wait_for_sums();
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
