// Numbers of a comparison as points of plots.
#include "concord/compare/report/page_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "concord/compare/report/html.hpp"
#include "concord/compare/report/plot.hpp"
#include "concord/compare/run/training_step.hpp"

namespace concord {
namespace {

constexpr int kWide = 900, kNarrow = 352;

struct Curve {
  std::string style;
  std::vector<PlotPoint> points;
};

std::string in_both_sizes(const std::function<std::string(int width)>& svg) {
  return fmt::format("<div class=\"chart\"><div class=\"wide\">{}</div><div class=\"narrow\">{}</div></div>\n",
                     svg(kWide), svg(kNarrow));
}

std::vector<double> all_of(const std::vector<Curve>& curves, double PlotPoint::*coordinate) {
  std::vector<double> values;
  for (const Curve& curve : curves) std::ranges::transform(curve.points, std::back_inserter(values), coordinate);
  return values;
}

std::string curves_chart(const std::vector<Curve>& curves, const std::string& y_label, Scale scale,
                         const std::string& description) {
  const std::vector<double> values = all_of(curves, &PlotPoint::y);
  const Axis y = axis_over(y_label, scale, values);
  if (std::ranges::none_of(values, [&](double value) { return y.shows(value); })) {
    return fmt::format(
        "<p class=\"soft\">Nothing to draw: the {} is {} at every step.</p>\n", y_label,
        std::ranges::all_of(values, [](double value) { return value == 0; }) ? "zero" : "zero or not finite");
  }
  Axis x = axis_over("step", Scale::linear, all_of(curves, &PlotPoint::x));
  x.has_whole_ticks = true;
  return in_both_sizes([&](int width) {
    Plot plot(x, y, width);
    for (const Curve& curve : curves) plot.line(curve.points, curve.style);
    return plot.svg(description);
  });
}

std::vector<PlotPoint> points_of(const std::vector<float>& losses) {
  std::vector<PlotPoint> points;
  for (std::size_t i = 0; i < losses.size(); ++i) points.push_back({static_cast<double>(i + 1), losses[i]});
  return points;
}

/// The largest difference so far: it shows a trend where losses meet again now and then.
std::vector<PlotPoint> deviations_of(const std::vector<float>& losses, const std::vector<float>& expected) {
  std::vector<PlotPoint> points;
  double largest = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    largest = std::max(largest, relative_deviation(losses[i], expected[i]));
    points.push_back({static_cast<double>(i + 1), largest});
  }
  return points;
}

std::vector<PlotPoint> points_of(const std::vector<WeightDistance>& distances) {
  std::vector<PlotPoint> points;
  for (const WeightDistance& d : distances) points.push_back({static_cast<double>(d.step), d.distance});
  return points;
}

/// Of the perturbed runs first, so that the devices' lines lie over them.
std::vector<Curve> drift_curves(const Comparison& comparison,
                                const std::function<std::vector<PlotPoint>(const PerturbedRun&)>& perturbed,
                                const std::function<std::vector<PlotPoint>(const DeviceRun&)>& device) {
  std::vector<Curve> curves;
  for (const PerturbedRun& run : comparison.perturbed) curves.push_back({"noise dashed", perturbed(run)});
  for (std::size_t d = 1; d < comparison.runs.size(); ++d) {
    curves.push_back({device_style(d), device(comparison.runs[d])});
  }
  return curves;
}

/// Operators that compute something, with the device's time as area.
std::vector<PlotPoint> operator_marks(const DeviceRun& run) {
  const double total = total_of(run.times).seconds;
  std::vector<PlotPoint> marks;
  for (const OperatorTime& time : run.times) {
    if (!(time.cost.flops > 0 && time.cost.bytes > 0 && time.seconds > 0)) continue;
    const double intensity = time.cost.flops / time.cost.bytes, rate = time.cost.flops / time.seconds;
    marks.push_back({intensity, rate,
                     fmt::format("{} ({}) on {}: {} FLOP/byte, {}FLOP/s, {:.1f}% of the time, {:.0f}% of the roofline",
                                 time.op, time.kernel, run.device.id, html::brief(intensity), html::with_prefix(rate),
                                 100 * time.seconds / total, 100 * time.share()),
                     3 + 12 * std::sqrt(time.seconds / total)});
  }
  return marks;
}

std::vector<PlotPoint> roof_of(const DeviceSpeed& speed, const Axis& x) {
  const double ridge = std::clamp(speed.flops_per_second / speed.bytes_per_second, x.low, x.high);
  const auto roof = [&](double intensity) {
    return PlotPoint{intensity, std::min(speed.flops_per_second, intensity * speed.bytes_per_second)};
  };
  return {roof(x.low), roof(ridge), roof(x.high)};
}

}  // namespace

