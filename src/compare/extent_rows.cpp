// Each loop first takes all values for finite; where they are not, a careful one follows.
#include "concord/compare/extent_rows.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace concord::rows {
namespace {

constexpr std::size_t kLanes = 16;  // sums side by side, so that the loop needs no order and becomes vector code
constexpr double kMost = std::numeric_limits<float>::max();

std::uint32_t finite_magnitude(float value) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
  return magnitude < 0x7f800000U ? magnitude : 0;
}

double square(std::uint32_t magnitude) {
  const double value = std::bit_cast<float>(magnitude);
  return value * value;
}

/// Where every difference is a finite number; infinite where one is not. Rounded as Number is.
template <class Number>
[[gnu::always_inline]] inline double finite_difference(const float* a, const Number* b, std::size_t whole) {
  std::array<Number, kLanes> most{}, zeros{};
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const Number difference = std::abs(static_cast<Number>(a[i + k]) - b[i + k]);
      zeros[k] += difference * 0;  // NaN from what is not finite
      most[k] = most[k] < difference ? difference : most[k];
    }
  }
  const double largest = *std::ranges::max_element(most);
  const bool is_finite = std::ranges::all_of(zeros, [](Number zero) { return zero == 0; });
  return is_finite && largest <= kMost ? largest : INFINITY;
}

// Overloads, since a template cannot be compiled for several vector widths.
CONCORD_SIMD double finite_differences(const float* a, const float* b, std::size_t whole) {
  return finite_difference(a, b, whole);
}
CONCORD_SIMD double finite_differences_f64(const float* a, const double* b, std::size_t whole) {
  return finite_difference(a, b, whole);
}

double as_f32_range(double value) { return std::abs(value) > kMost ? std::copysign(INFINITY, value) : value; }
double as_f32_range(float value) { return value; }

template <class Number>
double careful_difference(std::span<const float> a, std::span<const Number> b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = as_f32_range(b[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y);
    most = std::isnan(difference) ? INFINITY : std::max(most, difference);
  }
  return most;
}

template <class Number>
double difference_of(std::span<const float> a, std::span<const Number> b, auto&& of_whole) {
  const std::size_t whole = a.size() / kLanes * kLanes;
  const double most = of_whole(a.data(), b.data(), whole);
  if (std::isinf(most)) return careful_difference(a, b);
  return std::max(most, careful_difference(a.subspan(whole), b.subspan(whole)));
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

double difference(std::span<const float> a, std::span<const float> b) {
  return difference_of(a, b, finite_differences);
}

double difference(std::span<const float> a, std::span<const double> b) {
  return difference_of(a, b, finite_differences_f64);
}

}  // namespace concord::rows
