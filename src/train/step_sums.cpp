// Sums within a step: through a buffer that the devices, or the processes, share.
#include "concord/train/step_sums.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/timeline_label.hpp"
#include "concord/train/peers.hpp"

namespace concord::train {
namespace {

/// PeerMemory::sum works on vectors of four.
std::size_t whole_vectors(std::size_t count) { return (count + 3) / 4 * 4; }

}  // namespace

StepSums::StepSums(collective::Group& group, Device& device, std::size_t most, bool by_peer)
    : group_(group.duplicate()), device_(device), most_(most) {
  if (by_peer) {
    peer_ = connected_peer_memory(*group_, device, whole_vectors(most) * sizeof(float), true);
    if (!peer_) log(LogLevel::warning, "sums within a step go through the host: the devices share no memory for them");
  }
  if (!peer_) staging_ = device.allocate_staging(most * sizeof(float));
  label_ = timeline::label_with("sum over ranks", peer_ ? "peer" : group_->transport(),
                                {{"ranks", static_cast<std::uint64_t>(group_->size())}});
}

void StepSums::sum(const Operand& values, std::size_t count) {
  CONCORD_CHECK(count <= most_, ArgumentError, "an all_reduce of {} numbers, where at most {} are expected", count,
                most_);
  const std::size_t bytes = count * sizeof(float);
  if (peer_) {
    device_.copy(*values.buffer, values.offset, *peer_->buffer(), 0, bytes);
    sum_by_peer(count);
    device_.copy(*peer_->buffer(), 0, *values.buffer, values.offset, bytes);
    return;
  }
  const EventPtr arrived = device_.download_async(*values.buffer, values.offset, staging_, bytes, device_.record());
  if (arrived) arrived->wait();
  sum_by_host(count);
  sent_ = device_.write_async(*values.buffer, values.offset, staging_, bytes, nullptr);
  device_.wait_for(sent_);
}

void StepSums::add_nothing(std::size_t count) {
  if (peer_) {
    device_.fill(*peer_->buffer(), 0, count * sizeof(float), 0);
    sum_by_peer(count);
    return;
  }
  if (sent_) sent_->wait();  // it reads the staging memory
  sent_ = nullptr;
  std::ranges::fill(staging_->bytes().first(count * sizeof(float)), std::byte{0});
  sum_by_host(count);
}

void StepSums::sum_by_peer(std::size_t count) {
  device_.wait_for(peer_->sum(0, whole_vectors(count), nullptr, 0, device_.record()));
}

void StepSums::sum_by_host(std::size_t count) {
  const timeline::Time begin = timeline::now();
  group_->all_reduce({reinterpret_cast<float*>(staging_->bytes().data()), count});
  timeline::add(track_, label_, begin, timeline::now(), count * sizeof(float));
}

void StepSums::require_all_ranks() {
  if (peer_) require_all_ranks_of(*peer_);
}

void StepSums::give_up() {
  if (peer_) peer_->give_up();
  group_.reset();  // a rank that waits for this one in a sum learns that it has left
}

}  // namespace concord::train
