// EpochPlan: the batches of an epoch and the order of its samples. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/train/options.hpp"

namespace concord::train {

/// A batch as the programs of an epoch see it.
struct BatchPlan {
  std::int64_t size = 0;  // samples
  /// Batches of this size in an epoch. 0: the epoch's last, which is shorter.
  std::int64_t rows = 0;
  std::int64_t first = 0;  // samples of the epoch before them
  std::int64_t full = 0;   // samples of the epoch's other batches
  int parts = 1;           // ranks that share a batch of `full` samples: `size` is the part of one
  /// Of the batch, or the part of one, among those of an update: 1 on average.
  [[nodiscard]] double weight() const {
    return full == 0 ? 1 : static_cast<double>(size) * parts / static_cast<double>(full);
  }
  friend bool operator==(const BatchPlan&, const BatchPlan&) = default;
};

/// The batches of one epoch: full ones, then one of another size if the samples do not divide.
struct EpochPlan {
  BatchPlan full, last;      // size 0: there is none
  std::int64_t samples = 0;  // of the epoch
  std::int64_t all = 0;      // of the data set; more where the last batch is dropped, fewer where it is filled
  [[nodiscard]] std::int64_t batches() const { return full.rows + (last.size > 0 ? 1 : 0); }
  /// The number of batches that are done after `position` samples.
  [[nodiscard]] std::int64_t batches_in(std::int64_t position) const {
    return position == samples ? batches() : position / full.size;
  }
  /// Updates of the first batches of an epoch: an epoch's last update takes what is left.
  [[nodiscard]] std::int64_t updates_in(std::int64_t done, std::int64_t accumulate) const {
    return done / accumulate + (done == batches() && done % accumulate > 0 ? 1 : 0);
  }
};

/// Throws ArgumentError for an empty data set or a batch below 1; a batch above `samples` means all of them.
[[nodiscard]] EpochPlan plan_epoch(std::int64_t samples, std::int64_t batch, LastBatch last = LastBatch::keep);

/// The samples of an epoch in the order in which they are trained on.
[[nodiscard]] std::vector<std::int32_t> order_of(const EpochPlan& plan, const Samples& samples,
                                                 const FitOptions& options, std::uint64_t seed, std::int64_t epoch);
/// The numbers from `first` on: samples in the order of the data set.
[[nodiscard]] std::vector<std::int32_t> rows_from(std::int64_t first, std::int64_t count);

}  // namespace concord::train
