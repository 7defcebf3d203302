// The scalar functions of pointwise expressions. Compiles as OpenCL C and as C++, so a formula cannot differ between
// devices by a typing error. Every function is one row of the table in src/graph/scalar_function_list.hpp, which bounds
// its errors; plain operators (add, less, select, …) are printed by the backends.
#ifndef CONCORD_FORMULAS_H
#define CONCORD_FORMULAS_H

#include "shared/vector_math.h"

// A product that no compiler joins with a sum to a fused operation: formulas have the same bits alone and as parts of
// larger ones, and on all devices.
CONCORD_INLINE float concord_times(float a, float b) {
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF
#endif
  return a * b;
}

// NaN if either is NaN, as in PyTorch and ONNX.
CONCORD_INLINE float concord_minimum(float a, float b) { return (a <= b || a != a) ? a : b; }
CONCORD_INLINE float concord_maximum(float a, float b) { return (a >= b || a != a) ? a : b; }
CONCORD_INLINE float concord_abs(float a) { return CONCORD_STD(fabs)(a); }
CONCORD_INLINE float concord_sqrt(float a) { return CONCORD_STD(sqrt)(a); }
CONCORD_INLINE float concord_rsqrt(float a) { return 1.0f / CONCORD_STD(sqrt)(a); }
CONCORD_INLINE float concord_floor(float a) { return CONCORD_STD(floor)(a); }
CONCORD_INLINE float concord_rint(float a) { return CONCORD_STD(rint)(a); }
CONCORD_INLINE float concord_sin(float a) { return concord_sine(a, 0u); }
CONCORD_INLINE float concord_cos(float a) { return concord_sine(a, 1u); }
// The same numbers for |a| < 12,000, in a third of the time: loops of processors look first.
CONCORD_INLINE float concord_sin_of_small(float a) { return concord_sine_of_small(a, 0u); }
CONCORD_INLINE float concord_cos_of_small(float a) { return concord_sine_of_small(a, 1u); }
CONCORD_INLINE bool concord_is_small(float a) { return CONCORD_STD(fabs)(a) < 12000.0f; }

CONCORD_INLINE float concord_exp(float a) { return concord_exp_limited(a, concord_exp_scaled(a, -0.0f, 0.0f)); }

