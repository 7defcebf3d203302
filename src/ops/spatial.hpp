// Numbers along the spatial dimensions of images: what convolution and pooling share. Signals (N, C, W), images
// (N, C, H, W) and volumes (N, C, D, H, W) are all volumes inside; what a signal or an image lacks has size 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "concord/core/export.hpp"
#include "concord/core/shape.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// One number each along depth, height and width.
using Spatial = std::array<std::int64_t, 3>;

/// The numbers of the last `Rank` dimensions; `missing` for those before.
template <std::size_t Rank>
[[nodiscard]] constexpr Spatial spatial(const std::array<std::int64_t, Rank>& values, std::int64_t missing) {
  static_assert(Rank >= 1 && Rank <= 3);
  Spatial all{missing, missing, missing};
  std::copy(values.begin(), values.end(), all.end() - Rank);
  return all;
}

/// The same number along every dimension.
template <std::size_t Rank>
[[nodiscard]] constexpr std::array<std::int64_t, Rank> everywhere(std::int64_t value) {
  std::array<std::int64_t, Rank> all{};
  all.fill(value);
  return all;
}

/// The last `rank` numbers: "3x3".
[[nodiscard]] std::string str(const Spatial& values, std::size_t rank);
/// The last `rank` dimensions of a shape of rank + 2; 1 for those that it lacks.
[[nodiscard]] Spatial spatial_of(const Shape& shape);
/// (n, c, …) with the last `rank` numbers of `values`.
[[nodiscard]] Shape with_spatial(std::int64_t n, std::int64_t c, const Spatial& values, std::size_t rank);
/// "(N, C, W)", "(N, C, H, W)" or "(N, C, D, H, W)", each dimension of space after `prefix`.
[[nodiscard]] std::string spatial_form(const std::string& before, const std::string& prefix, std::size_t rank);
/// "D", "H" or "W".
[[nodiscard]] const char* name_of_axis(std::size_t axis);

}  // namespace ops
}  // namespace concord
