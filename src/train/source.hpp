// Source: where a program's batches come from — a data set that lies on the device, or inputs that the host fills.
// Internal to the room.
#pragma once

#include <cstddef>
#include <string>

#include "concord/compile/variables.hpp"
#include "concord/data/dataset.hpp"

namespace concord::train {

/// What the graph of a batch needs to know of its data.
struct Source {
  /// Names the variables "<id>.features" and "<id>.labels" of a resident data set; empty: inputs "features", "labels".
  std::string id;
  TensorSpec features, labels;  // resident: of the whole set; else of one sample
  float scale = 1, shift = 0;   // of u8 features
  [[nodiscard]] bool is_resident() const { return !id.empty(); }
  friend bool operator==(const Source&, const Source&) = default;
};

/// A batch as the programs of an epoch see it.
struct BatchPlan {
  std::int64_t size = 0;  // samples
  /// Batches of this size in an epoch. 0: the epoch's last, which is shorter.
  std::int64_t rows = 0;
  std::int64_t first = 0;  // samples of the epoch before them
  friend bool operator==(const BatchPlan&, const BatchPlan&) = default;
};

/// The batches of one epoch: full ones, then one of another size if the samples do not divide.
struct EpochPlan {
  BatchPlan full, last;      // size 0: there is none
  std::int64_t samples = 0;  // of the epoch
  std::int64_t all = 0;      // of the data set; more where the last batch is dropped
  [[nodiscard]] std::int64_t batches() const { return full.rows + (last.size > 0 ? 1 : 0); }
  /// Batches that have been done after so many samples.
  [[nodiscard]] std::int64_t batches_in(std::int64_t position) const {
    return position == samples ? batches() : position / full.size;
  }
  /// Updates of the first batches of an epoch: an epoch's last update takes what is left.
  [[nodiscard]] std::int64_t updates_in(std::int64_t done, std::int64_t accumulate) const {
    return done / accumulate + (done == batches() && done % accumulate > 0 ? 1 : 0);
  }
};
/// What keeps the place in an epoch: "train" or "eval".
[[nodiscard]] std::string cursor_name(const std::string& role);
/// The variable that holds the sample numbers of the full batches, i32 [rows, size], or of the last one, i32 [size].
/// Plans with other numbers have variables of other names.
[[nodiscard]] std::string order_name(const std::string& role, const BatchPlan& plan);

struct BatchValues {
  Value features;  // f32 [size, …] or i32 [size, T]
  Value labels;    // i32 or f32 [size, …]
  Value cursor;    // i32 [1], the number of the batch in its epoch
};
/// Adds the batch to a graph. The order of a resident source starts as plan.first, plan.first + 1, …. The cursor is a
/// variable of the role `of_cursor`, all else of the batch is transient.
[[nodiscard]] BatchValues add_batch(Graph& graph, const Source& source, const BatchPlan& plan, const std::string& role,
                                    VariableRole of_cursor);

/// The device's copy of a data set, uploaded if there is none yet.
[[nodiscard]] DeviceCopies::Copy copy_to_device(const Dataset& dataset, const DevicePtr& device);

}  // namespace concord::train
