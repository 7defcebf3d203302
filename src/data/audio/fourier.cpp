// Stockham's transform of mixed radices: each stage reads one array and writes the other, already in order. Two real
// numbers are taken as a complex one, which halves the length.
#include "concord/data/audio/fourier.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "concord/core/check.hpp"

namespace concord::data {
namespace {

ComplexNumber plus(ComplexNumber a, ComplexNumber b) { return {a.re + b.re, a.im + b.im}; }
ComplexNumber minus(ComplexNumber a, ComplexNumber b) { return {a.re - b.re, a.im - b.im}; }
ComplexNumber product(ComplexNumber a, ComplexNumber b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

std::vector<ComplexNumber> roots_of_unity(std::size_t count, std::size_t order) {
  std::vector<ComplexNumber> roots(count);
  for (std::size_t k = 0; k < count; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(order);
    roots[k] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  return roots;
}

}  // namespace

RealFourier::RealFourier(std::size_t size) : half_(size / 2) {
  CONCORD_CHECK(size > 0 && size % 2 == 0, ArgumentError, "a real Fourier transform of {} numbers: it must be even",
                size);
  std::size_t rest = half_;
  for (const std::size_t radix : {4, 2, 3, 5}) {
    for (; rest % radix == 0; rest /= radix) radices_.push_back(radix);
  }
  for (std::size_t radix = 7; rest > 1; radix += 2) {
    if (radix * radix > rest) radix = rest;
    for (; rest % radix == 0; rest /= radix) radices_.push_back(radix);
  }
  roots_ = roots_of_unity(half_, half_);
  real_roots_ = roots_of_unity(half_, size);
}

// dst[q + stride·(radix·p + k)] = Σ_j src[q + stride·(p + m·j)]·exp(−2πi·jk/radix) · exp(−2πi·pk/length)
void RealFourier::stage(std::size_t radix, std::size_t length, std::size_t stride, const ComplexNumber* src,
                        ComplexNumber* dst) const {
  const std::size_t m = length / radix, block = stride * m;
  for (std::size_t p = 0; p < m; ++p) {
    const ComplexNumber* const from = src + stride * p;
    ComplexNumber* const to = dst + stride * radix * p;
    if (radix == 2) {
      const ComplexNumber root = roots_[p * stride];
      for (std::size_t q = 0; q < stride; ++q) {
        const ComplexNumber a = from[q], b = from[q + block];
        to[q] = plus(a, b);
        to[q + stride] = product(minus(a, b), root);
      }
    } else if (radix == 4) {
      const ComplexNumber root1 = roots_[p * stride], root2 = roots_[2 * p * stride], root3 = roots_[3 * p * stride];
      for (std::size_t q = 0; q < stride; ++q) {
        const ComplexNumber a = from[q], b = from[q + block], c = from[q + 2 * block], d = from[q + 3 * block];
        const ComplexNumber even = plus(a, c), odd = plus(b, d), first = minus(a, c), bd = minus(b, d);
        const ComplexNumber turned{bd.im, -bd.re};  // −i·(b − d)
        to[q] = plus(even, odd);
        to[q + stride] = product(plus(first, turned), root1);
        to[q + 2 * stride] = product(minus(even, odd), root2);
        to[q + 3 * stride] = product(minus(first, turned), root3);
      }
    } else {
      const std::size_t turn = half_ / radix;
      for (std::size_t k = 0; k < radix; ++k) {
        const ComplexNumber root = roots_[p * k * stride];
        for (std::size_t q = 0; q < stride; ++q) {
          ComplexNumber sum = from[q];
          for (std::size_t j = 1; j < radix; ++j) {
            sum = plus(sum, product(from[q + j * block], roots_[j * k % radix * turn]));
          }
          to[q + k * stride] = product(sum, root);
        }
      }
    }
  }
}

void RealFourier::power(std::span<const float> x, std::span<float> power, Memory& memory) const {
  CONCORD_CHECK(x.size() == size() && power.size() == half_ + 1, ShapeError,
                "a real Fourier transform of {} numbers was given {} and room for {}", size(), x.size(), power.size());
  if (memory.size() < 2 * half_) memory.resize(2 * half_);
  ComplexNumber *src = memory.data(), *dst = memory.data() + half_;
  for (std::size_t j = 0; j < half_; ++j) src[j] = {x[2 * j], x[2 * j + 1]};
  std::size_t length = half_, stride = 1;
  for (const std::size_t radix : radices_) {
    stage(radix, length, stride, src, dst);
    std::swap(src, dst);
    length /= radix;
    stride *= radix;
  }
  const float first = src[0].re + src[0].im, last = src[0].re - src[0].im;
  power[0] = first * first;
  power[half_] = last * last;
  for (std::size_t k = 1; k < half_; ++k) {
    const ComplexNumber a = src[k], b{src[half_ - k].re, -src[half_ - k].im};
    const ComplexNumber even = plus(a, b), odd = product(minus(a, b), real_roots_[k]);
    // X[k] = (even − i·odd)/2
    const float re = 0.5F * (even.re + odd.im), im = 0.5F * (even.im - odd.re);
    power[k] = re * re + im * im;
  }
}

}  // namespace concord::data
