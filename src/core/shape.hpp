// Shape: the logical dimensions of a tensor, outermost first. Used by every room.
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
  /// Throws ShapeError for a negative dimension, more than kMaxRank of them, or 2^62 elements and more.
  explicit Shape(std::vector<std::int64_t> dims);

  [[nodiscard]] std::size_t rank() const { return dims_.size(); }
  /// Dimension `axis`; a negative axis counts from the end. Throws ShapeError outside the rank.
  [[nodiscard]] std::int64_t operator[](std::int64_t axis) const { return dims_[index_of(axis)]; }
  [[nodiscard]] std::span<const std::int64_t> dims() const { return dims_; }
  [[nodiscard]] std::int64_t elements() const;
  /// `axis` in [-rank, rank) as an index in [0, rank). Throws ShapeError otherwise.
  [[nodiscard]] std::size_t index_of(std::int64_t axis) const;
  /// Row-major strides in elements.
  [[nodiscard]] std::vector<std::int64_t> strides() const;
  /// "[64, 3, 32, 32]"
  [[nodiscard]] std::string str() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> dims_;
};

/// The common shape of NumPy broadcasting (right-aligned, sizes equal or 1). Throws ShapeError naming both.
[[nodiscard]] Shape broadcast(const Shape& a, const Shape& b);

}  // namespace concord
