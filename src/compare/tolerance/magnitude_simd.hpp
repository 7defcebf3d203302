// The loops of magnitude.cpp over contiguous values, compiled for several vector widths (ConcordSimd.cmake). Sums use a
// fixed number of lanes, so their bits do not depend on the machine.
#pragma once

#include <cstddef>
#include <span>

namespace concord::rows {

struct Sum {
  float largest = 0;   // of the absolute values of finite numbers
  double squares = 0;  // of finite numbers
};
[[nodiscard]] Sum sum(std::span<const float> values);

/// Adds the square of each finite value to the number at its place.
void add_squares(std::span<const float> values, std::span<double> squares);

/// The largest |a - b|. NaN beside NaN and equal infinities do not differ; other values that are not finite differ by
/// infinity.
[[nodiscard]] double difference(std::span<const float> a, std::span<const float> b);
/// Numbers beyond f32 count as infinite.
[[nodiscard]] double difference(std::span<const float> a, std::span<const double> b);

/// A Difference (magnitude.hpp) of a row.
struct Elements {
  double largest = 0, relative = 0, ulps = 0;
  std::size_t at = 0;
};
[[nodiscard]] Elements elements(std::span<const float> a, std::span<const float> b, double least);
[[nodiscard]] Elements elements(std::span<const float> a, std::span<const double> b, double least);

}  // namespace concord::rows
