// The table of scalar functions. The enumeration, the functions of scalar::, the loops of the CPU, the text of OpenCL
// kernels and the tests follow from it. A new function is one row here, and its formula concord_<name> in
// cl_kernels/shared/formulas.h.
#pragma once

// FUNCTION(name, least and largest argument of tests, bounds, value, slope)
//   bounds  of the errors over all fp32 arguments, in units in the last place (ULP): of the value, of the derivative
//           and of the second derivative (0: none is stated), and where the derivative passes 0 (FunctionAccuracy)
//   value   in double precision, of the arguments a and b
//   slope   a formula of the arguments and of the result y, with respect to a; of two arguments, with respect to that
//           with the number k. It keeps its digits where the function is flat, so it is not made of a rounded result.
// What value and slope call stands in scalar_functions.cpp. Other headers read the names alone.
// clang-format off

// Functions of one argument.
#define CONCORD_UNARY_FUNCTIONS(FUNCTION)                                                                              \
  FUNCTION(abs, -3, 3, bounds(0, 0), std::abs(a), sign(a))                                                             \
  FUNCTION(exp, -20, 20, bounds(2, 2, 2), std::exp(a), y)                                                              \
  FUNCTION(expm1, -5, 5, bounds(3, 2, 2), std::expm1(a), scalar::exp(a))                                               \
  FUNCTION(log, 0.01F, 100, bounds(2, 2.5, 5), std::log(a), 1.0F / a)                                                  \
  FUNCTION(log1p, -0.9F, 10, bounds(3, 3, 6), std::log1p(a), 1.0F / (1.0F + a))                                        \
  FUNCTION(sqrt, 0.01F, 100, bounds(3, 6, 14), std::sqrt(a), 0.5F / y)                                                 \
  FUNCTION(rsqrt, 0.01F, 100, bounds(6, 9, 14), 1 / std::sqrt(a), -0.5F * y / a)                                       \
  FUNCTION(sin, -6, 6, bounds(4, 4, 4), std::sin(a), scalar::cos(a))                                                   \
  FUNCTION(cos, -6, 6, bounds(4, 4, 4), std::cos(a), -scalar::sin(a))                                                  \
  FUNCTION(tanh, -5, 5, bounds(3, 8, 12), std::tanh(a), 4.0F * scalar::sigmoid_slope(2.0F * a))                        \
  FUNCTION(erf, -4, 4, bounds(6, 4, 5), std::erf(a), kTwoOverRootPi * scalar::exp_product(a, -a))                      \
  /* Φ(a), the standard normal distribution function */                                                                \
  FUNCTION(normal_cdf, -7, 7, bounds(16, 4, 5), normal_cdf(a), kOneOverRootTwoPi * scalar::exp_product(a, -0.5F * a))  \
  FUNCTION(sigmoid, -20, 20, bounds(5, 8, 12), logistic(a), scalar::sigmoid_slope(a))                                  \
  /* sigmoid(a)·sigmoid(-a) */                                                                                         \
  FUNCTION(sigmoid_slope, -20, 20, bounds(8, 12), logistic(a) * logistic(-a), -(y * scalar::tanh(0.5F * a)))           \
  /* log(1 + exp(a)) */                                                                                                \
  FUNCTION(softplus, -20, 20, bounds(4, 5, 8), std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a))),                  \
    scalar::sigmoid(a))                                                                                                \
  /* gelu: a·Φ(a); gelu_tanh: its approximation by tanh; silu: a·sigmoid(a); each 0 at -∞, with its derivative */      \
  FUNCTION(gelu, -7, 7, bounds(16, 20, 8, -0.751792), product(a, normal_cdf(a)), scalar::gelu_slope(a))                \
  FUNCTION(gelu_slope, -7, 7, bounds(20, 8, 0, -0.751792), normal_cdf(a) + product(a, normal_pdf(a)),                  \
    within(a, 20.0F, kOneOverRootTwoPi * scalar::exp_product(a, -0.5F * a) * (2.0F - a * a)))                          \
  FUNCTION(gelu_tanh, -7, 7, bounds(6, 20, 512, -0.752461), product(a, logistic(gelu_tanh_argument(a))),               \
    scalar::gelu_tanh_slope(a))                                                                                        \
  FUNCTION(gelu_tanh_slope, -7, 7, bounds(20, 512, 0, -0.752461), gelu_tanh_slope(a), gelu_tanh_curve(a))              \
  FUNCTION(silu, -20, 20, bounds(6, 10, 20, -1.278465), product(a, logistic(a)), scalar::silu_slope(a))                \
  FUNCTION(silu_slope, -20, 20, bounds(10, 20, 0, -1.278465), logistic(a) + product(a, logistic(a) * logistic(-a)),    \
    within(a, 120.0F, scalar::sigmoid_slope(a) * (2.0F - a * scalar::tanh(0.5F * a))))                                 \
  FUNCTION(asin, -0.9F, 0.9F, bounds(10, 9), std::asin(a), scalar::rsqrt((1.0F - a) * (1.0F + a)))                     \
  FUNCTION(acos, -0.9F, 0.9F, bounds(8, 9), std::acos(a), -scalar::rsqrt((1.0F - a) * (1.0F + a)))                     \
  FUNCTION(atan, -5, 5, bounds(5, 5), std::atan(a), 1.0F / (1.0F + a * a))                                             \
  FUNCTION(sinh, -5, 5, bounds(6, 4, 6), std::sinh(a), scalar::cosh(a))                                                \
  FUNCTION(cosh, -5, 5, bounds(4, 6, 4), std::cosh(a), scalar::sinh(a))                                                \
  FUNCTION(asinh, -5, 5, bounds(8, 9), std::asinh(a), asinh_slope(a))                                                  \
  FUNCTION(acosh, 1.1F, 100, bounds(8, 14), std::acosh(a), scalar::rsqrt(a - 1.0F) * scalar::rsqrt(a + 1.0F))          \
  FUNCTION(atanh, -0.9F, 0.9F, bounds(6, 5), std::atanh(a), 1.0F / ((1.0F - a) * (1.0F + a)))                          \
  FUNCTION(log2, 0.01F, 100, bounds(4, 4), std::log2(a), kOneOverLogTwo / a)                                           \
  FUNCTION(floor, -3, 3, bounds(0, 0), std::floor(a), 0.0F)                                                            \
  /* to the nearest whole number, half to even */                                                                      \
  FUNCTION(rint, -3, 3, bounds(0, 0), std::nearbyint(a), 0.0F)                                                         \
  /* 1 where a is finite, else 0 */                                                                                    \
  FUNCTION(is_finite, -3, 3, bounds(0, 0), std::isfinite(a) ? 1.0 : 0.0, 0.0F)

