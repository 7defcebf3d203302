// Numbers along the spatial dimensions of images, for convolution and pooling. Signals (N, C, W), images (N, C, H, W)
// and volumes (N, C, D, H, W) are all handled as volumes; missing dimensions have size 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "concord/core/export.hpp"
#include "concord/core/shape.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

/// One number for each of depth, height and width.
using Spatial = std::array<std::int64_t, 3>;

/// Puts `values` into the last `Rank` dimensions and `missing` into those before.
template <std::size_t Rank>
[[nodiscard]] constexpr Spatial spatial(const std::array<std::int64_t, Rank>& values, std::int64_t missing) {
  static_assert(Rank >= 1 && Rank <= 3);
  Spatial all{missing, missing, missing};
  std::copy(values.begin(), values.end(), all.end() - Rank);
  return all;
}

/// The same number for every dimension.
template <std::size_t Rank>
[[nodiscard]] constexpr std::array<std::int64_t, Rank> everywhere(std::int64_t value) {
  std::array<std::int64_t, Rank> all{};
  all.fill(value);
  return all;
}

/// The last `rank` numbers: "3x3".
[[nodiscard]] std::string str(const Spatial& values, std::size_t rank);
/// The spatial dimensions of a shape with rank 3 to 5; 1 for missing dimensions.
[[nodiscard]] Spatial spatial_of(const Shape& shape);
/// (n, c, …) with the last `rank` numbers of `values`.
[[nodiscard]] Shape with_spatial(std::int64_t n, std::int64_t c, const Spatial& values, std::size_t rank);
/// "(N, C, H, W)" for `before` "N, C", no prefix and rank 2: `before`, then each spatial dimension with `prefix` before
/// it.
[[nodiscard]] std::string spatial_form(const std::string& before, const std::string& prefix, std::size_t rank);
/// "D", "H" or "W".
[[nodiscard]] const char* name_of_axis(std::size_t axis);

}  // namespace ops
}  // namespace concord
