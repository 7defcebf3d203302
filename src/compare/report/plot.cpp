// Axes, ticks, and what is drawn over them.
#include "concord/compare/report/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "concord/compare/report/html.hpp"

namespace concord {
namespace {

constexpr int kLeft = 62, kRight = 14, kTop = 12, kBottom = 44;

/// The largest of 1, 2, 5, 10 times a power of ten that is at most `value`, or the next above.
double round_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (value <= digit * power * (1 + 1e-9)) return digit * power;
  }
  return 10 * power;
}

std::vector<double> linear_ticks(double low, double high, int count, double least_step) {
  const double step = std::max(round_step((high - low) / count), least_step);
  std::vector<double> ticks;
  for (auto i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int count) {
  const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  std::vector<double> ticks;
  if (last - first >= 2) {
    const int step = std::max(1, (last - first + count - 1) / count);
    for (int power = first; power <= last; power += step) ticks.push_back(std::pow(10.0, power));
    return ticks;
  }
  for (int power = first - 1; power <= last; ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10.0, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

/// Uses as many decimals as the ticks of a linear axis need to differ. On a log axis that goes below a thousandth, all
/// ticks are powers of ten.
std::string tick_text(const Axis& axis, double value, const std::vector<double>& ticks) {
  const double size = std::abs(value);
  if (axis.scale == Scale::linear && ticks.size() > 1 && size < 1e4) {
    const int decimals = static_cast<int>(std::ceil(-std::log10(ticks[1] - ticks[0]) - 1e-9));
    if (decimals <= 6) return fmt::format("{:.{}f}", size < 1e-12 ? 0.0 : value, std::max(decimals, 0));
  }
  const double least = axis.scale == Scale::log ? std::min(size, axis.low) : size;
  const bool takes_prefix = size == 0 || (least >= 1e-3 && size < 1e15);
  return takes_prefix ? html::with_prefix(value) : fmt::format("{:.0e}", value);
}

}  // namespace

double Axis::place(double value) const {
  if (scale == Scale::linear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

bool Axis::shows(double value) const { return std::isfinite(value) && (scale == Scale::linear || value > 0); }

std::vector<double> Axis::ticks(int count) const {
  return scale == Scale::linear ? linear_ticks(low, high, count, has_whole_ticks ? 1 : 0) : log_ticks(low, high, count);
}

Axis axis_over(std::string label, Scale scale, std::span<const double> values) {
  Axis axis{std::move(label), scale};
  std::vector<double> shown;
  std::ranges::copy_if(values, std::back_inserter(shown), [&](double value) { return axis.shows(value); });
  if (shown.empty()) shown = {scale == Scale::log ? 0.1 : 0.0, 1.0};
  const auto [least, most] = std::ranges::minmax(shown);
  if (scale == Scale::log) {
    axis.low = least / 1.5;
    axis.high = most * 1.5;
    return axis;
  }
  const double margin = most > least ? (most - least) * 0.04 : std::max(std::abs(most) * 0.1, 1e-3);
  axis.low = least - margin;
  axis.high = most + margin;
  return axis;
}

Plot::Plot(Axis x, Axis y, int width)
    : x_(std::move(x)), y_(std::move(y)), width_(width), height_(width < 500 ? width * 3 / 4 : width * 9 / 20) {}

double Plot::left(double x) const { return kLeft + x_.place(x) * (width_ - kLeft - kRight); }

double Plot::top(double y) const { return height_ - kBottom - y_.place(y) * (height_ - kTop - kBottom); }

void Plot::run(std::span<const PlotPoint> points, std::string_view style) {
  if (points.size() == 1) {
    body_ += fmt::format("<circle class=\"mark lone {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", style,
                         left(points[0].x), top(points[0].y));
    return;
  }
  body_ += fmt::format("<polyline class=\"line {}\" points=\"", style);
  for (const PlotPoint& point : points) body_ += fmt::format("{:.1f},{:.1f} ", left(point.x), top(point.y));
  body_ += "\"/>";
}

void Plot::line(std::span<const PlotPoint> points, std::string_view style) {
  std::size_t first = 0;
  for (std::size_t i = 0; i <= points.size(); ++i) {
    if (i < points.size() && x_.shows(points[i].x) && y_.shows(points[i].y)) continue;
    if (i > first) run(points.subspan(first, i - first), style);
    first = i + 1;
  }
}

void Plot::marks(std::span<const PlotPoint> points, std::string_view style) {
  for (const PlotPoint& point : points) {
    if (!x_.shows(point.x) || !y_.shows(point.y)) continue;
    body_ +=
        fmt::format("<circle class=\"mark {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{}</title></circle>",
                    style, left(point.x), top(point.y), point.radius, html::escaped(point.title));
  }
}

std::string Plot::axes() const {
  std::string text;
  const int bottom = height_ - kBottom, right = width_ - kRight;
  const std::vector<double> y_ticks = y_.ticks(5), x_ticks = x_.ticks(width_ < 500 ? 4 : 7);
  for (const double tick : y_ticks) {
    text += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>",
        kLeft, right, top(tick), top(tick), kLeft - 6, top(tick) + 4, tick_text(y_, tick, y_ticks));
  }
  for (const double tick : x_ticks) {
    text += fmt::format(
        "<line class=\"tickmark\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>"
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>",
        left(tick), left(tick), bottom, bottom + 4, left(tick), bottom + 18, tick_text(x_, tick, x_ticks));
  }
  text += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", kLeft, right, bottom, bottom);
  text += fmt::format("<text class=\"name\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>", (kLeft + right) / 2,
                      height_ - 6, html::escaped(x_.label));
  return text +
         fmt::format("<text class=\"name\" text-anchor=\"middle\" transform=\"translate(13 {}) rotate(-90)\">{}</text>",
                     (kTop + bottom) / 2, html::escaped(y_.label));
}

std::string Plot::svg(std::string_view description) const {
  return fmt::format(
      "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\">{}{}</svg>\n",
      html::escaped(description), width_, height_, width_, height_, axes(), body_);
}

}  // namespace concord