// exp(a) - 1 = 2^n·(exp(r) - 1) + (2^n - 1), which cancels nowhere.
CONCORD_INLINE float concord_expm1(float a) {
  const float limited = a < -20.0f ? -20.0f : a;
  const float shifted = limited * 1.44269504f + 12582912.0f;
  const float whole = shifted - 12582912.0f;
  const float r = (limited - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = 1.38213078e-3f;
  p = p * r + 8.36866908e-3f;
  p = p * r + 4.16682586e-2f;
  p = p * r + 0.166665211f;
  p = p * r + 0.49999994f;
  p = p * (r * r) + r;
  // Half of 2^n, which reaches 2^128.
  const float scale = CONCORD_FLOAT_OF(0x3F000000u + (CONCORD_BITS_OF(shifted) << 23));
  const float finite = whole == 0.0f ? p : 2.0f * (scale * p + (scale - 0.5f));
  const float limit = a <= 88.72283f ? finite : a * INFINITY;
  return a == 0.0f ? a : limit;  // the sign of 0
}

// Numbers below 2^-126, which GPUs keep, are scaled first.
CONCORD_INLINE float concord_log(float a) {
  const float is_tiny = a < 1.17549435e-38f ? 1.0f : 0.0f;
  const float normal = is_tiny != 0.0f ? a * 33554432.0f : a;
  return concord_log_limited(a, concord_log_normal(normal, is_tiny * -25.0f));
}
// The exponent and the logarithm of the rest, so that powers of two give whole numbers.
CONCORD_INLINE float concord_log2(float a) {
  const float is_tiny = a < 1.17549435e-38f ? 1.0f : 0.0f;
  const float normal = is_tiny != 0.0f ? a * 33554432.0f : a;
  const concord_uint bits = CONCORD_BITS_OF(normal) - 0x3F3504F3u;
  const float exponent = (float)((int)bits >> 23) - is_tiny * 25.0f;
  const float rest = concord_log_normal(CONCORD_FLOAT_OF((bits & 0x007FFFFFu) + 0x3F3504F3u), 0.0f);
  return concord_log_limited(a, exponent + rest * 1.44269504f);
}
CONCORD_INLINE float concord_log1p(float a) {
  const float limited = concord_log_limited(1.0f + a, concord_log1p_normal(a));
  return a == 0.0f ? a : limited;  // the sign of 0
}

// An odd polynomial near 0, where 1 - 2/(exp(2a) + 1) would cancel.
CONCORD_INLINE float concord_tanh(float a) {
  const float size = CONCORD_STD(fabs)(a), square = a * a;
  float p = -5.69229666e-3f;
  p = p * square + 2.06281673e-2f;
  p = p * square - 5.37365153e-2f;
  p = p * square + 0.133314058f;
  p = p * square - 0.333332807f;
  const float near = size + size * (square * p);
  const float far = 1.0f - CONCORD_QUOTIENT(2.0f, concord_exp(2.0f * size) + 1.0f);
  return CONCORD_STD(copysign)(size < 0.625f ? near : far, a);
}

// An odd polynomial near 0, where 1 - erfc(a) would cancel.
CONCORD_INLINE float concord_erf(float a) {
  const float size = CONCORD_STD(fabs)(a), square = a * a;
  float p = 2.83016637e-3f;
  p = p * square - 2.58097369e-2f;
  p = p * square + 0.112679482f;
  p = p * square - 0.3761186f;
  p = p * square + 0.128379107f;
  const float near = size + size * p;
  const float exponential = concord_exp_scaled(-square, -0.0f, 0.0f);
  const float below = 2.0f * (exponential * concord_normal_tail(CONCORD_QUOTIENT(1.0f, 1.0f + 0.328000009f * size)));
  const float far = 1.0f - (size > 4.0f ? 0.0f : below);
  return CONCORD_STD(copysign)(size < 0.5f ? near : far, a);
}

// exp(a·b) with all bits of the product: the leading part is exact, which also holds where a compiler fuses operations.
CONCORD_INLINE float concord_exp_product(float a, float b) {
  const float a_high = concord_leading_bits(a), b_high = concord_leading_bits(b), high = a_high * b_high;
  const float low = a_high * (b - b_high) + (a - a_high) * b;
  const float is_ordinary = CONCORD_STD(fabs)(high) < 128.0f ? 1.0f : 0.0f;
  const float l = is_ordinary != 0.0f ? low : 0.0f;
  return concord_exp_limited(is_ordinary != 0.0f ? high + l : a * b, concord_exp_scaled(high, l, 0.0f));
}

// Φ(-|a|) is a density times a tail, and 0 from 13.2 on.
CONCORD_INLINE float concord_normal_cdf(float a) {
  const float u = CONCORD_STD(fabs)(a);
  const float below = concord_gaussian_scaled(u, 0.0f) * concord_normal_tail(CONCORD_QUOTIENT(1.0f, 1.0f + 0.231931031f * u));
  const float limited = u > 13.2f ? 0.0f : below;
  return a < 0.0f ? limited : 1.0f - limited;
}
// The exponent is never positive, so nothing overflows.
CONCORD_INLINE float concord_sigmoid(float a) {
  const float e = concord_exp(-CONCORD_STD(fabs)(a));
  return CONCORD_QUOTIENT(a >= 0.0f ? 1.0f : e, 1.0f + e);
}
// sigmoid(a)·sigmoid(-a), where neither is rounded to 1.
CONCORD_INLINE float concord_sigmoid_slope(float a) {
  const float e = concord_exp(-CONCORD_STD(fabs)(a)), inverse = CONCORD_QUOTIENT(1.0f, 1.0f + e);
  return (e * inverse) * inverse;
}
// a·sigmoid(a), 0 at -∞. The exponential is 2^16 times as large as it is, so that it is no less exact where a·exp(a) is
// still a normal number.
CONCORD_INLINE float concord_silu(float a) {
  const float size = CONCORD_STD(fabs)(a), scaled = concord_exp_scaled(-size, -0.0f, 16.0f);
  const float e = size > 98.0f ? 0.0f : scaled, limited = a < -98.0f ? -98.0f : a;
  return CONCORD_QUOTIENT(a >= 0.0f ? a : (e * limited) * 1.52587890625e-5f, 1.0f + e * 1.52587890625e-5f);
}
CONCORD_INLINE float concord_silu_slope(float a) {
  const float size = CONCORD_STD(fabs)(a), scaled = concord_exp_scaled(-size, -0.0f, 16.0f);
  const float e = size > 98.0f ? 0.0f : scaled, limited = size > 98.0f ? 98.0f : size;
  const float inverse = CONCORD_QUOTIENT(1.0f, 1.0f + e * 1.52587890625e-5f);
  // ±(sigmoid(a) + a·sigmoid'(a)) by |a|: of negative a it is exp(a)·(…) in one product.
  const float below = (e * inverse) * (1.52587890625e-5f - limited * (1.52587890625e-5f * inverse));
  return a < 0.0f ? below : inverse + limited * ((e * inverse) * (1.52587890625e-5f * inverse));
}

#ifdef CONCORD_SHORT_RESULTS
CONCORD_INLINE float concord_gelu(float a) { return concord_short_gelu(a); }
CONCORD_INLINE float concord_gelu_slope(float a) { return concord_short_gelu_slope(a); }
CONCORD_INLINE float concord_gelu_tanh(float a) { return concord_short_gelu_tanh(a); }
CONCORD_INLINE float concord_gelu_tanh_slope(float a) { return concord_short_gelu_tanh_slope(a); }
#else
// a·Φ(a) = max(a, 0) - |a|·Φ(-|a|).
CONCORD_INLINE float concord_gelu(float a) {
  const float u = CONCORD_STD(fabs)(a);
  const float below = concord_gaussian_scaled(u, 0.0f) * (u * concord_normal_tail(CONCORD_QUOTIENT(1.0f, 1.0f + 0.231931031f * u)));
  return (a > 0.0f ? a : 0.0f) - (u > 13.2f ? 0.0f : below);
}
// Minus the slope at -|a| is |a|·φ(a) - Φ(-|a|).
CONCORD_INLINE float concord_gelu_slope(float a) {
  const float u = CONCORD_STD(fabs)(a), gaussian = concord_gaussian_scaled(u, 16.0f);
  const float tail = concord_normal_tail(CONCORD_QUOTIENT(1.0f, 1.0f + 0.231931031f * u));
  const float below = gaussian * (6.08737614e-6f * u - 1.52587890625e-5f * tail);
  const float limited = u > 13.9f ? 0.0f : below;
  return a < 0.0f ? -limited : 1.0f + limited;
}
// a·sigmoid(z), z = 2·√(2/π)·(a + 0.044715·a³), as silu.
CONCORD_INLINE float concord_gelu_tanh(float a) {
  const float size = CONCORD_STD(fabs)(a), u = size > 12.0f ? 12.0f : size;
  const float e = concord_gelu_tanh_exponential(u);
  return CONCORD_QUOTIENT(a >= 0.0f ? a : (e * u) * -1.52587890625e-5f, 1.0f + e * 1.52587890625e-5f);
}
CONCORD_INLINE float concord_gelu_tanh_slope(float a) {
  const float size = CONCORD_STD(fabs)(a), u = size > 12.0f ? 12.0f : size;
  const float e = concord_gelu_tanh_exponential(u), inverse = CONCORD_QUOTIENT(1.0f, 1.0f + e * 1.52587890625e-5f);
  const float rise = u * (1.59576912f + 0.214064446f * (u * u));
  const float below = (e * inverse) * (1.52587890625e-5f - rise * (1.52587890625e-5f * inverse));
  return a < 0.0f ? below : inverse + rise * ((e * inverse) * (1.52587890625e-5f * inverse));
}
#endif
CONCORD_INLINE float concord_softplus(float a) {
  return concord_maximum(a, 0.0f) + concord_log1p_normal(concord_exp(-CONCORD_STD(fabs)(a)));
}

// Near 0 by expm1, since exp(a) - exp(-a) cancels there; `halved` is half of exp(|a|), which reaches further than
// exp(|a|) itself.
CONCORD_INLINE float concord_sinh(float a) {
  const float size = CONCORD_STD(fabs)(a), e = concord_expm1(size < 1.0f ? size : 1.0f);
  const float halved = concord_exp_scaled(size, -0.0f, -1.0f);
  const float far = size <= 89.41598f ? halved - 0.25f / halved : size * INFINITY;
  return CONCORD_STD(copysign)(size < 1.0f ? 0.5f * (e + e / (1.0f + e)) : far, a);
}
CONCORD_INLINE float concord_cosh(float a) {
  const float size = CONCORD_STD(fabs)(a), halved = concord_exp_scaled(size, -0.0f, -1.0f);
  return size <= 89.41598f ? halved + 0.25f / halved : size * INFINITY;
}

// log(2·|a|) where the square of a is out of range or 1 is nothing beside it.
CONCORD_INLINE float concord_asinh(float a) {
  const float size = CONCORD_STD(fabs)(a), limited = size < 1e9f ? size : 1e9f, square = limited * limited;
  const float near = concord_log1p_normal(limited + square / (1.0f + CONCORD_STD(sqrt)(1.0f + square)));
  return CONCORD_STD(copysign)(size < 1e9f ? near : concord_log(size) + 0.693147181f, a);
}
CONCORD_INLINE float concord_acosh(float a) {
  const float above = a - 1.0f, limited = a < 1e9f ? above : 1e9f;
  const float near = concord_log1p_normal(limited + CONCORD_STD(sqrt)(limited * (limited + 2.0f)));
  const float finite = a < 1e9f ? near : concord_log(a) + 0.693147181f;
  return a >= 1.0f ? finite : NAN;
}
CONCORD_INLINE float concord_atanh(float a) {
  const float size = CONCORD_STD(fabs)(a);
  return CONCORD_STD(copysign)(0.5f * concord_log1p(2.0f * size / (1.0f - size)), a);
}

// Beyond 1/2 by asin(a) = π/2 - 2·asin(√((1 - a)/2)); NaN beyond 1, as the root.
CONCORD_INLINE float concord_asin(float a) {
  const float size = CONCORD_STD(fabs)(a);
  const float far = 1.57079637f - (2.0f * concord_asin_of_small(CONCORD_STD(sqrt)(0.5f * (1.0f - size))) + 4.37113883e-8f);
  return CONCORD_STD(copysign)(size <= 0.5f ? concord_asin_of_small(size) : far, a);
}
CONCORD_INLINE float concord_acos(float a) {
  const float size = CONCORD_STD(fabs)(a);
  const float near = 1.57079637f - (concord_asin_of_small(size <= 0.5f ? a : 0.0f) + 4.37113883e-8f);
  const float far = 2.0f * concord_asin_of_small(CONCORD_STD(sqrt)(0.5f * (1.0f - size)));
  const float beyond = a < 0.0f ? 3.14159274f - (far + 8.74227766e-8f) : far;
  return size <= 0.5f ? near : beyond;
}
// Beyond 1 by atan(a) = π/2 - atan(1/a).
CONCORD_INLINE float concord_atan(float a) {
  const float size = CONCORD_STD(fabs)(a), near = concord_atan_of_small(size > 1.0f ? 1.0f / size : size);
  return CONCORD_STD(copysign)(size > 1.0f ? 1.57079637f - (near + 4.37113883e-8f) : near, a);
}
// The angle of the point (b, a), as in C also for zeros and infinities of either sign: the angle to the axis that is
// nearer, then to that of positive b.
CONCORD_INLINE float concord_atan2(float a, float b) {
  const float rise = CONCORD_STD(fabs)(a), run = CONCORD_STD(fabs)(b);
  const float large = rise > run ? rise : run, small = rise > run ? run : rise;
  const float quotient = small / (large > 0.0f ? large : 1.0f), ratio = small == INFINITY ? 1.0f : quotient;
  const float near = concord_atan_of_small(ratio), is_back = (CONCORD_BITS_OF(b) >> 31) != 0u ? 1.0f : 0.0f;
  const float steep = 1.57079637f - ((is_back > 0.0f ? -near : near) + 4.37113883e-8f);
  const float flat = is_back > 0.0f ? 3.14159274f - (near + 8.74227766e-8f) : near;
  const float angle = CONCORD_STD(copysign)(rise > run ? steep : flat, a);
  const float sum = rise + run;
  return sum == sum ? angle : sum;  // NaN if either is
}

// As pow in C: signs by whole and odd exponents, 1 for an exponent of 0 and a base of 1.
CONCORD_INLINE float concord_power(float a, float b) {
  const float size = CONCORD_STD(fabs)(a), power = concord_power_of_size(size, b, 0.0f);
  const float magnitude = size == 1.0f ? 1.0f : power;  // not of infinity times log(1)
  const float half_b = 0.5f * b, fraction = b - CONCORD_STD(floor)(b), parity = half_b - CONCORD_STD(floor)(half_b);
  const concord_uint sign = parity == 0.5f ? CONCORD_BITS_OF(a) & 0x80000000u : 0u;
  const float below = a < 0.0f ? fraction : 0.0f, is_root = size < INFINITY ? below : 0.0f;
  const float number = is_root > 0.0f ? NAN : CONCORD_FLOAT_OF(CONCORD_BITS_OF(magnitude) | sign);
  const float of_nan = b == b ? number : b, by_0 = b == 0.0f ? 1.0f : of_nan;
  return a == 1.0f ? 1.0f : by_0;
}

// Arithmetic, not isfinite(): it holds under every compiler setting that keeps IEEE comparisons.
CONCORD_INLINE float concord_is_finite(float a) { return CONCORD_STD(fabs)(a) <= 3.402823466e+38f ? 1.0f : 0.0f; }

#endif
