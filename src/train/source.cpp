// Source: gathering a batch on the device, and the upload of data sets.
#include "concord/train/source.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "concord/core/parallel.hpp"
#include "concord/data/in_memory.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::train {
namespace {

/// Sets that one Dataset and its parts may have on devices at a time.
constexpr std::size_t kMostCopies = 8;

Value held(Graph& graph, const std::string& name, const TensorSpec& spec, VariableRole role, Tensor value = {}) {
  return graph.variable(std::make_shared<Variable>(name, spec, Initializer{}, false, std::move(value), role));
}

/// What a variable has for the batch at the cursor, [k]: of all full batches [rows, k], or of the last batch [k].
Value of_batch(Value all, const BatchPlan& plan, Value cursor) {
  if (plan.rows == 0) return all;
  return reshape(gather(all, cursor), Shape{all.shape()[1]});
}

/// The sample numbers of this batch, i32 [size].
Value rows_of(Graph& graph, const BatchPlan& plan, const std::string& role, Value cursor) {
  const std::vector<std::int32_t> numbers = rows_from(plan.first, plan.rows > 0 ? plan.rows * plan.size : plan.size);
  const Shape shape = plan.rows > 0 ? Shape{plan.rows, plan.size} : Shape{plan.size};
  const Value order = held(graph, order_name(role, plan), {DType::i32, shape}, VariableRole::transient,
                           Tensor::of<std::int32_t>(shape, numbers));
  return of_batch(order, plan, cursor);
}

std::string changes_name(const std::string& role, const BatchPlan& plan, std::size_t numbers) {
  return fmt::format("{}.changes.{}", order_name(role, plan), numbers);
}

/// [rows, size·numbers] of the full batches, [size·numbers] of the last one.
Shape changes_shape(const BatchPlan& plan, std::size_t numbers) {
  const std::int64_t of_batch = plan.size * static_cast<std::int64_t>(numbers);
  return plan.rows > 0 ? Shape{plan.rows, of_batch} : Shape{of_batch};
}

/// The numbers of the changes of this batch, f32 [size, change_numbers].
Value numbers_of_changes(Graph& graph, const data::ImageTransform& transform, const BatchPlan& plan,
                         const std::string& role, Value cursor) {
  const std::size_t numbers = data::change_numbers(transform);
  const Value all = graph.variable(std::make_shared<Variable>(changes_name(role, plan, numbers),
                                                              TensorSpec{DType::f32, changes_shape(plan, numbers)},
                                                              Initializer{}, false, Tensor{}, VariableRole::transient));
  return reshape(of_batch(all, plan, cursor), Shape{plan.size, static_cast<std::int64_t>(numbers)});
}

/// [C, 1, …], to go with values [N, C, …]. Other numbers are variables of other names.
Value by_channel(Graph& graph, const char* what, const std::vector<float>& numbers, std::size_t rank) {
  std::vector<std::int64_t> dims(rank - 1, 1);
  dims[0] = std::ssize(numbers);
  Tensor values = Tensor::of<float>(Shape(std::move(dims)), numbers);
  const TensorSpec spec = values.spec();
  return held(graph, fmt::format("data.{}.{}", what, fmt::join(numbers, "_")), spec, VariableRole::transient,
              std::move(values));
}

Value decoded(Value features, const ColumnSpec& column) {
  if (features.dtype() != DType::u8) return features;
  const Scalar value = scalar::input(0) * column.scale + column.shift;
  if (column.mean.empty()) return pointwise("decode", {features}, value);
  const std::size_t rank = features.shape().rank();
  return pointwise("decode",
                   {features, by_channel(features.graph(), "mean", column.mean, rank),
                    by_channel(features.graph(), "deviation", column.deviation, rank)},
                   (value - scalar::input(1)) / scalar::input(2));
}

/// Fills `batch` with what `value_of` makes of the name and the description of each column. `augment` changes the
/// first column of features as it is stored.
template <class Function, class Augment>
void add_columns(BatchValues& batch, const Source& source, Function&& value_of, Augment&& augment) {
  for (const ColumnSpec& column : source.features) {
    Value stored = value_of(feature_name(column.name), column.spec);
    if (batch.features.empty()) stored = augment(stored);
    batch.features.add(column.name, decoded(stored, column));
  }
  for (const ColumnSpec& column : source.labels) {
    batch.labels.add(column.name, value_of(label_name(column.name), column.spec));
  }
}

/// The arrays of a data set: columns of features, then of labels.
std::vector<Tensor> arrays_of(const Dataset& dataset) {
  std::vector<Tensor> arrays;
  for (const Column& column : dataset.feature_columns()) arrays.push_back(column.values);
  for (const Column& column : dataset.label_columns()) arrays.push_back(column.values);
  return arrays;
}

BufferPtr upload(Device& device, const Tensor& tensor) {
  const timeline::Span span("upload data set");
  BufferPtr buffer = device.allocate(tensor.spec().bytes());
  device.write(*buffer, 0, tensor.bytes());
  return buffer;
}

bool same_storage(const Tensor& a, const Tensor& b) {
  return a.bytes().data() == b.bytes().data() && a.spec() == b.spec();
}

}  // namespace

Source streamed_source(const Samples& samples) { return {{}, samples.feature_specs(), samples.label_specs()}; }

Source streamed_source(const TensorSpec& features, const TensorSpec& labels) {
  return {{}, {{{}, features}}, {{{}, labels}}};
}

