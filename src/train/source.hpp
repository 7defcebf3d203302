// Source: where a program's batches come from — a data set that lies on the device, or inputs that the host fills.
// Internal to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "concord/compile/program.hpp"
#include "concord/compile/variables.hpp"
#include "concord/data/dataset.hpp"
#include "concord/graph/values.hpp"
#include "concord/train/augmentation.hpp"
#include "concord/train/epoch_plan.hpp"

namespace concord::train {

/// What the graph of a batch needs to know of its data.
struct Source {
  /// Begins the names of the variables of a resident data set; empty: the columns are inputs.
  std::string id;
  std::vector<ColumnSpec> features, labels;  // of a resident set, with the spec of the whole column
  /// How the images of a resident set are changed on the device (train/augmentation.hpp).
  std::optional<data::ImageTransform> changes = std::nullopt;
  [[nodiscard]] bool is_resident() const { return !id.empty(); }
  friend bool operator==(const Source&, const Source&) = default;
};
/// Batches of this data set that the host fills.
[[nodiscard]] Source streamed_source(const Samples& samples);
/// Batches of one column of features and one of labels, given by the specs of a sample.
[[nodiscard]] Source streamed_source(const TensorSpec& features, const TensorSpec& labels);
/// The data set as a copy on the device.
[[nodiscard]] Source resident_source(const Dataset& dataset, const std::string& id);

/// (…) → (size, …).
[[nodiscard]] Shape with_batch(const Shape& sample, std::int64_t size);

/// The name of the input, or of the variable behind "<id>.", of a column: "features", or "features.image" for a column
/// with a name; "labels" likewise.
[[nodiscard]] std::string feature_name(const std::string& column);
[[nodiscard]] std::string label_name(const std::string& column);

/// What keeps the place in an epoch: "train" or "eval".
[[nodiscard]] std::string cursor_name(const std::string& role);
/// The variable that holds the sample numbers of the full batches, i32 [rows, size], or of the last one, i32 [size].
/// Plans with other numbers have variables of other names.
[[nodiscard]] std::string order_name(const std::string& role, const BatchPlan& plan);

/// Writes these variables: `order` has rows of `samples`, which are resident.
void write_order(Variables& variables, const std::string& role, const EpochPlan& plan, const Samples& samples,
                 std::vector<std::int32_t> order);

/// Draws the numbers of an epoch for `order`, rows of the samples, and writes them to the device.
void write_changes(Variables& variables, const std::string& role, const EpochPlan& plan,
                   const data::ImageTransform& transform, std::span<const std::int32_t> order, std::uint32_t epoch,
                   const DrawChanges& draw);

struct BatchValues {
  Values features;  // f32 or i32 [size, …]
  Values labels;    // i32 or f32 [size, …]
  Value cursor;     // i32 [1], the number of the batch in its epoch; empty without a place in an epoch
};
/// Adds inputs for a batch of `size` samples, without a cursor.
[[nodiscard]] BatchValues add_inputs(Graph& graph, const Source& source, std::int64_t size);
/// Fills those inputs that the program reads with the columns of `batch`; it may have no labels.
void write_batch(Program& program, const Dataset& batch);
/// Adds the batch to a graph. The order of a resident source starts as plan.first, plan.first + 1, …. The cursor is a
/// variable of the role `of_cursor`, all else of the batch is transient.
[[nodiscard]] BatchValues add_batch(Graph& graph, const Source& source, const BatchPlan& plan, const std::string& role,
                                    VariableRole of_cursor);

/// Whether this is the copy of these arrays.
[[nodiscard]] bool is_copy_of(const DeviceCopies::Copy& copy, const Dataset& dataset);
/// The device's copy of a data set, uploaded if there is none yet.
[[nodiscard]] DeviceCopies::Copy copy_to_device(const Dataset& dataset, const DevicePtr& device);

}  // namespace concord::train
