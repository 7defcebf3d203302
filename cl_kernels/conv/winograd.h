// The transforms of Winograd's F(4x4, 3x3) and F(3x3, 4x4) along one axis (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", arXiv:1509.09308): polynomials are multiplied by their values at six points, here 0, ±√½, ±√2 and ∞, whose
// rounding error is about half of that with 0, ±1, ±2 and ∞. Along both axes a tile of 6x6 pixels, times the 36 values of a
// kernel of 3x3, gives 4x4 results; times those of 4x4 slopes of results it gives the gradient of the kernel.
#ifndef CONCORD_WINOGRAD_H
#define CONCORD_WINOGRAD_H

#define POINTS 6  // along an axis, and the pixels of a tile
#define TILE 4    // results of a tile along an axis
#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); ++i)

#define ROOT_HALF 0.70710678f
#define ROOT_2 1.41421356f

// Six pixels to their values at the points, in place.
#define PIXELS_TO_POINTS(d0, d1, d2, d3, d4, d5)                                                       \
  {                                                                                                    \
    const float first = fma(-2.5f, d2, d0 + d4), last = fma(-2.5f, d3, d1 + d5);                       \
    const float even_half = fma(-2.0f, d2, d4), odd_half = ROOT_HALF * fma(-2.0f, d1, d3);             \
    const float even_2 = fma(-0.5f, d2, d4), odd_2 = ROOT_2 * fma(-0.5f, d1, d3);                      \
    d0 = first;                                                                                        \
    d1 = even_half + odd_half;                                                                         \
    d2 = even_half - odd_half;                                                                         \
    d3 = even_2 + odd_2;                                                                               \
    d4 = even_2 - odd_2;                                                                               \
    d5 = last;                                                                                         \
  }

// Three weights to six values.
#define WEIGHTS_TO_POINTS(g0, g1, g2, u0, u1, u2, u3, u4, u5)                                          \
  {                                                                                                    \
    const float even_half = fma(0.5f, g2, g0), odd_half = ROOT_HALF * (g1);                            \
    const float even_2 = fma(2.0f, g2, g0), odd_2 = ROOT_2 * (g1);                                     \
    u0 = g0;                                                                                           \
    u1 = (even_half + odd_half) * (-2.0f / 3.0f);                                                      \
    u2 = (even_half - odd_half) * (-2.0f / 3.0f);                                                      \
    u3 = (even_2 + odd_2) * (1.0f / 6.0f);                                                             \
    u4 = (even_2 - odd_2) * (1.0f / 6.0f);                                                             \
    u5 = g2;                                                                                           \
  }

// Four slopes of results to six values.
#define SLOPES_TO_POINTS(g0, g1, g2, g3, u0, u1, u2, u3, u4, u5)                                       \
  {                                                                                                    \
    const float even_half = fma(0.5f, g2, g0), odd_half = ROOT_HALF * fma(0.5f, g3, g1);               \
    const float even_2 = fma(2.0f, g2, g0), odd_2 = ROOT_2 * fma(2.0f, g3, g1);                        \
    u0 = g0;                                                                                           \
    u1 = (even_half + odd_half) * (-2.0f / 3.0f);                                                      \
    u2 = (even_half - odd_half) * (-2.0f / 3.0f);                                                      \
    u3 = (even_2 + odd_2) * (1.0f / 6.0f);                                                             \
    u4 = (even_2 - odd_2) * (1.0f / 6.0f);                                                             \
    u5 = g3;                                                                                           \
  }

// Six products to three slopes of weights, in place of the first three.
#define POINTS_TO_WEIGHTS(m0, m1, m2, m3, m4, m5)                                                      \
  {                                                                                                    \
    const float even_half = m1 + m2, odd_half = m1 - m2, even_2 = m3 + m4, odd_2 = m3 - m4;            \
    m0 += even_half + even_2;                                                                          \
    m1 = fma(ROOT_HALF, odd_half, ROOT_2 * odd_2);                                                     \
    m2 = fma(0.5f, even_half, fma(2.0f, even_2, m5));                                                  \
  }

// Six products to four results, in place of the first four.
#define POINTS_TO_RESULTS(m0, m1, m2, m3, m4, m5)                                                      \
  {                                                                                                    \
    const float even_half = m1 + m2, odd_half = m1 - m2, even_2 = m3 + m4, odd_2 = m3 - m4;            \
    m0 += even_half + even_2;                                                                          \
    m1 = fma(ROOT_HALF, odd_half, ROOT_2 * odd_2);                                                     \
    m2 = fma(0.5f, even_half, 2.0f * even_2);                                                          \
    m3 = fma(0.5f * ROOT_HALF, odd_half, fma(2.0f * ROOT_2, odd_2, m5));                               \
  }

#endif
