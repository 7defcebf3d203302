// Source: where a program's batches come from — a data set that lies on the device, or inputs that the host fills.
// Internal to the room.
#pragma once

#include <cstddef>
#include <string>

#include "concord/compile/variables.hpp"
#include "concord/data/dataset.hpp"
#include "concord/train/epoch_plan.hpp"

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
/// Batches of this data set that the host fills.
[[nodiscard]] Source streamed_source(const Dataset& dataset);

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
