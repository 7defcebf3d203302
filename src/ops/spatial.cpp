// Spatial dimensions: to and from shapes, and as text.
#include "concord/ops/spatial.hpp"

#include <fmt/format.h>

namespace concord::ops {

std::string str(const Spatial& values, std::size_t rank) {
  std::string text;
  for (std::size_t axis = values.size() - rank; axis < values.size(); ++axis) {
    text += fmt::format("{}{}", text.empty() ? "" : "x", values[axis]);
  }
  return text;
}

Spatial spatial_of(const Shape& shape) {
  Spatial values{1, 1, 1};
  const std::size_t rank = shape.rank() - 2;
  std::copy(shape.dims().begin() + 2, shape.dims().end(), values.end() - static_cast<std::ptrdiff_t>(rank));
  return values;
}

Shape with_spatial(std::int64_t n, std::int64_t c, const Spatial& values, std::size_t rank) {
  std::vector<std::int64_t> dims{n, c};
  dims.insert(dims.end(), values.end() - static_cast<std::ptrdiff_t>(rank), values.end());
  return Shape(std::move(dims));
}

std::string spatial_form(const std::string& before, const std::string& prefix, std::size_t rank) {
  std::string text = "(" + before;
  for (std::size_t axis = 3 - rank; axis < 3; ++axis) text += ", " + prefix + name_of_axis(axis);
  return text + ")";
}

const char* name_of_axis(std::size_t axis) {
  static constexpr std::array<const char*, 3> kNames{"D", "H", "W"};
  return kNames.at(axis);
}

}  // namespace concord::ops
