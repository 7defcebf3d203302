// Shape: the logical dimensions of a tensor, outermost first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

/// Up to eight dimensions of size >= 0. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::vector<std::int64_t>(dims)) {}
  /// Throws ShapeError for a negative dimension, for more than kMaxRank dimensions, or for 2^62 elements or more.
  explicit Shape(std::vector<std::int64_t> dims);

  [[nodiscard]] std::size_t rank() const { return dims_.size(); }
  /// The size of dimension `axis`. A negative axis counts from the end. Throws ShapeError if the axis is out of range.
  [[nodiscard]] std::int64_t operator[](std::int64_t axis) const { return dims_[index_of(axis)]; }
  [[nodiscard]] std::span<const std::int64_t> dims() const { return dims_; }
  [[nodiscard]] std::int64_t elements() const;
  /// Converts `axis` in [-rank, rank) to an index in [0, rank). Throws ShapeError if it is out of range.
  [[nodiscard]] std::size_t index_of(std::int64_t axis) const;
  /// Row-major strides in elements.
  [[nodiscard]] std::vector<std::int64_t> strides() const;
  /// "[64, 3, 32, 32]"
  [[nodiscard]] std::string str() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> dims_;
};

/// The shape that `a` and `b` broadcast to by NumPy's rules: dimensions are aligned at the right and are equal, or one
/// of them is 1. Throws ShapeError with both shapes.
[[nodiscard]] Shape broadcast(const Shape& a, const Shape& b);

}  // namespace concord
