// Compares results with their reference.
#include "concord/compare/run/deviation.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/compare/tolerance/tolerance.hpp"

namespace concord {
namespace {

/// The index of an element in each dimension.
std::vector<std::int64_t> place_of(std::size_t element, const Shape& shape) {
  std::vector<std::int64_t> place(shape.rank());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t d = shape.rank(); d-- > 0;) {
    place[d] = rest % shape[d];
    rest /= shape[d];
  }
  return place;
}

}  // namespace

std::string_view name_of(Form form) { return form == Form::fused ? "fused" : "unfused"; }

std::string Deviation::place() const {
  return worst_element.empty() ? "" : fmt::format(" at [{}]", fmt::join(worst_element, ", "));
}

double Deviation::share() const {
  if (error == 0) return 0;
  return std::isfinite(error) && tolerance > 0 ? error / tolerance : INFINITY;
}

Deviation deviation_of(const ReplayedNode& node, std::size_t k, std::span<const Tensor> expected,
                       const std::optional<std::vector<double>>& exact, Precision precision, Magnitudes& magnitudes) {
  const TraceEntry& entry = node.entry;
  const Tensor& result = node.results[k];
  Deviation deviation{.node = entry.node,
                      .op = entry.op,
                      .kernel = entry.kernel,
                      .value = node.outputs[k],
                      .shapes = entry.shapes,
                      .pass = entry.pass,
                      .tolerance = tolerance_of(node, expected, k, precision, magnitudes)};
  const double of_fp32 =
      precision == Precision::fp32 ? deviation.tolerance : tolerance_of(node, expected, k, Precision::fp32, magnitudes);
  const double least = kLeastOfTolerance * of_fp32;
  const Difference difference =
      exact ? difference_of(result, *exact, least) : difference_of(result, expected[k], least);
  deviation.error = comparable_error(difference.largest, deviation.tolerance);
  if (deviation.error == 0) return deviation;
  deviation.largest_relative = difference.relative;
  deviation.largest_ulps = difference.ulps;
  deviation.worst_element = place_of(difference.at, result.shape());
  return deviation;
}

bool diverges(const OperatorCase& operator_case) {
  for (std::size_t k = 0; k < operator_case.results.size(); ++k) {
    const double tolerance = operator_case.tolerances[k];
    const double error = largest_difference(operator_case.results[k], operator_case.expected[k]);
    if (!(comparable_error(error, tolerance) <= tolerance)) return true;
  }
  return false;
}

void keep_worst(std::vector<Deviation>& operators, const Deviation& deviation) {
  const auto is_same = [&](const Deviation& d) {
    return d.form == deviation.form && d.node == deviation.node && d.op == deviation.op;
  };
  const auto found = std::ranges::find_if(operators, is_same);
  if (found == operators.end()) {
    operators.push_back(deviation);
  } else if (deviation.share() > found->share()) {
    *found = deviation;
  }
}

}  // namespace concord
