// Functions for results that are rounded to 16 bits, by few instructions of NVIDIA's GPUs, whose powers of two and
// reciprocals are within 2^-21. vector_math.h and formulas.h take them in kernels with CONCORD_SHORT_RESULTS. Compiles as
// OpenCL C for these GPUs and as C++, for the tests of its bounds. NaN gives NaN.
#ifndef CONCORD_SHORT_MATH_H
#define CONCORD_SHORT_MATH_H

#include "shared/languages.h"

#ifdef __OPENCL_VERSION__
// 2^a; 0 below 2^-126.
static inline float concord_short_exp2(float a) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(a));
  return power;
}
// a / b for normal b up to 2^126.
static inline float concord_short_quotient(float a, float b) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
  return a * inverse;
}
#else
CONCORD_INLINE float concord_short_exp2(float a) { return std::exp2(a); }
CONCORD_INLINE float concord_short_quotient(float a, float b) { return a / b; }
#endif

// GELU is max(a, 0) - |a|·Φ(-|a|), its slope Φ(-|a|) - |a|·φ(a) at -|a|, and 1 minus that at |a|. Φ(-u) is a power of two
// whose exponent is a polynomial: a minimax fit over u <= 9 that falls further beyond. The error of GELU is at most 2^-15
// times |a|·Φ(-|a|) for |a| <= 5.5, and 2^-11 times that up to 9; that of its slope 2^-14 and 2^-11 times Φ(-|a|) + |a|·φ(a).
CONCORD_INLINE float concord_short_limited_size(float a) {
  const float size = CONCORD_STD(fabs)(a);
  return size > 14.0f ? 14.0f : size;  // where Φ(-|a|) is 0
}
CONCORD_INLINE float concord_short_normal_below(float u) {
  float p = -1.26432496e-6f;
  p = CONCORD_STD(fma)(p, u, 4.86562421e-5f);
  p = CONCORD_STD(fma)(p, u, -8.15716223e-4f);
  p = CONCORD_STD(fma)(p, u, 8.00397713e-3f);
  p = CONCORD_STD(fma)(p, u, -5.28234392e-2f);
  p = CONCORD_STD(fma)(p, u, -0.459693819f);
  p = CONCORD_STD(fma)(p, u, -1.15074182f);
  return concord_short_exp2(CONCORD_STD(fma)(p, u, -1.00003242f));
}
CONCORD_INLINE float concord_short_gelu(float a) {
  const float u = concord_short_limited_size(a);
  return CONCORD_STD(fma)(-u, concord_short_normal_below(u), CONCORD_STD(fmax)(a, 0.0f));
}
// 1 - u·φ(u)/Φ(-u) is a polynomial of its own.
CONCORD_INLINE float concord_short_gelu_slope(float a) {
  const float u = concord_short_limited_size(a);
  float p = -6.4435153e-6f;
  p = CONCORD_STD(fma)(p, u, 2.09593112e-4f);
  p = CONCORD_STD(fma)(p, u, -2.88851443e-3f);
  p = CONCORD_STD(fma)(p, u, 2.24247873e-2f);
  p = CONCORD_STD(fma)(p, u, -0.110208832f);
  p = CONCORD_STD(fma)(p, u, -0.637171626f);
  p = CONCORD_STD(fma)(p, u, -0.797477961f);
  const float below = concord_short_normal_below(u) * CONCORD_STD(fma)(p, u, 0.999967396f);
  return a < 0.0f ? below : 1.0f - below;
}

// The same of GELU by tanh: σ(-z), z = 2·√(2/π)·(u + 0.044715·u³), in the place of Φ(-u). The error is at most 2^-13 times
// |a|·σ(-z) for |a| <= 4, and 2^-9 times that up to 6; that of the slope the same times σ(-z)·(1 + |a|·z').
CONCORD_INLINE float concord_short_logistic_below(float u) {
  float p = -5.23742165e-5f;
  p = CONCORD_STD(fma)(p, u, 1.1709925e-3f);
  p = CONCORD_STD(fma)(p, u, -9.71368887e-3f);
  p = CONCORD_STD(fma)(p, u, 3.13303769e-2f);
  p = CONCORD_STD(fma)(p, u, -7.9615362e-2f);
  p = CONCORD_STD(fma)(p, u, -0.443531275f);
  p = CONCORD_STD(fma)(p, u, -1.15437102f);
  return concord_short_exp2(CONCORD_STD(fma)(p, u, -0.999889076f));
}
CONCORD_INLINE float concord_short_gelu_tanh(float a) {
  const float u = concord_short_limited_size(a);
  return CONCORD_STD(fma)(-u, concord_short_logistic_below(u), CONCORD_STD(fmax)(a, 0.0f));
}
// σ(-z) - u·z'·σ(z)·σ(-z).
CONCORD_INLINE float concord_short_gelu_tanh_slope(float a) {
  const float u = concord_short_limited_size(a), q = concord_short_logistic_below(u);
  const float rise = u * CONCORD_STD(fma)(0.214064446f, u * u, 1.59576912f);
  const float below = CONCORD_STD(fma)(-rise, CONCORD_STD(fma)(-q, q, q), q);
  return a < 0.0f ? below : 1.0f - below;
}

#endif
