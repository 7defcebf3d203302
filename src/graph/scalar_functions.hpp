// The parts of the table of scalar functions that expression.cpp, comparisons in double precision and tests need:
// values, slopes, and bounds of errors.
#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "concord/graph/expression.hpp"

namespace concord {

/// The function at a point, through formulas.h.
[[nodiscard]] float evaluate(ScalarFunction function, const float* arguments);
/// The function in double precision, from the C library. It is the reference for formulas.h.
[[nodiscard]] double evaluate_exactly(ScalarFunction function, const double* arguments);

/// ∂y/∂argument for the outermost function of `y`; may contain `y` itself.
[[nodiscard]] Scalar slope(const Scalar& y, int argument);

/// Bounds of errors over all fp32 arguments, in units in the last place of the right result (ULP).
struct FunctionAccuracy {
  std::string_view name;  // of a function of scalar:: or of ops
  double ulps;            // of the value
  double slope_ulps;      // of the derivative
  double curve_ulps = 0;  // of the second derivative; 0: none is stated
  /// Where the derivative passes 0, else NaN: less than kBesideRoot from there, and of second derivatives less than 4
  /// from 0, an error is measured in ULP of at least 1/8.
  double root = std::numeric_limits<double>::quiet_NaN();
};
inline constexpr double kBesideRoot = 0.5;
/// Of each scalar function.
[[nodiscard]] std::span<const FunctionAccuracy> scalar_function_accuracy();

namespace scalar {
/// slope·diff, the chain rule. A factor that is the constant 0 makes it 0. Where the slope is chosen and not computed
/// (select with a branch of 0, a comparison), so is the product: 0·∞ and 0·NaN are 0. Of more than 16 selects, one
/// inside the other, this holds for a computed 0, too.
[[nodiscard]] Scalar chain(const Scalar& slope, const Scalar& diff);
[[nodiscard]] bool is_constant(const Scalar& a);
}  // namespace scalar

}  // namespace concord
