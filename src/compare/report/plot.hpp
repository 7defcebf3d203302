// Plot: lines and points over two axes as SVG. The page's style sheet sets the colours by class; sizes are in pixels.
// Used by the page of compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace concord {

enum class Scale : std::uint8_t { linear, log };

struct Axis {
  std::string label;
  Scale scale = Scale::linear;
  double low = 0, high = 1;      // above 0 on a log scale
  bool has_whole_ticks = false;  // on a linear scale: of what is counted
  /// Where it lies between low and high: 0 to 1 inside.
  [[nodiscard]] double place(double value) const;
  /// Whether it can be drawn: finite, and above 0 on a log scale.
  [[nodiscard]] bool shows(double value) const;
  /// Round numbers inside, about `count`: 1, 2 or 5 times a power of ten; on a log scale of several decades powers.
  [[nodiscard]] std::vector<double> ticks(int count) const;
};
/// An axis that has room for these values, those that cannot be drawn left out.
[[nodiscard]] Axis axis_over(std::string label, Scale scale, std::span<const double> values);

struct PlotPoint {
  double x = 0, y = 0;
  std::string title = {};  // shown when the mouse pointer is over a point
  double radius = 0;       // of a point
};

class Plot {
 public:
  Plot(Axis x, Axis y, int width);

  /// A line through the points; it is broken where one cannot be drawn. A lone point becomes a dot.
  void line(std::span<const PlotPoint> points, std::string_view style);
  void marks(std::span<const PlotPoint> points, std::string_view style);
  /// `description` is read to people who do not see the plot.
  [[nodiscard]] std::string svg(std::string_view description) const;

 private:
  [[nodiscard]] double left(double x) const;
  [[nodiscard]] double top(double y) const;
  [[nodiscard]] std::string axes() const;
  void run(std::span<const PlotPoint> points, std::string_view style);

  Axis x_, y_;
  int width_, height_;
  std::string body_;
};

}  // namespace concord
