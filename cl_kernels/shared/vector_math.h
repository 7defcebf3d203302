// The functions that shared/formulas.h is made of, without branches and calls: compilers turn loops over them into vector
// instructions on the CPU backend and in OpenCL. Compiles as OpenCL C and as C++, needs no fused multiplication and
// loses nothing by one. Polynomials are minimax fits, coefficients rounded one after the other. Results below 2^-126
// may be 0. Bounds of errors stand in src/graph/scalar_function_list.hpp.
#ifndef CONCORD_VECTOR_MATH_H
#define CONCORD_VECTOR_MATH_H

#include "shared/languages.h"

// CONCORD_SHORT_RESULTS: of kernels whose results are rounded to 16 bits on NVIDIA's GPUs. Exponentials are then within
// 2^-16 of their value, the others within 2^-18 of 1, GELU as short_math.h says.
#ifdef CONCORD_SHORT_RESULTS
#include "shared/short_math.h"
#define CONCORD_QUOTIENT(a, b) concord_short_quotient(a, b)
#else
#define CONCORD_QUOTIENT(a, b) ((a) / (b))
#endif

// The first 12 bits of a number: products of two such numbers are exact.
CONCORD_INLINE float concord_leading_bits(float a) { return CONCORD_FLOAT_OF(CONCORD_BITS_OF(a) & 0xFFFFF000u); }

// exp(h + l)·2^shift, |l| < 0.1, where that is a normal number; anything elsewhere. exp(h) = 2^n·exp(r), |r| <=
// ln(2)/2, with ln(2) in two parts, the first of few bits (Cody and Waite, "Software Manual for the Elementary
// Functions", 1980).
#ifdef CONCORD_SHORT_RESULTS
CONCORD_INLINE float concord_exp_scaled(float h, float l, float shift) {
  return concord_short_exp2((h + l) * 1.44269504f + shift);
}
#else
CONCORD_INLINE float concord_exp_scaled(float h, float l, float shift) {
  const float shifted =
      h * 1.44269504f + (12582912.0f + shift);  // rounds to a whole number: 1.5·2^23 has no fraction bits
  const float whole = shifted - (12582912.0f + shift);
  const float r = ((h - whole * 0.693359375f) - whole * -2.12194440e-4f) + l;
  float p = 1.37926138e-3f;
  p = p * r + 8.38034973e-3f;
  p = p * r + 4.16696407e-2f;
  p = p * r + 0.166664094f;
  p = p * r + 0.499999851f;
  p = (p * (r * r) + r) + 1.0f;
  return CONCORD_FLOAT_OF(CONCORD_BITS_OF(p) + (CONCORD_BITS_OF(shifted) << 23));
}
#endif

// `scaled` where exp(a) is a normal number, else what exp(a) is.
CONCORD_INLINE float concord_exp_limited(float a, float scaled) {
  const float finite = a < -87.33654f ? 0.0f : scaled;
  return a <= 88.72283f ? finite : a * INFINITY;
}

// exp(-u²/2)·2^shift for u >= 0, where that is a normal number: the square as a sum of two numbers, the first exact.
#ifdef CONCORD_SHORT_RESULTS
CONCORD_INLINE float concord_gaussian_scaled(float u, float shift) {
  return concord_exp_scaled(-0.5f * (u * u), 0.0f, shift);
}
#else
CONCORD_INLINE float concord_gaussian_scaled(float u, float shift) {
  const float high = concord_leading_bits(u);
  return concord_exp_scaled(-0.5f * (high * high), -0.5f * ((u - high) * (u + high)), shift);
}
#endif

// exp(u²/2)·Φ(-u) for u >= 0, where Φ(-u) >= 2^-126; `t` is 1 / (1 + 0.231931031·u).
CONCORD_INLINE float concord_normal_tail(float t) {
  float p = -7.06689283e-2f;
  p = p * t + 0.247713581f;
  p = p * t - 0.202581912f;
  p = p * t + 0.226836801f;
  p = p * t + 1.23786861e-2f;
  p = p * t + 0.103239305f;
  p = p * t + 9.04371291e-2f;
  p = p * t + 9.26453769e-2f;
  return t * p;
}

// exp(-z)·2^16, z = 2·√(2/π)·(u + 0.044715·u³), for 0 <= u <= 12; 0 from z = 98 on. Squares and products are sums of
// two numbers, the first exact; so are the constants.
CONCORD_INLINE float concord_gelu_tanh_exponential(float u) {
  const float u_high = concord_leading_bits(u), u_low = u - u_high;
  const float square = u * u, s_high = concord_leading_bits(square);
  const float s_low = (u_high * u_high - s_high) + u_low * (u + u_high);
  const float cubic = 0.044708252f * s_high, cubic_low = 0.044708252f * s_low + 6.74804687e-06f * square;
  const float sum = 1.0f + cubic, back = sum - 1.0f;
  const float sum_low = ((1.0f - (sum - back)) + (cubic - back)) + cubic_low;
  const float linear = 1.59570312f * u_high, linear_low = 1.59570312f * u_low + 6.59966026e-05f * u;
  const float a = concord_leading_bits(linear), b = concord_leading_bits(sum);
  const float z = a * b,
              z_low = ((linear - a) * sum + a * (sum - b)) + (linear_low * (sum + sum_low) + linear * sum_low);
  const float scaled = concord_exp_scaled(-z, -z_low, 16.0f);
  return z > 98.0f ? 0.0f : scaled;
}

