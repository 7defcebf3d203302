// Shape: checks, strides, broadcasting.
#include "concord/core/shape.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "concord/core/check.hpp"

namespace concord {

Shape::Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {
  CONCORD_CHECK(dims_.size() <= kMaxRank, ShapeError, "shape {}: at most {} dimensions", str(), kMaxRank);
  constexpr std::int64_t kMost = (std::int64_t{1} << 62) - 1;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims_) {
    CONCORD_CHECK(dim >= 0, ShapeError, "shape {}: a dimension is negative", str());
    const std::int64_t size = std::max<std::int64_t>(dim, 1);  // strides of an empty shape count it so, too
    CONCORD_CHECK(elements <= kMost / size, ShapeError, "shape {}: too many elements", str());
    elements *= size;
  }
}

std::int64_t Shape::elements() const {
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims_) elements *= dim;
  return elements;
}

std::size_t Shape::index_of(std::int64_t axis) const {
  const auto rank = static_cast<std::int64_t>(dims_.size());
  CONCORD_CHECK(axis >= -rank && axis < rank, ShapeError, "axis {} is outside shape {}", axis, str());
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

std::vector<std::int64_t> Shape::strides() const {
  std::vector<std::int64_t> strides(dims_.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims_.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims_[i];
  }
  return strides;
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(dims_, ", ")); }

Shape broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims(rank);
  for (std::size_t i = 0; i < rank; ++i) {  // i counts from the innermost dimension
    const std::int64_t da = i < a.rank() ? a.dims()[a.rank() - 1 - i] : 1;
    const std::int64_t db = i < b.rank() ? b.dims()[b.rank() - 1 - i] : 1;
    CONCORD_CHECK(da == db || da == 1 || db == 1, ShapeError, "shapes {} and {} do not broadcast", a.str(), b.str());
    dims[rank - 1 - i] = da == 1 ? db : da;
  }
  return Shape(std::move(dims));
}

}  // namespace concord
