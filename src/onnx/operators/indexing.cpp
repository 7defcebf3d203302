// Reading by index: Gather, GatherElements, GatherND, OneHot, TopK of ONNX. A negative index counts from the end.
#include "concord/onnx/operators/indexing.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/top_k.hpp"

namespace concord::onnx {

void require_countable(std::int64_t size) {
  constexpr std::int64_t kMost = 1 << 24;
  CONCORD_CHECK(size <= kMost, NotSupported, "indices of {} places; they are computed in fp32, which counts to {}",
                size, kMost);
}

Value from_start(const Value& indices, std::int64_t size) {
  require_countable(size);
  const Scalar index = scalar::input(0);
  return pointwise("from_start", {indices},
                   scalar::select(scalar::less(index, 0.0F), index + static_cast<float>(size), index), DType::i32);
}

Value row_major_places(const Value& indices, const Dims& dims) {
  require_countable(elements_of(dims));
  const Dims strides = strides_of(dims);
  Dims rows = dims_of(indices);
  rows.pop_back();
  const auto last = indices.shape().rank() - 1;
  std::vector<Value> parts;
  Scalar place = 0.0F;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    parts.push_back(reshape(sliced_along(indices, last, static_cast<std::int64_t>(k), 1), Shape(rows)));
    const Scalar index = scalar::input(static_cast<int>(k));
    const Scalar whole = scalar::select(scalar::less(index, 0.0F), index + static_cast<float>(dims[k]), index);
    place = place + whole * static_cast<float>(strides[k]);
  }
  return pointwise("places", parts, place, DType::i32);
}

namespace {

std::int64_t host_index(const HostTensor& indices, std::size_t i, std::int64_t size) {
  const std::int64_t index = indices.integer(i);
  CONCORD_CHECK(index >= -size && index < size, ArgumentError, "the index {} is outside an axis of {}", index, size);
  return index < 0 ? index + size : index;
}

void gather_of(Call& call) {
  const Dims& dims = call.dims(0);
  const std::size_t axis = axis_of(call.integer("axis", 0), dims.size());
  const std::int64_t size = dims[axis];
  Dims result(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis));
  const Dims& places = call.dims(1);
  result.insert(result.end(), places.begin(), places.end());
  result.insert(result.end(), dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, dims.end());
  if (elements_of(result) == 0) return call.set_empty(0, call.type(0), std::move(result));
  if (call.on_host(result)) {
    const Dims strides = strides_of(dims), place_strides = strides_of(places);
    return call.set(0, picked(call.host(0), result, [&](const Dims& position) {
                      std::int64_t from = 0, index = 0;
                      for (std::size_t i = 0; i < position.size(); ++i) {
                        if (i < axis) from += position[i] * strides[i];
                        if (i >= axis && i < axis + places.size()) index += position[i] * place_strides[i - axis];
                        if (i >= axis + places.size()) from += position[i] * strides[i + 1 - places.size()];
                      }
                      return static_cast<std::size_t>(
                          from + host_index(call.host(1), static_cast<std::size_t>(index), size) * strides[axis]);
                    }));
  }
  const Value x = call.value(0);
  if (call.is_known(1) && elements_of(places) == 1) {  // one slice
    const Value part = sliced_along(x, axis, host_index(call.host(1), 0, size), 1);
    return call.set(0, reshape(part, Shape(result)), call.type(0));
  }
  // The axis comes first, and the axes of the indices take its place.
  Dims order{static_cast<std::int64_t>(axis)}, back;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != axis) order.push_back(static_cast<std::int64_t>(i));
  }
  const auto count = static_cast<std::int64_t>(places.size());
  for (std::size_t i = 0; i < axis; ++i) back.push_back(count + static_cast<std::int64_t>(i));
  for (std::int64_t i = 0; i < count; ++i) back.push_back(i);
  for (std::size_t i = axis; i + 1 < dims.size(); ++i) back.push_back(count + static_cast<std::int64_t>(i));
  const Value rows = gather(transposed(x, order), from_start(call.value(1), size));
  call.set(0, transposed(rows, back), call.type(0));
}

void gather_elements(Call& call) {
  const std::size_t axis = axis_of(call.integer("axis", 0), call.rank(0));
  const Dims& places = call.dims(1);
  CONCORD_CHECK(places.size() == call.rank(0), ShapeError, "indices of {} dimensions for {}", places.size(),
                call.rank(0));
  for (std::size_t i = 0; i < places.size(); ++i) {
    CONCORD_CHECK(i == axis || places[i] <= call.dims(0)[i], ShapeError, "indices of {} places for {} of axis {}",
                  places[i], call.dims(0)[i], i);
  }
  if (elements_of(places) == 0) return call.set_empty(0, call.type(0), places);
  if (call.on_host(places)) {
    const Dims strides = strides_of(call.dims(0));
    std::size_t next = 0;
    return call.set(0, picked(call.host(0), places, [&](const Dims& position) {
                      std::int64_t from = 0;
                      for (std::size_t i = 0; i < position.size(); ++i) {
                        const bool is_index = i == axis;
                        from += strides[i] * (is_index ? host_index(call.host(1), next, call.dims(0)[i]) : position[i]);
                      }
                      ++next;
                      return static_cast<std::size_t>(from);
                    }));
  }
  Value x = call.value(0);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i != axis && places[i] != call.dims(0)[i]) x = sliced_along(x, i, 0, places[i]);
  }
  const Value indices = from_start(call.value(1), call.dims(0)[axis]);
  call.set(0, gather_along(x, indices, static_cast<std::int64_t>(axis)), call.type(0));
}

