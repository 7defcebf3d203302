// Elementary functions, elementwise, with PyTorch's names: powers, logarithms, trigonometric and hyperbolic functions,
// rounding. exp, log, sqrt, abs, square and clamp are in ops/pointwise.hpp.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

// Results are f32. docs/functions.md has the bounds of their errors.
Value exp2(Value x);
Value expm1(Value x);
Value log1p(Value x);
Value log2(Value x);
Value log10(Value x);
Value rsqrt(Value x);
Value reciprocal(Value x);
Value erf(Value x);

Value sin(Value x);
Value cos(Value x);
Value tan(Value x);
/// NaN outside [−1, 1], with gradients of ±∞ at the ends.
Value asin(Value x);
Value acos(Value x);
Value atan(Value x);
/// The angle of the point (x, y) in (−π, π], as atan2 in C also for zeros and infinities; y and x broadcast. The
/// gradient at (0, 0) is 0.
Value atan2(Value y, Value x);
Value sinh(Value x);
Value cosh(Value x);
Value asinh(Value x);
/// NaN below 1.
Value acosh(Value x);
/// ±∞ at ±1, NaN beyond.
Value atanh(Value x);

// Rounding to whole numbers: the gradient is 0. Integers stay as they are.
Value floor(Value x);
Value ceil(Value x);
/// To the nearest, half to even.
Value round(Value x);
/// Toward 0.
Value trunc(Value x);
/// −1, 0 or 1; 0 of NaN. The gradient is 0. Integers give i32.
Value sign(Value x);

/// x to a constant power, as pow in C, of any sign of x: products for whole exponents from −8 to 8. The gradient is
/// exponent·x^(exponent − 1), also for x ≤ 0. x^0 is 1.
Value pow(Value x, float exponent);
/// As pow in C; x and exponent broadcast. The gradient of the exponent is 0 where the result is 0.
Value pow(Value x, Value exponent);

}  // namespace concord
