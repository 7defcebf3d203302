// What expression.cpp needs of the table of scalar functions: their values and slopes.
#pragma once

#include "concord/graph/expression.hpp"

namespace concord {

/// The function at a point, through formulas.h.
[[nodiscard]] float evaluate(ScalarFunction function, const float* arguments);

/// ∂y/∂argument for the outermost function of `y`; may contain `y` itself.
[[nodiscard]] Scalar slope(const Scalar& y, int argument);

}  // namespace concord
