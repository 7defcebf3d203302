// Source: gathering a batch on the device, and the upload of data sets.
#include "concord/train/source.hpp"

#include <fmt/format.h>

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

TensorSpec batch_of(const TensorSpec& sample, std::int64_t size) {
  std::vector<std::int64_t> dims(sample.shape.dims().begin(), sample.shape.dims().end());
  dims.insert(dims.begin(), size);
  return {sample.dtype, Shape(std::move(dims))};
}

/// The sample numbers of this batch, i32 [size].
Value rows_of(Graph& graph, const BatchPlan& plan, const std::string& role, Value cursor) {
  const std::vector<std::int32_t> numbers = rows_from(plan.first, plan.rows > 0 ? plan.rows * plan.size : plan.size);
  const Shape shape = plan.rows > 0 ? Shape{plan.rows, plan.size} : Shape{plan.size};
  const Value order = held(graph, order_name(role, plan), {DType::i32, shape}, VariableRole::transient,
                           Tensor::of<std::int32_t>(shape, numbers));
  return plan.rows > 0 ? reshape(gather(order, cursor), Shape{plan.size}) : order;
}

Value decoded(Value features, const Source& source) {
  if (features.dtype() != DType::u8) return features;
  return pointwise("decode", {features}, scalar::input(0) * source.scale + source.shift);
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

Source streamed_source(const Dataset& dataset) {
  return {{}, dataset.feature_spec(), dataset.label_spec(), dataset.scale, dataset.shift};
}

std::string cursor_name(const std::string& role) { return role + ".cursor"; }

std::string order_name(const std::string& role, const BatchPlan& plan) {
  return plan.rows > 0 ? fmt::format("data.{}.order.{}x{}", role, plan.rows, plan.size)
                       : fmt::format("data.{}.last.{}+{}", role, plan.first, plan.size);
}

BatchValues add_batch(Graph& graph, const Source& source, const BatchPlan& plan, const std::string& role,
                      VariableRole of_cursor) {
  BatchValues batch;
  batch.cursor = held(graph, cursor_name(role), {DType::i32, Shape{1}}, of_cursor);
  if (source.is_resident()) {
    const Value rows = rows_of(graph, plan, role, batch.cursor);
    const auto set = [&](const char* part, const TensorSpec& spec) {
      return held(graph, source.id + part, spec, VariableRole::transient);
    };
    batch.features = gather(set(".features", source.features), rows);
    batch.labels = gather(set(".labels", source.labels), rows);
  } else {
    batch.features = graph.input("features", batch_of(source.features, plan.size));
    batch.labels = graph.input("labels", batch_of(source.labels, plan.size));
  }
  batch.features = decoded(batch.features, source);
  return batch;
}

DeviceCopies::Copy copy_to_device(const Dataset& dataset, const DevicePtr& device) {
  DeviceCopies& shared = *dataset.device_copies;
  const std::lock_guard lock(shared.mutex);
  for (const DeviceCopies::Copy& copy : shared.copies) {
    if (copy.device == device && same_storage(copy.features_source, dataset.features) &&
        same_storage(copy.labels_source, dataset.labels)) {
      return copy;
    }
  }
  if (shared.copies.size() == kMostCopies) shared.copies.erase(shared.copies.begin());
  shared.copies.push_back(
      {device, dataset.features, dataset.labels, upload(*device, dataset.features), upload(*device, dataset.labels)});
  return shared.copies.back();
}

}  // namespace concord::train
