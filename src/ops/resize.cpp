// The tables of Resize: coordinates, kernels, and what lies outside.
#include "concord/ops/resize.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace {

using Coordinates = ResizeCoordinates;

/// The rules of one axis of `src` positions.
struct AxisRule {
  const ResizeAxis& axis;
  const ResizeOptions& options;
  std::int64_t src;

  [[nodiscard]] double scale() const {
    return axis.scale > 0 ? axis.scale : static_cast<double>(axis.size) / static_cast<double>(src);
  }
  /// The coordinate of position `j` of the result.
  [[nodiscard]] double coordinate(std::int64_t j) const;
  [[nodiscard]] bool is_outside(std::int64_t j) const {
    const double at = coordinate(j);
    return options.coordinates == Coordinates::tf_crop_and_resize && (at < 0 || at > static_cast<double>(src - 1));
  }
  [[nodiscard]] bool keeps_all() const {
    const bool is_whole = options.coordinates != Coordinates::tf_crop_and_resize || (axis.begin == 0 && axis.end == 1);
    return axis.size == src && scale() == 1 && is_whole;
  }
};

double AxisRule::coordinate(std::int64_t j) const {
  const auto at = static_cast<double>(j), size = static_cast<double>(src);
  const double width = scale() * size;
  const double half_pixel = (at + 0.5) / scale() - 0.5;
  switch (options.coordinates) {
    case Coordinates::half_pixel: return half_pixel;
    case Coordinates::half_pixel_symmetric: return size / 2 * (1 - static_cast<double>(axis.size) / width) + half_pixel;
    case Coordinates::pytorch_half_pixel: return width == 1 ? -0.5 : half_pixel;
    case Coordinates::align_corners: return width == 1 ? 0 : at * (size - 1) / (width - 1);
    case Coordinates::asymmetric: return at / scale();
    case Coordinates::tf_half_pixel_for_nn: return (at + 0.5) / scale();
    case Coordinates::tf_crop_and_resize: {
      const double part = axis.end - axis.begin;
      const double along = width == 1 ? part * (size - 1) / 2 : at * part * (size - 1) / (width - 1);
      return along + axis.begin * (size - 1);
    }
  }
  throw ArgumentError("unknown coordinates");
}

std::int64_t rounded(double at, ResizeRounding rounding) {
  switch (rounding) {
    case ResizeRounding::round_prefer_floor: return static_cast<std::int64_t>(std::ceil(at - 0.5));
    case ResizeRounding::round_prefer_ceil: return static_cast<std::int64_t>(std::floor(at + 0.5));
    case ResizeRounding::floor: return static_cast<std::int64_t>(std::floor(at));
    case ResizeRounding::ceil: return static_cast<std::int64_t>(std::ceil(at));
  }
  throw ArgumentError("unknown rounding");
}

/// The weight at distance `d` from a coordinate: a triangle, or the kernel of Keys ("Cubic Convolution Interpolation",
/// 1981).
double weight_at(double d, const ResizeOptions& options) {
  d = std::abs(d);
  if (options.mode == Interpolation::linear) return std::max(1 - d, 0.0);
  const double a = options.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? a * (((d - 5) * d + 8) * d - 4) : 0;
}

/// `nearest_exact` as the `nearest` that it is.
ResizeOptions plain(ResizeOptions options) {
  if (options.mode != Interpolation::nearest_exact) return options;
  options.mode = Interpolation::nearest;
  options.coordinates = Coordinates::half_pixel;
  options.rounding = ResizeRounding::round_prefer_ceil;
  return options;
}

struct Tap {
  std::int64_t place;
  double weight;
};