// log(a) for normal a > 0: a = 2^k·(1 + f), f in [√½ - 1, √2 - 1).
CONCORD_INLINE float concord_log_normal(float a, float k_shift) {
  const concord_uint bits = CONCORD_BITS_OF(a) - 0x3F3504F3u;
  const float k = (float)((int)bits >> 23) + k_shift;
  const float f = CONCORD_FLOAT_OF((bits & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f, square = f * f;
  float p = -0.0763643906f;
  p = p * f + 0.127622172f;
  p = p * f - 0.131596103f;
  p = p * f + 0.1420158f;
  p = p * f - 0.166234091f;
  p = p * f + 0.200012416f;
  p = p * f - 0.250008196f;
  p = p * f + 0.333333313f;
  const float rest = square * (f * p) - 0.5f * square;
  return k * 0.693359375f + (f + (rest + k * -2.12194440e-4f));
}

// `normal` where a is a positive finite number, else what log(a) is.
CONCORD_INLINE float concord_log_limited(float a, float normal) {
  const float not_positive = a == 0.0f ? -INFINITY : NAN;
  const float finite = a > 0.0f ? normal : not_positive;
  return a < INFINITY ? finite : a;
}

// log(1 + a) for a > -1, finite.
CONCORD_INLINE float concord_log1p_normal(float a) {
  const float sum = 1.0f + a;
  const float lost = a < 1.0f ? a - (sum - 1.0f) : 1.0f - (sum - a);
  return concord_log_normal(sum, 0.0f) + lost / sum;
}

// asin(a) for |a| <= 1/2.
CONCORD_INLINE float concord_asin_of_small(float a) {
  const float square = a * a;
  float p = 4.22117971e-2f;
  p = p * square + 2.41520926e-2f;
  p = p * square + 4.5476042e-2f;
  p = p * square + 7.49525204e-2f;
  p = p * square + 0.166667536f;
  return a + a * (square * p);
}

// atan(a) for 0 <= a <= 1.
CONCORD_INLINE float concord_atan_of_small(float a) {
  const float square = a * a;
  float p = -1.78217585e-3f;
  p = p * square + 1.08663626e-2f;
  p = p * square - 3.10936309e-2f;
  p = p * square + 5.78789152e-2f;
  p = p * square - 8.39920864e-2f;
  p = p * square + 0.109508611f;
  p = p * square - 0.142640144f;
  p = p * square + 0.199985296f;
  p = p * square - 0.333332986f;
  return a + a * (square * p);
}

// Sine and cosine: a minus the nearest multiple of π/2, then a polynomial for one of the two. Up to 12,000 the multiple
// is subtracted in parts of 11 bits, whose products are exact.
CONCORD_INLINE float concord_quarter_turns(float size, concord_uint* quarter) {
  const float shifted = size * 0.636619772f + 12582912.0f;
  const float whole = shifted - 12582912.0f;
  *quarter = CONCORD_BITS_OF(shifted);
  return ((size - whole * 1.5703125f) - whole * 4.83751297e-4f) - whole * 7.54953362e-8f - whole * 2.56334407e-12f;
}

// From there on a·2/π modulo 4 is a product of whole numbers (Payne and Hanek, "Radian Reduction for Trigonometric
// Functions", 1983): the 24 bits of a and 96 bits of 2/π, from that on which decides.
CONCORD_INLINE float concord_quarter_turns_of_large(float size, concord_uint* quarter) {
  const concord_uint bits = CONCORD_BITS_OF(size);
  const concord_uint mantissa = (bits & 0x007FFFFFu) | 0x00800000u;
  const concord_uint exponent = bits >> 23;
  const concord_uint first = (exponent < 140u ? 140u : exponent > 254u ? 254u : exponent) - 120u;
  const concord_uint shift = first & 31u, back = 31u - shift;
  // Four neighbours of the eight words of 2/π, the first of them 0: selected, since a table would be read element by
  // element.
  const bool by_4 = (first & 128u) != 0u, by_2 = (first & 64u) != 0u, by_1 = (first & 32u) != 0u;
  const concord_uint a0 = by_4 ? 0xF534DDC0u : 0u, a1 = by_4 ? 0xDB629599u : 0xA2F9836Eu;
  const concord_uint a2 = by_4 ? 0x3C439041u : 0x4E441529u, a3 = by_4 ? 0xFE5163ABu : 0xFC2757D1u;
  const concord_uint b0 = by_2 ? a2 : a0, b1 = by_2 ? a3 : a1, b2 = by_2 ? 0xF534DDC0u : a2;
  const concord_uint b3 = by_2 ? 0xDB629599u : a3, b4 = by_2 ? 0x3C439041u : 0xF534DDC0u;
  const concord_uint a = by_1 ? b1 : b0, b = by_1 ? b2 : b1, c = by_1 ? b3 : b2, d = by_1 ? b4 : b3;
  const concord_uint high = (a << shift) | ((b >> 1) >> back);
  const concord_uint middle = (b << shift) | ((c >> 1) >> back);
  const concord_uint low = (c << shift) | ((d >> 1) >> back);
  const concord_uint carried = CONCORD_HIGH_PRODUCT(mantissa, low), part = mantissa * middle;
  const concord_uint fraction = part + carried;
  const concord_uint whole = mantissa * high + CONCORD_HIGH_PRODUCT(mantissa, middle) + (fraction < part ? 1u : 0u);
  *quarter = (whole + 0x20000000u) >> 30;
  const float rest = (float)(int)(whole - (*quarter << 30)) + (float)(int)(fraction >> 8) * 5.9604644775390625e-8f;
  return rest * 1.46291808e-9f;
}

// sin(a) for `turn` 0, cos(a) for 1; |a| is r and q quarters of a turn.
CONCORD_INLINE float concord_sine_of(float a, concord_uint turn, float r, concord_uint quarters) {
  const float square = r * r;
  const concord_uint q = quarters + turn;
  float s = -1.95078828e-4f;
  s = s * square + 8.33210628e-3f;
  s = s * square - 0.166666538f;
  s = s * (square * r) + r;
  float c = 2.44321054e-5f;
  c = c * square - 1.38873083e-3f;
  c = c * square + 4.16666456e-2f;
  c = c * (square * square) - 0.5f * square + 1.0f;
  const float chosen = (q & 1u) != 0u ? c : s;
  const concord_uint sign = turn != 0u ? 0u : CONCORD_BITS_OF(a) & 0x80000000u;
  return CONCORD_FLOAT_OF(CONCORD_BITS_OF(chosen) ^ ((q & 2u) << 30) ^ sign);
}
// Of |a| < 12,000.
CONCORD_INLINE float concord_sine_of_small(float a, concord_uint turn) {
  concord_uint quarter;
  const float r = concord_quarter_turns(CONCORD_STD(fabs)(a), &quarter);
  return concord_sine_of(a, turn, r, quarter);
}
CONCORD_INLINE float concord_sine(float a, concord_uint turn) {
  const float size = CONCORD_STD(fabs)(a);
  concord_uint quarter, quarter_of_large;
  const float small = concord_quarter_turns(size, &quarter);
  const float large = concord_quarter_turns_of_large(size, &quarter_of_large);
  const bool is_small = size < 12000.0f;
  const float result = concord_sine_of(a, turn, is_small ? small : large, is_small ? quarter : quarter_of_large);
  return size < INFINITY ? result : NAN;
}

// |a| to the power b + c, |c| below the last place of b: exp(b·log|a|) with the logarithm and the product as sums of
// two numbers. Of infinities, 0 and powers out of range the product is enough.
CONCORD_INLINE float concord_power_of_size(float size, float b, float c) {
  const float is_tiny = size < 1.17549435e-38f ? 1.0f : 0.0f;
  const float normal = is_tiny != 0.0f ? size * 33554432.0f : size;
  const concord_uint bits = CONCORD_BITS_OF(normal) - 0x3F3504F3u;
  const float k = (float)((int)bits >> 23) - is_tiny * 25.0f;
  const float m = CONCORD_FLOAT_OF((bits & 0x007FFFFFu) + 0x3F3504F3u), f = m - 1.0f;
  // log(m) = 2·artanh(s), s = f / (m + 1) = s_high + s_low.
  const float inverse = 1.0f / (m + 1.0f), s = f * inverse, s_high = concord_leading_bits(s);
  const float d_high = concord_leading_bits(m + 1.0f), d_low = m - (d_high - 1.0f);
  const float s_low = ((f - s_high * d_high) - s_high * d_low) * inverse;
  const float square = s * s;
  float p = 0.242788985f;
  p = p * square + 0.284987956f;
  p = p * square + 0.400009722f;
  p = p * square + 0.666666627f;
  const float tail = 2.0f * s_low + (s * square * p + k * -2.12194440e-4f);
  const float lead = k * 0.693359375f, log_high = lead + 2.0f * s_high;
  const float log_low = (2.0f * s_high - (log_high - lead)) + tail;
  const float b_high = concord_leading_bits(b), l_high = concord_leading_bits(log_high);
  const float product_high = b_high * l_high;
  const float product_low = (b_high * (log_high - l_high) + (b - b_high) * log_high) + (b * log_low + c * log_high);
  const float sum = product_high + product_low;
  const float log_of_end = size == 0.0f ? -INFINITY : log_high;
  const float simple = b * (size < INFINITY ? log_of_end : size);
  const float is_ordinary = CONCORD_STD(fabs)(simple) < 200.0f ? 1.0f : 0.0f;
  const float h = is_ordinary != 0.0f ? sum : simple;
  return concord_exp_limited(h, concord_exp_scaled(h, product_low - (sum - product_high), 0.0f));
}

#endif
