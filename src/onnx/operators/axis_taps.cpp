// Source positions and weights of Resize: see axis_taps.hpp.
#include "concord/onnx/operators/axis_taps.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"

namespace concord::onnx {
namespace {

struct AxisSizes {
  std::int64_t src, dst;
  double scale, first, last;
};

double coordinate_of(const std::string& rule, const AxisSizes& s, std::int64_t j) {
  const auto at = static_cast<double>(j), src = static_cast<double>(s.src);
  const double dst = s.scale * src;  // the size before it is rounded down, as the recorded cases have it
  if (rule == "half_pixel") return (at + 0.5) / s.scale - 0.5;
  if (rule == "pytorch_half_pixel") return s.dst > 1 ? (at + 0.5) / s.scale - 0.5 : 0;
  if (rule == "align_corners") return s.dst > 1 ? at * (src - 1) / (dst - 1) : 0;
  if (rule == "asymmetric") return at / s.scale;
  if (rule == "tf_half_pixel_for_nn") return (at + 0.5) / s.scale;
  if (rule == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(s.dst) / dst;
    return src / 2 * (1 - adjustment) + (at + 0.5) / s.scale - 0.5;
  }
  if (rule == "tf_crop_and_resize") {
    if (s.dst == 1) return 0.5 * (s.first + s.last) * (src - 1);
    return s.first * (src - 1) + at * (s.last - s.first) * (src - 1) / (dst - 1);
  }
  throw NotSupported(fmt::format("the coordinate rule '{}' is unknown", rule));
}

double nearest_place(const std::string& rule, double x) {
  if (rule == "round_prefer_floor") return std::ceil(x - 0.5);
  if (rule == "round_prefer_ceil") return std::floor(x + 0.5);
  if (rule == "floor") return std::floor(x);
  if (rule == "ceil") return std::ceil(x);
  throw NotSupported(fmt::format("the rule '{}' is unknown", rule));
}

// Keys, "Cubic Convolution Interpolation", 1981, with a free coefficient.
double cubic_weight(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

}  // namespace

bool AxisTaps::has_outside() const {
  return std::ranges::any_of(outside, [](bool is_outside) { return is_outside; });
}

AxisTaps axis_taps(const ResizeRule& rule, std::int64_t src, std::int64_t dst, double scale, double first,
                   double last) {
  AxisTaps taps;
  taps.src = src;
  const AxisSizes sizes{src, dst, scale, first, last};
  const auto clamped = [&](std::int64_t place) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(place, 0, src - 1));
  };
  const bool is_linear = rule.mode == "linear";
  CONCORD_CHECK(is_linear || rule.mode == "cubic" || rule.mode == "nearest", NotSupported, "the mode '{}' is unknown",
                rule.mode);
  for (std::int64_t j = 0; j < dst; ++j) {
    const double x = coordinate_of(rule.coordinates, sizes, j);
    const bool is_crop = rule.coordinates == "tf_crop_and_resize";
    taps.outside.push_back(is_crop && (x < 0 || x > static_cast<double>(src - 1)));
    if (rule.mode == "nearest") {
      taps.place.push_back(clamped(static_cast<std::int64_t>(nearest_place(rule.nearest, x))));
      taps.weight.push_back(1);
    } else {
      // An antialiased kernel is as wide as the source positions of one result.
      const double narrowed = rule.antialias ? std::min(scale, 1.0) : 1.0;
      const double support = (is_linear ? 1 : 2) / narrowed;
      const auto from = static_cast<std::int64_t>(std::ceil(x - support)),
                 to = static_cast<std::int64_t>(std::floor(x + support));
      std::vector<double> weights;
      double total = 0;
      for (std::int64_t place = from; place <= to; ++place) {
        const double distance = (static_cast<double>(place) - x) * narrowed;
        double weight =
            is_linear ? std::max(0.0, 1 - std::abs(distance)) : cubic_weight(distance, rule.cubic_coefficient);
        if (rule.exclude_outside && (place < 0 || place >= src)) weight = 0;
        weights.push_back(weight);
        total += weight;
      }
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double weight = rule.exclude_outside || rule.antialias ? weights[i] / total : weights[i];
        if (weight == 0) continue;
        taps.place.push_back(clamped(from + static_cast<std::int64_t>(i)));
        taps.weight.push_back(static_cast<float>(weight));
      }
    }
    taps.begin.push_back(static_cast<std::int32_t>(taps.place.size()));
  }
  return taps;
}

}  // namespace concord::onnx