std::string device_style(std::size_t place) { return fmt::format("s{}", place % 8); }

std::string legend(const Comparison& comparison, bool perturbed) {
  std::string items;
  for (std::size_t d = 0; d < comparison.runs.size(); ++d) {
    const DeviceInfo& device = comparison.runs[d].device;
    items += fmt::format("<li><span class=\"key {}\"></span><b>{}</b> <span class=\"soft\">{}</span></li>",
                         device_style(d), html::escaped(device.id), html::escaped(device.name));
  }
  if (perturbed && !comparison.perturbed.empty()) {
    items += fmt::format("<li><span class=\"key dashed noise\"></span>{} from weights moved by one ULP</li>",
                         html::escaped(comparison.runs.front().device.id));
  }
  return "<ul class=\"legend\">" + items + "</ul>\n";
}

std::string loss_chart(const Comparison& comparison) {
  std::vector<Curve> curves;
  for (std::size_t d = 0; d < comparison.runs.size(); ++d) {
    curves.push_back({device_style(d) + (d == 0 ? " wideline" : ""), points_of(comparison.runs[d].losses)});
  }
  return curves_chart(curves, "loss", Scale::linear, "The loss of each device by step");
}

std::string loss_drift_chart(const Comparison& comparison) {
  if (!comparison.options.drift) return {};
  const std::vector<float>& expected = comparison.runs.front().losses;
  const auto deviations = [&](const auto& run) { return deviations_of(run.losses, expected); };
  return curves_chart(drift_curves(comparison, deviations, deviations), "largest difference so far", Scale::log,
                      "The relative difference of the loss from that of the first device, by step");
}

std::string weight_drift_chart(const Comparison& comparison) {
  if (!comparison.options.drift) return {};
  const auto distances = [](const auto& run) { return points_of(run.weight_distances); };
  return curves_chart(drift_curves(comparison, distances, distances), "distance of the weights", Scale::log,
                      "The relative distance of the weights from those of the first device, by step");
}

std::string roofline_chart(const Comparison& comparison) {
  if (!comparison.options.speed) return {};
  std::vector<Curve> marks;
  std::vector<double> ceilings;
  for (std::size_t d = 0; d < comparison.runs.size(); ++d) {
    marks.push_back({device_style(d), operator_marks(comparison.runs[d])});
    ceilings.push_back(comparison.runs[d].speed->flops_per_second);
  }
  std::vector<double> intensities = all_of(marks, &PlotPoint::x), rates = all_of(marks, &PlotPoint::y);
  for (const DeviceRun& run : comparison.runs) {
    intensities.push_back(run.speed->flops_per_second / run.speed->bytes_per_second);
  }
  rates.insert(rates.end(), ceilings.begin(), ceilings.end());
  const Axis x = axis_over("FLOP per byte", Scale::log, intensities), y = axis_over("FLOP/s", Scale::log, rates);
  return in_both_sizes([&](int width) {
    Plot plot(x, y, width);
    for (std::size_t d = 0; d < marks.size(); ++d) {
      std::vector<PlotPoint> roof = roof_of(*comparison.runs[d].speed, x);
      for (PlotPoint& point : roof) point.y = std::max(point.y, y.low);
      plot.line(roof, marks[d].style);
      plot.marks(marks[d].points, marks[d].style);
    }
    return plot.svg("The FLOP/s of each operator by its FLOPs per byte, below the roofline of its device");
  });
}

}  // namespace concord