void gather_nd(Call& call) {
  const Dims& dims = call.dims(0);
  const Dims& places = call.dims(1);
  const auto batch = static_cast<std::size_t>(call.integer("batch_dims", 0));
  CONCORD_CHECK(!places.empty() && batch < places.size() && batch <= dims.size(), ShapeError, "{} batch dimensions",
                batch);
  const auto depth = static_cast<std::size_t>(places.back());
  CONCORD_CHECK(batch + depth <= dims.size(), ShapeError, "indices of {} numbers", depth);
  const Dims indexed(dims.begin() + static_cast<std::ptrdiff_t>(batch),
                     dims.begin() + static_cast<std::ptrdiff_t>(batch + depth));
  const Dims rest(dims.begin() + static_cast<std::ptrdiff_t>(batch + depth), dims.end());
  std::int64_t batches = 1;
  for (std::size_t i = 0; i < batch; ++i) batches *= dims[i];
  Value rows = row_major_places(call.value(1), indexed);  // the batch, then the rows
  require_countable(batches * elements_of(indexed));
  if (batches > 1) {
    const Value flat = reshape(rows, {batches, -1});
    const auto plane = static_cast<float>(elements_of(indexed));
    rows = reshape(pointwise("places", {flat}, scalar::input(0) + scalar::coordinate(1) * plane, DType::i32),
                   rows.shape());
  }
  Dims table{batches * elements_of(indexed)};
  table.insert(table.end(), rest.begin(), rest.end());
  call.set(0, gather(reshape(call.value(0), Shape(table)), rows), call.type(0));
}

void one_hot_of(Call& call) {
  const std::int64_t depth = call.integer(1);
  const std::size_t rank = call.rank(0) + 1;
  const std::size_t axis = axis_of(call.integer("axis", -1), rank);
  CONCORD_CHECK(depth >= 1 && call.dims(2) == Dims{2}, ShapeError, "a depth of {} or values that are not two", depth);
  require_countable(depth);
  Dims dims = call.dims(0);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  const Value indices = reshape(call.value(0), Shape(dims));
  dims[axis] = depth;
  const Value values = call.value(2);
  const Value off = reshape(slice(values, 0, 0, 1), Shape{}), on = reshape(slice(values, 0, 1, 2), Shape{});
  const Scalar index = scalar::input(0);
  const Scalar whole = scalar::select(scalar::less(index, 0.0F), index + static_cast<float>(depth), index);
  const Scalar is_here = scalar::equal(scalar::coordinate(static_cast<int>(rank - 1 - axis)), whole);
  call.set(0,
           pointwise("one_hot", {indices, off, on}, scalar::select(is_here, scalar::input(2), scalar::input(1)),
                     values.dtype(), Shape(dims)),
           call.type(2));
}

std::string check_top_k(const NodeDef& node) {
  return node.outputs.size() == 2 ? "" : fmt::format("it has {} of the two outputs of ONNX", node.outputs.size());
}

void top_k_of(Call& call) {
  const std::int64_t k = call.opset() < 10 ? call.required_integer("k") : call.integer(1);
  const std::int64_t axis = call.integer("axis", -1);
  if (k == 0) {
    Dims dims = call.dims(0);
    dims[axis_of(axis, dims.size())] = 0;
    call.set_empty(0, call.type(0), dims);
    return call.set_empty(1, ElementType::i64, dims);
  }
  const TopKResult result = top_k(call.number_value(0), k, axis, call.integer("largest", 1) != 0);
  call.set(0, result.values, call.type(0));
  call.set(1, result.indices, ElementType::i64);
}

}  // namespace

void add_indexing(Table& table) {
  table.add("Gather", {.run = gather_of, .host = true});
  table.add("GatherElements", {.since = 11, .run = gather_elements, .host = true});
  table.add("GatherND", {.since = 11, .run = gather_nd});
  table.add("OneHot", {.since = 9, .run = one_hot_of, .known = {1}});
  table.add("TopK", {.run = top_k_of, .check = check_top_k});
  table.add("TopK", {.since = 10, .run = top_k_of, .known = {1}, .check = check_top_k});
}

}  // namespace concord::onnx
