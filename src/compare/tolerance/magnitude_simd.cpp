// Each loop first takes all values for finite; where they are not, a careful one follows.
#include "concord/compare/tolerance/magnitude_simd.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace concord::rows {
namespace {

constexpr std::size_t kLanes = 16;  // independent sums, so that the compiler can vectorise the loop
constexpr double kMost = std::numeric_limits<float>::max();
constexpr double kUlpsOfOne = 0x1p23;  // from 1 to 2
constexpr std::size_t kChunk = 1024;   // elements among which the worst is looked for, once the chunk is known

std::uint32_t finite_magnitude(float value) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
  return magnitude < 0x7f800000U ? magnitude : 0;
}

double square(std::uint32_t magnitude) {
  const double value = std::bit_cast<float>(magnitude);
  return value * value;
}

double as_f32_range(double value) { return std::abs(value) > kMost ? std::copysign(INFINITY, value) : value; }
double as_f32_range(float value) { return value; }

/// 1 to 2: what is left of a number without its power of two.
float mantissa(float size) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(size) & 0x7fffffU) | 0x3f800000U);
}
double mantissa(double size) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(size) & 0xfffffffffffffU) | 0x3ff0000000000000U);
}

template <class Number>
struct Worst {
  Number largest, relative, ulps;  // infinite, all of them, where a difference is no finite number
};

/// Rounded as Number is.
template <class Number>
[[gnu::always_inline]] inline Worst<Number> finite_elements_of(const float* a, const Number* b, std::size_t whole,
                                                               Number least) {
  std::array<Number, kLanes> largest{}, relative{}, ulps{}, zeros{};
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const Number right = b[i + k], size = std::abs(right) < least ? least : std::abs(right);
      const Number difference = std::abs(static_cast<Number>(a[i + k]) - right), part = difference / size;
      const Number in_ulps = part * mantissa(size);
      zeros[k] += part * static_cast<float>(right) * 0;  // NaN from what is no finite f32 number
      largest[k] = largest[k] < difference ? difference : largest[k];
      relative[k] = relative[k] < part ? part : relative[k];
      ulps[k] = ulps[k] < in_ulps ? in_ulps : ulps[k];
    }
  }
  const Number most = std::ranges::max(std::ranges::max(largest), std::ranges::max(ulps));
  if (!(most <= static_cast<Number>(kMost)) || !std::ranges::all_of(zeros, [](Number zero) { return zero == 0; })) {
    constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
    return {kInfinity, kInfinity, kInfinity};
  }
  return {std::ranges::max(largest), std::ranges::max(relative), std::ranges::max(ulps)};
}

// Overloads, since a template cannot be compiled for several vector widths.
CONCORD_SIMD Worst<float> finite_elements(const float* a, const float* b, std::size_t whole, float least) {
  return finite_elements_of(a, b, whole, least);
}
CONCORD_SIMD Worst<double> finite_elements_f64(const float* a, const double* b, std::size_t whole, double least) {
  return finite_elements_of(a, b, whole, least);
}

template <class Number>
Elements careful_elements(std::span<const float> a, std::span<const Number> b, double least) {
  Elements all;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = as_f32_range(b[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const bool is_finite = std::isfinite(x) && std::isfinite(y);
    const double size = std::max(std::abs(y), least), difference = is_finite ? std::abs(x - y) : INFINITY;
    const double relative = is_finite ? difference / size : INFINITY;
    const double ulps = is_finite ? relative * mantissa(size) * kUlpsOfOne : INFINITY;
    if (ulps > all.ulps) all.at = i;
    all.largest = std::max(all.largest, difference);
    all.relative = std::max(all.relative, relative);
    all.ulps = std::max(all.ulps, ulps);
  }
  return all;
}

/// Works in chunks. Only the chunk with the worst element is read again, to find its index.
template <class Number>
Elements elements_of(std::span<const float> a, std::span<const Number> b, double least, auto&& of_whole) {
  least = std::clamp<double>(least, std::numeric_limits<float>::min(), kMost);
  Elements all;
  std::size_t worst = a.size();  // chunk's first element
  double most = 0;               // ULPs there, without their factor
  const auto add = [&](double largest, double relative, double ulps, std::size_t first) {
    all.largest = std::max(all.largest, largest);
    all.relative = std::max(all.relative, relative);
    if (ulps > most) worst = first;
    most = std::max(most, ulps);
  };
  for (std::size_t first = 0; first < a.size(); first += kChunk) {
    const auto x = a.subspan(first, std::min(kChunk, a.size() - first));
    const auto y = b.subspan(first, x.size());
    const std::size_t whole = x.size() / kLanes * kLanes;
    const auto part = of_whole(x.data(), y.data(), whole, static_cast<Number>(least));
    const bool is_finite = std::isfinite(part.largest);
    if (is_finite) add(part.largest, part.relative, part.ulps, first);
    const Elements rest =
        is_finite ? careful_elements(x.subspan(whole), y.subspan(whole), least) : careful_elements(x, y, least);
    add(rest.largest, rest.relative, rest.ulps / kUlpsOfOne, first);
  }
  if (worst == a.size()) return all;
  const std::size_t size = std::min(kChunk, a.size() - worst);
  const Elements chunk = careful_elements(a.subspan(worst, size), b.subspan(worst, size), least);
  all.at = worst + chunk.at;
  all.ulps = chunk.ulps;
  return all;
}

template <class Number>
double difference_of(std::span<const float> a, std::span<const Number> b, auto&& of_whole) {
  const std::size_t whole = a.size() / kLanes * kLanes;
  const double most = of_whole(a.data(), b.data(), whole, Number{1}).largest;
  if (std::isinf(most)) return careful_elements(a, b, 1).largest;
  return std::max(most, careful_elements(a.subspan(whole), b.subspan(whole), 1).largest);
}

}  // namespace

CONCORD_SIMD Sum sum(std::span<const float> values) {
  std::array<std::uint32_t, kLanes> largest{};
  std::array<double, kLanes> squares{};
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const std::uint32_t magnitude = finite_magnitude(values[i + k]);
      largest[k] = std::max(largest[k], magnitude);
      squares[k] += square(magnitude);
    }
  }
  for (std::size_t k = 0; whole + k < values.size(); ++k) {
    const std::uint32_t magnitude = finite_magnitude(values[whole + k]);
    largest[k] = std::max(largest[k], magnitude);
    squares[k] += square(magnitude);
  }
  Sum total{std::bit_cast<float>(*std::ranges::max_element(largest)), 0};
  for (const double part : squares) total.squares += part;
  return total;
}

CONCORD_SIMD void add_squares(std::span<const float> values, std::span<double> squares) {
  for (std::size_t i = 0; i < values.size(); ++i) squares[i] += square(finite_magnitude(values[i]));
}

double difference(std::span<const float> a, std::span<const float> b) { return difference_of(a, b, finite_elements); }

double difference(std::span<const float> a, std::span<const double> b) {
  return difference_of(a, b, finite_elements_f64);
}

Elements elements(std::span<const float> a, std::span<const float> b, double least) {
  return elements_of(a, b, least, finite_elements);
}

Elements elements(std::span<const float> a, std::span<const double> b, double least) {
  return elements_of(a, b, least, finite_elements_f64);
}

}  // namespace concord::rows
