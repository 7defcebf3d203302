// exp and tanh without branches and calls, so that C++ compilers turn loops over them into vector instructions; those of
// the C library are called element by element. What formulas.h means by exp and tanh in C++; OpenCL has its own. Errors
// stay below 2 units in the last place; overflow, underflow, infinities and NaN come out as in the C library.
#ifndef CONCORD_VECTOR_MATH_H
#define CONCORD_VECTOR_MATH_H

#include <bit>
#include <cmath>
#include <cstdint>

// 2^n for n in [-126, 127].
static inline float concord_power_of_two(std::int32_t n) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}

// exp(a) = 2^n·exp(r) with |r| <= ln(2)/2: ln(2) in two parts, the first of few bits (Cody and Waite, 1980), and a
// minimax polynomial for exp(r). 2^n in two factors reaches infinity and the numbers below the smallest normal one.
static inline float concord_vector_exp(float a) {
  const float limited = a > 89.0f ? 89.0f : a < -104.0f ? -104.0f : a;
  const float shifted = limited * 1.44269504f + 12582912.0f;  // rounds to a whole number: 1.5·2^23 has no fraction bits
  const float whole = shifted - 12582912.0f;
  const float r = (limited - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = 1.3814602e-3f;
  p = p * r + 8.3687156e-3f;
  p = p * r + 4.1668389e-2f;
  p = p * r + 0.16666521f;
  p = p * r + 0.49999994f;
  p = p * (r * r) + r + 1.0f;
  const std::int32_t n = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(12582912.0f);
  // Of NaN, n is anything.
  const std::int32_t whole_n = n > 129 ? 129 : n < -152 ? -152 : n, half = whole_n >> 1;
  return p * concord_power_of_two(half) * concord_power_of_two(whole_n - half);
}

// An odd minimax polynomial near 0, where 1 − 2/(exp(2a) + 1) would cancel.
static inline float concord_vector_tanh(float a) {
  const float size = std::fabs(a), square = a * a;
  float p = -5.7049850e-3f;
  p = p * square + 2.0639086e-2f;
  p = p * square - 5.3739715e-2f;
  p = p * square + 0.13331442f;
  p = p * square - 0.33333281f;
  const float near = a + a * (square * p);
  const float far = std::copysign(1.0f - 2.0f / (concord_vector_exp(2.0f * size) + 1.0f), a);
  return size < 0.625f ? near : far;
}

#endif
