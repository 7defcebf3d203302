// The scalar functions of pointwise expressions. Compiles as OpenCL C and as C++, so a formula cannot differ between
// devices by a typing error. Every function is one row of the table in src/graph/scalar_functions.cpp; plain operators
// (add, less, select, …) are printed by the backends.
#ifndef CONCORD_FORMULAS_H
#define CONCORD_FORMULAS_H

#ifdef __OPENCL_VERSION__
#define CONCORD_STD(name) name
#define CONCORD_VECTOR(name) name
#else
#include <vector_math.h>

#include <cmath>
#define CONCORD_STD(name) std::name
#define CONCORD_VECTOR(name) concord_vector_##name
#endif

// NaN if either is NaN, as in PyTorch and ONNX.
static inline float concord_minimum(float a, float b) { return (a <= b || a != a) ? a : b; }
static inline float concord_maximum(float a, float b) { return (a >= b || a != a) ? a : b; }
static inline float concord_abs(float a) { return CONCORD_STD(fabs)(a); }
static inline float concord_exp(float a) { return CONCORD_VECTOR(exp)(a); }
static inline float concord_expm1(float a) { return CONCORD_STD(expm1)(a); }
static inline float concord_log(float a) { return CONCORD_STD(log)(a); }
static inline float concord_log1p(float a) { return CONCORD_STD(log1p)(a); }
static inline float concord_sqrt(float a) { return CONCORD_STD(sqrt)(a); }
static inline float concord_rsqrt(float a) { return 1.0f / CONCORD_STD(sqrt)(a); }
static inline float concord_sin(float a) { return CONCORD_STD(sin)(a); }
static inline float concord_cos(float a) { return CONCORD_STD(cos)(a); }
static inline float concord_tanh(float a) { return CONCORD_VECTOR(tanh)(a); }
static inline float concord_erf(float a) { return CONCORD_STD(erf)(a); }
static inline float concord_power(float a, float b) { return CONCORD_STD(pow)(a, b); }
static inline float concord_floor(float a) { return CONCORD_STD(floor)(a); }

// erfc keeps the digits that 1 + erf(a / sqrt 2) would cancel for negative a.
static inline float concord_normal_cdf(float a) { return 0.5f * CONCORD_STD(erfc)(a * -0.707106781186547524f); }

// The exponent is never positive, so nothing overflows.
static inline float concord_sigmoid(float a) {
  const float e = CONCORD_VECTOR(exp)(-CONCORD_STD(fabs)(a));
  const float tail = e / (1.0f + e);
  return a >= 0.0f ? 1.0f / (1.0f + e) : tail;
}
static inline float concord_softplus(float a) {
  return concord_maximum(a, 0.0f) + CONCORD_STD(log1p)(CONCORD_VECTOR(exp)(-CONCORD_STD(fabs)(a)));
}

// Arithmetic, not isfinite(): it holds under every compiler setting that keeps IEEE comparisons.
static inline float concord_is_finite(float a) { return CONCORD_STD(fabs)(a) <= 3.402823466e+38f ? 1.0f : 0.0f; }

#endif
