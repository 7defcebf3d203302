// HostTensor: numbers that are known while a network is traced: shapes, axes, constants. Internal to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "concord/core/error.hpp"
#include "concord/core/tensor.hpp"
#include "concord/onnx/wire.hpp"

namespace concord::onnx {

/// The sizes of a tensor. A node of a damaged file may ask for a dimension that there is not: that is a ShapeError.
class Dims : public std::vector<std::int64_t> {
 public:
  using vector::vector;
  Dims(std::vector<std::int64_t> dims) : vector(std::move(dims)) {}
  [[nodiscard]] std::int64_t& operator[](std::size_t axis) {
    require(axis);
    return vector::operator[](axis);
  }
  [[nodiscard]] const std::int64_t& operator[](std::size_t axis) const {
    require(axis);
    return vector::operator[](axis);
  }

 private:
  void require(std::size_t axis) const {
    if (axis >= size()) throw ShapeError("a tensor of rank " + std::to_string(size()) + " has too few dimensions");
  }
};

[[nodiscard]] bool is_floating(ElementType type);
/// The product of the dimensions.
[[nodiscard]] std::int64_t elements_of(const Dims& dims);
/// Whether no size is negative and the product of the dimensions is `most` or less.
[[nodiscard]] bool has_at_most(const Dims& dims, std::int64_t most);
/// Elements of what a node may enlarge on the host: a small file must not ask for all memory.
constexpr std::int64_t kMostOnHost = 1 << 26;
/// Converts an axis in [-rank, rank) to one in [0, rank). Throws ShapeError.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, std::size_t rank);

/// Floating types are held as double, rounded to the precision of `type`; others as int64, bool as 0 and 1.
struct HostTensor {
  ElementType type = ElementType::f32;
  Dims dims = {};
  std::vector<double> numbers = {};      // of a floating type
  std::vector<std::int64_t> whole = {};  // of another type

  HostTensor() = default;
  /// Zeros. Throws ShapeError for a negative size, and for too many elements.
  HostTensor(ElementType type, Dims dims);
  [[nodiscard]] static HostTensor of(Dims dims, std::vector<std::int64_t> values);

  [[nodiscard]] bool floating() const { return is_floating(type); }
  [[nodiscard]] std::int64_t elements() const { return elements_of(dims); }
  /// Element `index` as a number of the other kind; a floating number is rounded toward zero.
  [[nodiscard]] double number(std::size_t index) const;
  [[nodiscard]] std::int64_t integer(std::size_t index) const;
  void set(std::size_t index, double value);
  void set(std::size_t index, std::int64_t value);
  /// Copies element `from` of `source`. Throws ShapeError if one is of a floating type and the other is not.
  void copy(std::size_t index, const HostTensor& source, std::size_t from);
  [[nodiscard]] HostTensor reshaped(Dims to) const;
};

/// Throws NotSupported for strings, complex numbers and types of 8 bits and less that are not integers.
[[nodiscard]] HostTensor host_tensor_of(const TensorProto& tensor);
[[nodiscard]] HostTensor host_tensor_of(const Tensor& tensor, ElementType type);
/// A Tensor of dtype_of(type). Throws NotSupported for an integer beyond i32; logs a warning for one beyond 2^24.
[[nodiscard]] Tensor tensor_of(const HostTensor& tensor);
/// As tensor_of(host_tensor_of(tensor)) without the way through double.
[[nodiscard]] Tensor float_tensor_of(const TensorProto& tensor);

/// The shape that both broadcast to. Throws ShapeError.
[[nodiscard]] Dims broadcast_dims(const Dims& a, const Dims& b);
/// For each element of `dims`, row-major, the index of the element of a tensor with dimensions `from`, broadcast to it.
[[nodiscard]] std::vector<std::size_t> broadcast_places(const Dims& from, const Dims& dims);
/// Row-major strides.
[[nodiscard]] Dims strides_of(const Dims& dims);
/// Calls visit(position) for each position of `dims`, row-major. Throws ShapeError as HostTensor.
void each_position(const Dims& dims, const std::function<void(const Dims& position)>& visit);

}  // namespace concord::onnx
