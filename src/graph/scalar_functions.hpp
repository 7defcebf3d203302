// What expression.cpp and comparisons in double precision need of the table of scalar functions: values and slopes.
#pragma once

#include "concord/graph/expression.hpp"

namespace concord {

/// The function at a point, through formulas.h.
[[nodiscard]] float evaluate(ScalarFunction function, const float* arguments);
/// The function in double precision, from the C library: what formulas.h is held against.
[[nodiscard]] double evaluate_exactly(ScalarFunction function, const double* arguments);

/// ∂y/∂argument for the outermost function of `y`; may contain `y` itself.
[[nodiscard]] Scalar slope(const Scalar& y, int argument);

namespace scalar {
/// slope·diff, the chain rule. Where the slope is chosen and not computed (select with a branch of 0, a comparison), so
/// is the product: 0·∞ and 0·NaN are 0.
[[nodiscard]] Scalar chain(const Scalar& slope, const Scalar& diff);
}  // namespace scalar

}  // namespace concord
