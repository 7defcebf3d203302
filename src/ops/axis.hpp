// A tensor seen around one of its axes. Used by the operators that work along an axis, and by their kernels.
#pragma once

#include "concord/core/shape.hpp"

namespace concord::ops {

/// Row-major (outer, length, inner), `length` the size of the axis.
struct AxisSizes {
  std::int64_t outer = 1, length = 1, inner = 1;
};

[[nodiscard]] inline AxisSizes axis_sizes(const Shape& shape, std::size_t axis) {
  AxisSizes sizes;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    (i < axis ? sizes.outer : i > axis ? sizes.inner : sizes.length) *= shape.dims()[i];
  }
  return sizes;
}

/// The shape with another size of one axis.
[[nodiscard]] inline Shape with_size(const Shape& shape, std::size_t axis, std::int64_t size) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[axis] = size;
  return Shape(std::move(dims));
}

}  // namespace concord::ops
