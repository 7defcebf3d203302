// Ranks: the place of a trainer among the ranks of a training on several devices. Internal to the library.
//
// Either the batches of an update go to the ranks in turn: of N ranks, rank r trains on its batches r, r + N, r + 2N,
// …. An update has one batch of each rank, times TrainerOptions::accumulate; where ranks were lost, as many as before.
// Or each batch is split: every rank trains on its share of the samples of each batch (TrainerOptions::split).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/train/epoch_plan.hpp"
#include "concord/train/report.hpp"

namespace concord::train {

/// What must be equal on all ranks.
struct Agreed {
  const char* what;  // "the seed"
  std::uint64_t value;
  bool is_hash = false;  // of something, so the value itself says nothing
};

class Ranks {
 public:
  /// `group` is null for a trainer on its own. `update` is the number of batches of an update of all ranks.
  /// `in_stages`: each rank has a part of the network, not of the batches.
  Ranks(collective::GroupPtr group, std::int64_t update, bool in_stages = false)
      : group_(std::move(group)), update_(update), in_stages_(in_stages) {}

  /// From now on each batch is split in these proportions, one for each rank.
  void set_shares(std::vector<double> shares) { shares_ = std::move(shares); }
  [[nodiscard]] bool are_split() const { return !shares_.empty(); }
  [[nodiscard]] const std::vector<double>& shares() const { return shares_; }
  /// The samples of a batch of so many that are the rank's.
  [[nodiscard]] collective::Part samples_of(std::int64_t samples, int rank) const;

  /// The batches of an update of all ranks.
  [[nodiscard]] std::int64_t update() const { return update_; }
  [[nodiscard]] bool are_several() const { return group_ != nullptr; }
  /// Whether each trains on other batches.
  [[nodiscard]] bool divide_batches() const { return are_several() && !in_stages_; }
  [[nodiscard]] int rank() const { return group_ ? group_->rank() : 0; }
  [[nodiscard]] int size() const { return group_ ? group_->size() : 1; }
  [[nodiscard]] const collective::GroupPtr& group() const { return group_; }

  /// The batches, or parts of batches, of this rank; `plan` has those of all. Throws ArgumentError if there are fewer
  /// full batches than ranks, or no sample of a full batch for one of the ranks.
  [[nodiscard]] EpochPlan own_plan(const EpochPlan& plan) const;
  /// Where batches are split: that of another rank.
  [[nodiscard]] EpochPlan part_of_plan(const EpochPlan& plan, int rank) const;
  /// Of `order`, the samples of the whole epoch, those of this rank's batches.
  [[nodiscard]] std::vector<std::int32_t> own_rows(const EpochPlan& plan, std::span<const std::int32_t> order) const;
  /// Those of one batch of this rank.
  [[nodiscard]] std::span<const std::int32_t> own_rows_of(const EpochPlan& plan, std::span<const std::int32_t> order,
                                                          std::int64_t batch) const;
  /// This rank's batches among the first `batches` of an epoch.
  [[nodiscard]] std::int64_t own_batches(std::int64_t batches) const {
    if (!divide_batches() || are_split()) return batches;
    return batches / update_ * own_of_update(update_) + own_of_update(batches % update_);
  }
  /// The batches of an epoch that are done, of all ranks, when this one's updates have used so many of its own.
  [[nodiscard]] std::int64_t batches_of_all(std::int64_t own, const EpochPlan& plan) const;
  /// The batches of a rank in an update.
  [[nodiscard]] int most_of_update() const { return static_cast<int>((update_ + at_once() - 1) / at_once()); }
  /// Whether some ranks have more batches in an update than others.
  [[nodiscard]] bool are_uneven() const { return update_ % at_once() != 0; }
  /// How many batches of an epoch the ranks train on at the same time.
  [[nodiscard]] int at_once() const { return are_split() ? 1 : size(); }
  /// The batch of the epoch that this rank trains on, when those from `first` on are trained on at once.
  [[nodiscard]] std::int64_t own_of(std::int64_t first) const { return are_split() ? first : first + rank(); }
  /// The number of this rank's run among those of all in an epoch, when it trains on this batch.
  [[nodiscard]] std::int64_t run_of(std::int64_t batch) const { return are_split() ? batch * size() + rank() : batch; }

  /// Throws ArgumentError on all ranks if one of these is not the same on all; they are named in the same order.
  void require_equal(std::span<const Agreed> values) const;
  /// A number that all ranks compute, and unlike devices round differently: that of rank 0.
  [[nodiscard]] double agreed(double own) const;
  /// Whether one of the ranks says yes.
  [[nodiscard]] bool any(bool own) const;
  /// The results of rank `root`, so that all ranks decide alike.
  void share(Metrics& metrics, int root = 0) const;
  /// Waits for all ranks, unless this one has failed. Throws RankLost.
  void wait() const;
  /// This rank has failed by itself, and the others do not know it yet: it exchanges nothing more, which would look
  /// like its part of a step.
  void fail() { has_failed_ = true; }
  /// Another piece of work, which all ranks do.
  void begin() { has_failed_ = false; }

 private:
  [[nodiscard]] bool owns(std::int64_t batch) const { return batch % update_ % size() == rank(); }
  /// Among the first batches of an update.
  [[nodiscard]] std::int64_t own_of_update(std::int64_t batches) const {
    return (batches + size() - 1 - rank()) / size();
  }

  collective::GroupPtr group_;
  std::int64_t update_;
  bool in_stages_;
  bool has_failed_ = false;
  std::vector<double> shares_;
};

/// The ranks of these options, with an update of `accumulate` runs of each. Throws ArgumentError for shares that are
/// not one above 0 for each rank.
[[nodiscard]] Ranks ranks_of(const TrainerOptions& options, std::int64_t accumulate);

/// The ranks with which a training goes on when others are lost (TrainerOptions::min_ranks); 0: it does not.
[[nodiscard]] int least_ranks(const TrainerOptions& options);

}  // namespace concord::train
