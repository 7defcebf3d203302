// Tensor: row-major values in host memory. Inputs, results, data sets and files use it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/shape.hpp"
#include "concord/core/types.hpp"

namespace CONCORD_PUBLIC concord {

/// The element type and shape of a tensor, without its values.
struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;

  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  /// "f32 [64, 10]"
  [[nodiscard]] std::string str() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// A dense row-major array in host memory, aligned to 64 bytes. Copies share their storage; `clone` makes a new one.
class Tensor {
 public:
  Tensor() = default;
  /// Makes a tensor of zeros. Throws OutOfMemory.
  explicit Tensor(TensorSpec spec);
  Tensor(DType dtype, Shape shape) : Tensor(TensorSpec{dtype, std::move(shape)}) {}
  /// Makes a tensor with undefined values, for a caller that writes every element. Throws OutOfMemory.
  [[nodiscard]] static Tensor unset(TensorSpec spec);

  /// Makes a tensor with a copy of `values`. Throws ShapeError if their number is not shape.elements().
  template <class T>
  [[nodiscard]] static Tensor of(Shape shape, std::span<const T> values) {
    return from_bytes({dtype_of<T>(), std::move(shape)}, std::as_bytes(values));
  }
  template <class T>
  [[nodiscard]] static Tensor of(Shape shape, const std::vector<T>& values) {
    return of<T>(std::move(shape), std::span<const T>(values));
  }
  /// Copies `bytes`. Throws ShapeError unless there are spec.bytes().
  [[nodiscard]] static Tensor from_bytes(TensorSpec spec, std::span<const std::byte> bytes);

  [[nodiscard]] const TensorSpec& spec() const { return spec_; }
  [[nodiscard]] const Shape& shape() const { return spec_.shape; }
  [[nodiscard]] DType dtype() const { return spec_.dtype; }
  /// The number of elements. A tensor that was moved from has 0.
  [[nodiscard]] std::int64_t elements() const { return data_ ? spec_.shape.elements() : 0; }

  [[nodiscard]] std::span<std::byte> bytes() { return {data_.get(), data_ ? spec_.bytes() : 0}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_.get(), data_ ? spec_.bytes() : 0}; }
  /// The values as type T. Throws ShapeError if T is not the element type.
  template <class T>
  [[nodiscard]] std::span<T> values() {
    require(dtype_of<T>());
    return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(elements())};
  }
  template <class T>
  [[nodiscard]] std::span<const T> values() const {
    require(dtype_of<T>());
    return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(elements())};
  }

  /// A copy with storage of its own.
  [[nodiscard]] Tensor clone() const;
  /// Shares the storage under another shape. Throws ShapeError if the number of elements differs.
  [[nodiscard]] Tensor reshaped(Shape shape) const;

 private:
  void require(DType type) const;

  TensorSpec spec_{DType::f32, Shape{0}};
  std::shared_ptr<std::byte[]> data_;
};

}  // namespace concord
