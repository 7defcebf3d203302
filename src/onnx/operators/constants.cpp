// Operators of ONNX that make numbers of attributes and shapes: Constant, ConstantOfShape, Range, EyeLike.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/onnx/constant.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {
namespace {

HostTensor sparse_constant(const SparseTensorProto& sparse) {
  constexpr std::int64_t kMost = 1 << 28;  // elements with the zeros
  constexpr const char* kOutside = "a sparse constant has a value outside its shape";
  const HostTensor values = host_tensor_of(sparse.values), indices = host_tensor_of(sparse.indices);
  CONCORD_CHECK(has_at_most(sparse.dims, kMost), ShapeError,
                "a sparse constant has a negative size or more than {} elements", kMost);
  HostTensor dense(values.type, sparse.dims);
  const Dims strides = strides_of(sparse.dims);
  const auto rank = static_cast<std::int64_t>(sparse.dims.size()), count = values.elements();
  const bool is_flat = indices.dims == Dims{count};
  CONCORD_CHECK(is_flat || indices.dims == (Dims{count, rank}), FormatError,
                "a sparse constant of {} values and {} dimensions has indices [{}]", count, rank,
                fmt::join(indices.dims, ", "));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = 0;
    if (is_flat) {
      place = indices.integer(static_cast<std::size_t>(i));
      CONCORD_CHECK(place >= 0 && place < dense.elements(), FormatError, "{}", kOutside);
    } else {
      for (std::size_t axis = 0; axis < dense.dims.size(); ++axis) {
        const std::int64_t at = indices.integer(static_cast<std::size_t>(i * rank) + axis);
        CONCORD_CHECK(at >= 0 && at < dense.dims[axis], FormatError, "{}", kOutside);
        place += at * strides[axis];
      }
    }
    dense.copy(static_cast<std::size_t>(place), values, static_cast<std::size_t>(i));
  }
  return dense;
}

void constant(Call& call) {
  if (const Attribute* const value = call.find("value")) return call.set(0, host_tensor_of(value->tensors.at(0)));
  if (const Attribute* const sparse = call.find("sparse_value")) {
    return call.set(0, sparse_constant(sparse->sparse_tensors.at(0)));
  }
  if (call.find("value_int") != nullptr) return call.set(0, HostTensor::of({}, {call.integer("value_int", 0)}));
  if (const auto values = call.integers("value_ints")) {
    return call.set(0, HostTensor::of({static_cast<std::int64_t>(values->size())}, *values));
  }
  std::vector<float> numbers;
  HostTensor result;
  if (call.find("value_float") != nullptr) {
    numbers = {call.number("value_float", 0)};
    result = HostTensor(ElementType::f32, {});
  } else if (const auto values = call.numbers("value_floats")) {
    numbers = *values;
    result = HostTensor(ElementType::f32, {static_cast<std::int64_t>(values->size())});
  } else {
    throw FormatError("it has no value");
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) result.set(i, static_cast<double>(numbers[i]));
  call.set(0, std::move(result));
}

std::string check_constant(const NodeDef& node) {
  if (node.find("value_string") != nullptr || node.find("value_strings") != nullptr) return "strings are not supported";
  const Attribute* const value = node.find("value");
  if (value == nullptr || value->tensors.empty()) return {};
  try {
    (void)dtype_of(value->tensors[0].type);
  } catch (const NotSupported& error) {
    return error.what();
  }
  return {};
}

void constant_of_shape(Call& call) {
  HostTensor fill(ElementType::f32, {1});
  if (const Attribute* const value = call.find("value")) fill = host_tensor_of(value->tensors.at(0));
  CONCORD_CHECK(fill.elements() == 1, FormatError, "its value must be a single number");
  Dims dims = call.integers(0);
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    CONCORD_CHECK(dim >= 0 && (elements == 0 || dim <= kMost / elements), ShapeError, "a size of {} is too large", dim);
    elements *= dim;
  }
  if (!has_at_most(dims, kMostOnHost)) {
    return call.set(0, expanded(constant_value(call.graph(), fill.reshaped({})), dims), fill.type);
  }
  HostTensor result(fill.type, std::move(dims));
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) result.copy(i, fill, 0);
  call.set(0, std::move(result));
}

void range(Call& call) {
  const ElementType type = call.type(0);
  constexpr double kMost = 1 << 30;
  const double start = call.number(0), limit = call.number(1), delta = call.number(2);
  const double count = delta == 0 ? -1 : std::max(0.0, std::ceil((limit - start) / delta));
  CONCORD_CHECK(count >= 0 && count <= kMost, ShapeError, "from {} to {} by {}", start, limit, delta);
  HostTensor result(type, {static_cast<std::int64_t>(count)});
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    if (result.floating()) {
      result.set(static_cast<std::size_t>(i), start + static_cast<double>(i) * delta);
    } else {
      result.set(static_cast<std::size_t>(i), call.host(0).integer(0) + i * call.host(2).integer(0));
    }
  }
  call.set(0, std::move(result));
}

void eye_like(Call& call) {
  const Dims& dims = call.dims(0);
  CONCORD_CHECK(dims.size() == 2, ShapeError, "a matrix is needed, got {} dimensions", dims.size());
  const auto type = static_cast<ElementType>(call.integer("dtype", static_cast<std::int64_t>(call.type(0))));
  HostTensor result(type, dims);
  const std::int64_t k = call.integer("k", 0);
  for (std::int64_t row = 0; row < dims[0]; ++row) {
    if (row + k >= 0 && row + k < dims[1])
      result.set(static_cast<std::size_t>(row * dims[1] + row + k), std::int64_t{1});
  }
  call.set(0, std::move(result));
}

}  // namespace

void add_constants(Table& table) {
  table.add("Constant", {.run = constant, .check = check_constant});
  table.add("ConstantOfShape", {.since = 9, .run = constant_of_shape, .known = {0}});
  table.add("Range", {.since = 11, .run = range, .known = {0, 1, 2}});
  table.add("EyeLike", {.since = 9, .run = eye_like});
}

}  // namespace concord::onnx