Source resident_source(const Dataset& dataset, const std::string& id) {
  Source source = streamed_source(dataset);
  source.id = id;
  for (auto* columns : {&source.features, &source.labels}) {
    for (ColumnSpec& column : *columns) column.spec.shape = with_batch(column.spec.shape, dataset.size());
  }
  return source;
}

Shape with_batch(const Shape& sample, std::int64_t size) {
  std::vector<std::int64_t> dims{size};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return Shape(std::move(dims));
}

std::string feature_name(const std::string& column) { return column.empty() ? "features" : "features." + column; }

std::string label_name(const std::string& column) { return column.empty() ? "labels" : "labels." + column; }

std::string cursor_name(const std::string& role) { return role + ".cursor"; }

std::string order_name(const std::string& role, const BatchPlan& plan) {
  return plan.rows > 0 ? fmt::format("data.{}.order.{}x{}", role, plan.rows, plan.size)
                       : fmt::format("data.{}.last.{}+{}", role, plan.first, plan.size);
}

namespace {

/// A stage of a network has only what it reads.
void write_if_there(Variables& variables, const std::string& name, const Tensor& values) {
  if (variables.contains(name)) variables.write(name, values);
}

}  // namespace

void write_order(Variables& variables, const std::string& role, const EpochPlan& plan, const Samples& samples,
                 std::vector<std::int32_t> order) {
  data::to_dataset_rows(samples, order);
  const std::span<const std::int32_t> all(order);
  const auto in_full = static_cast<std::size_t>(plan.full.rows * plan.full.size);
  write_if_there(variables, order_name(role, plan.full),
                 Tensor::of<std::int32_t>(Shape{plan.full.rows, plan.full.size}, all.first(in_full)));
  if (plan.last.size == 0) return;
  write_if_there(variables, order_name(role, plan.last),
                 Tensor::of<std::int32_t>(Shape{plan.last.size}, all.subspan(in_full)));
}

void write_changes(Variables& variables, const std::string& role, const EpochPlan& plan,
                   const data::ImageTransform& transform, std::span<const std::int32_t> order, std::uint32_t epoch,
                   const DrawChanges& draw) {
  const std::size_t numbers = data::change_numbers(transform);
  std::vector<float> all(order.size() * numbers);
  for_blocks(all.size(), [&](std::size_t, std::size_t first, std::size_t count) {
    // The samples whose numbers begin in the block.
    for (std::size_t at = (first + numbers - 1) / numbers; at * numbers < first + count; ++at) {
      draw(order[at], epoch, std::span(all).subspan(at * numbers, numbers));
    }
  });
  const std::span<const float> drawn(all);
  const std::size_t in_full = static_cast<std::size_t>(plan.full.rows * plan.full.size) * numbers;
  const auto write = [&](const BatchPlan& part, std::span<const float> values) {
    write_if_there(variables, changes_name(role, part, numbers),
                   Tensor::of<float>(changes_shape(part, numbers), values));
  };
  write(plan.full, drawn.first(in_full));
  if (plan.last.size > 0) write(plan.last, drawn.subspan(in_full));
}

BatchValues add_inputs(Graph& graph, const Source& source, std::int64_t size) {
  BatchValues batch;
  add_columns(
      batch, source,
      [&](const std::string& name, const TensorSpec& sample) {
        return graph.input(name, {sample.dtype, with_batch(sample.shape, size)});
      },
      std::identity());
  return batch;
}

void write_batch(Program& program, const Dataset& batch) {
  const auto write = [&](const std::string& name, const Tensor& values) {
    if (program.has_input(name)) program.write(name, values);
  };
  for (const Column& column : batch.feature_columns()) write(feature_name(column.name), column.values);
  for (const Column& column : batch.label_columns()) write(label_name(column.name), column.values);
}

BatchValues add_batch(Graph& graph, const Source& source, const BatchPlan& plan, const std::string& role,
                      VariableRole of_cursor) {
  const Value cursor = held(graph, cursor_name(role), {DType::i32, Shape{1}}, of_cursor);
  BatchValues batch;
  if (source.is_resident()) {
    const Value rows = rows_of(graph, plan, role, cursor);
    add_columns(
        batch, source,
        [&](const std::string& name, const TensorSpec& spec) {
          return gather(held(graph, source.id + '.' + name, spec, VariableRole::transient), rows);
        },
        [&](Value images) {
          if (!source.changes) return images;
          return changed(images, numbers_of_changes(graph, *source.changes, plan, role, cursor), *source.changes);
        });
  } else {
    batch = add_inputs(graph, source, plan.size);
  }
  batch.cursor = cursor;
  return batch;
}

bool is_copy_of(const DeviceCopies::Copy& copy, const Dataset& dataset) {
  return std::ranges::equal(copy.sources, arrays_of(dataset), same_storage);
}

DeviceCopies::Copy copy_to_device(const Dataset& dataset, const DevicePtr& device) {
  DeviceCopies& shared = *dataset.device_copies;
  const std::lock_guard lock(shared.mutex);
  for (const DeviceCopies::Copy& copy : shared.copies) {
    if (copy.device == device && is_copy_of(copy, dataset)) return copy;
  }
  if (shared.copies.size() == kMostCopies) shared.copies.erase(shared.copies.begin());
  DeviceCopies::Copy copy{device, arrays_of(dataset), {}};
  for (const Tensor& array : copy.sources) {
    copy.buffers.push_back(upload(*device, array));
    shared.uploaded_bytes += array.spec().bytes();
  }
  shared.copies.push_back(copy);
  return copy;
}

}  // namespace concord::train