/// The taps around the coordinate `at`.
std::vector<Tap> taps_around(double at, const AxisRule& rule) {
  const ResizeOptions& options = rule.options;
  const auto inside = [&](std::int64_t place) { return std::clamp<std::int64_t>(place, 0, rule.src - 1); };
  if (options.mode == Interpolation::nearest) return {{inside(rounded(at, options.rounding)), 1}};
  const double narrow = options.antialias ? std::min(rule.scale(), 1.0) : 1;
  const double reach = (options.mode == Interpolation::linear ? 1 : 2) / narrow;
  std::vector<Tap> taps;
  double total = 0;
  const auto last = static_cast<std::int64_t>(std::floor(at + reach));
  for (auto place = static_cast<std::int64_t>(std::ceil(at - reach)); place <= last; ++place) {
    const double weight = weight_at(narrow * (static_cast<double>(place) - at), options);
    if (weight == 0 || (options.exclude_outside && inside(place) != place)) continue;
    total += weight;
    taps.push_back({inside(place), weight});
  }
  // Keys's kernel and the triangle sum to 1 where nothing is left out or stretched.
  if (!options.antialias && !options.exclude_outside) return taps;
  for (Tap& tap : taps) tap.weight /= total;
  return taps;
}

/// `value` at the positions of the result whose coordinates along an axis lie outside the source. Coordinates of one
/// axis ascend or descend, so the positions inside follow each other.
Value extrapolated(Value y, const AxisRule& rule) {
  std::int64_t first = 0, end = rule.axis.size;
  while (first < end && rule.is_outside(first)) ++first;
  while (end > first && rule.is_outside(end - 1)) --end;
  if ((first == 0 && end == rule.axis.size) || rule.options.extrapolation_value == 0) return y;
  const Scalar at = scalar::coordinate(static_cast<int>(y.shape().rank() - 1 - rule.axis.axis));
  const Scalar inside =
      scalar::less_equal(static_cast<float>(first), at) * scalar::less(at, Scalar(static_cast<float>(end)));
  return pointwise("extrapolate", {y}, scalar::select(inside, ops::x0(), rule.options.extrapolation_value));
}

}  // namespace

ops::AxisMap ops::resize_map(const ResizeAxis& axis, std::int64_t src, const ResizeOptions& given) {
  const ResizeOptions options = plain(given);
  CONCORD_CHECK(src >= 1 && axis.size >= 1, ShapeError, "resize: axis {} from {} to {} positions; at least 1 each",
                axis.axis, src, axis.size);
  const AxisRule rule{axis, options, src};
  Taps taps{{0}, {}, {}};
  for (std::int64_t j = 0; j < axis.size; ++j) {
    if (!rule.is_outside(j)) {
      for (const Tap& tap : taps_around(rule.coordinate(j), rule)) {
        taps.place.push_back(static_cast<std::int32_t>(tap.place));
        taps.weight.push_back(static_cast<float>(tap.weight));
      }
    }
    taps.begin.push_back(static_cast<std::int32_t>(taps.place.size()));
  }
  return AxisMap::of_taps(src, axis.size, std::move(taps));
}

Value resize(Value x, const std::vector<ResizeAxis>& axes, const ResizeOptions& given) {
  const ResizeOptions options = plain(given);
  CONCORD_CHECK(!options.antialias || options.mode != Interpolation::nearest, ArgumentError,
                "resize: antialias needs linear or cubic interpolation");
  std::vector<ResizeAxis> changed = axes;
  std::ranges::sort(changed, {}, &ResizeAxis::axis);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    CONCORD_CHECK(changed[i].axis < x.shape().rank() && (i == 0 || changed[i - 1].axis < changed[i].axis), ShapeError,
                  "resize: axis {} is outside {} or given twice", changed[i].axis, x.shape().str());
  }
  std::erase_if(changed, [&](const ResizeAxis& axis) {
    return AxisRule{axis, options, x.shape().dims()[axis.axis]}.keeps_all();
  });
  std::vector<std::size_t> places;
  std::vector<ops::AxisMap> maps;
  for (const ResizeAxis& axis : changed) {
    places.push_back(axis.axis);
    maps.push_back(ops::resize_map(axis, x.shape().dims()[axis.axis], options));
  }
  Value y = resample(x, places, maps);
  for (const ResizeAxis& axis : changed) y = extrapolated(y, {axis, options, x.shape().dims()[axis.axis]});
  return y;
}

}  // namespace concord