// Functions of two arguments.
#define CONCORD_BINARY_FUNCTIONS(FUNCTION)                                                                             \
  /* NaN if either is */                                                                                               \
  FUNCTION(minimum, -3, 3, bounds(0, 0), a <= b || std::isnan(a) ? a : b,                                              \
    k == 0 ? min_slope(y, a, b) : min_slope(y, b, a))                                                                  \
  FUNCTION(maximum, -3, 3, bounds(0, 0), a >= b || std::isnan(a) ? a : b,                                              \
    k == 0 ? max_slope(y, a, b) : max_slope(y, b, a))                                                                  \
  /* a raised to b, as pow in C; constant whole exponents up to 8 become products (Expression) */                      \
  FUNCTION(power, 0.1F, 3, bounds(4, 128), std::pow(a, b), power_slope(y, a, b, k))                                    \
  /* the angle of the point (b, a), as atan2 in C; its slope at (0, 0) is 0 */                                         \
  FUNCTION(atan2, 0.1F, 3, bounds(5, 8), std::atan2(a, b), atan2_slope(a, b, k))                                       \
  /* exp(a·b) with all bits of the product, for densities such as exp(-x²); its slope is not ∞·0 */                    \
  FUNCTION(exp_product, -3, 3, bounds(2, 3), std::exp(a * b), select(equal(y, 0.0F), 0.0F, (k == 0 ? b : a) * y))
// clang-format on
