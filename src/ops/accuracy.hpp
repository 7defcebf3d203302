// How exact functions and activations are: one table, held by tests/ops/accuracy.cpp on every device and printed in
// docs/functions.md.
#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace concord {

/// Bounds of errors over all fp32 arguments, in units in the last place of the right result (ULP). Errors below
/// kUnderflow, of second derivatives kCurveUnderflow, do not count: what is below 2^-126, and what is made of it, may
/// be 0.
struct FunctionAccuracy {
  std::string_view name;  // of a function of scalar:: or of ops
  double ulps;            // of the value
  double slope_ulps;      // of the derivative
  double curve_ulps = 0;  // of the second derivative; 0: none is stated
  /// Where the derivative passes 0, else NaN: less than kBesideRoot from there, and of second derivatives less than 4
  /// from 0, an error is measured in ULP of at least 1/8.
  double root = std::numeric_limits<double>::quiet_NaN();
};

inline constexpr double kUnderflow = 0x1p-122, kCurveUnderflow = 0x1p-112;
inline constexpr double kBesideRoot = 0.5;

[[nodiscard]] std::span<const FunctionAccuracy> function_accuracy();

}  // namespace concord
