// StepSums: what the ranks of a training sum in the midst of a step (all_reduce). Internal to the library.
#pragma once

#include <memory>
#include <span>

#include "concord/collective/group.hpp"
#include "concord/compile/program.hpp"
#include "concord/core/timeline.hpp"

namespace concord::train {

/// Sums have an order of their own, beside that of the exchange of gradients, which goes on meanwhile. All ranks make
/// the same sums.
class StepSums {
 public:
  /// Sums of up to `most` floats. The ranks of `group` make it together. By the memory that the devices share if
  /// `by_peer` (on all ranks), else by the group.
  StepSums(collective::Group& group, Device& device, std::size_t most, bool by_peer);
  [[nodiscard]] std::size_t most() const { return most_; }

  /// Replaces these floats by their sum over the ranks, for work that is enqueued later. Through the host, waits for
  /// it. Throws RankLost.
  void sum(const Operand& values, std::size_t count);
  /// What this rank adds to a sum of a step that it has no batch for: zeros.
  void add_nothing(std::size_t count);
  /// As Exchange.
  void require_all_ranks();
  /// As Exchange; no sum may follow.
  void give_up();

 private:
  /// Of the first floats in the memory that the devices share, for work that is enqueued later.
  void sum_by_peer(std::size_t count);
  /// Of the first floats in the staging memory.
  void sum_by_host(std::size_t count);

  collective::GroupPtr group_;
  Device& device_;
  std::size_t most_;
  std::unique_ptr<PeerMemory> peer_;  // null: through the host
  StagingPtr staging_;                // for the host
  EventPtr sent_;                     // of the last sum in it
  timeline::Track track_{"sums within a step"};
  timeline::Label label_ = 0;
};

}  // namespace concord::train
