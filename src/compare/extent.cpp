// Extents and differences, block by block; their results are joined in the order of the blocks.
#include "concord/compare/extent.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "concord/core/parallel.hpp"

namespace concord {
namespace {

constexpr std::size_t kLanes = 16;  // sums side by side, so that the loop needs no order and becomes vector code

struct Sum {
  float largest = 0;
  double squares = 0;
};

Sum sum_of(std::span<const float> values) {
  std::array<std::uint32_t, kLanes> largest{};
  std::array<double, kLanes> squares{};
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    const std::size_t lanes = std::min(kLanes, values.size() - i);
    std::array<float, kLanes> lane{};
    std::memcpy(lane.data(), values.data() + i, lanes * sizeof(float));
    for (std::size_t k = 0; k < kLanes; ++k) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(lane[k]) & 0x7fffffffU;
      const std::uint32_t finite = magnitude < 0x7f800000U ? magnitude : 0;
      largest[k] = std::max(largest[k], finite);
      const double value = std::bit_cast<float>(finite);
      squares[k] += value * value;
    }
  }
  Sum sum{std::bit_cast<float>(*std::ranges::max_element(largest)), 0};
  for (const double part : squares) sum.squares += part;
  return sum;
}

double as_f32_range(double value) {
  return std::abs(value) > std::numeric_limits<float>::max() ? std::copysign(INFINITY, value) : value;
}

double as_f32_range(float value) { return value; }

/// Where every difference is a finite number; nothing where one is not.
template <class Number>
std::optional<double> finite_difference(std::span<const float> a, std::span<const Number> b) {
  std::array<double, kLanes> most{};
  bool is_finite = true;
  const std::size_t whole = a.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const double difference = std::abs(static_cast<double>(a[i + k]) - static_cast<double>(b[i + k]));
      is_finite &= difference <= std::numeric_limits<float>::max();
      most[k] = most[k] < difference ? difference : most[k];
    }
  }
  if (!is_finite) return std::nullopt;
  return *std::ranges::max_element(most);
}

// NaN beside NaN and equal infinities do not differ.
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
double difference_of(std::span<const float> a, std::span<const Number> b) {
  const std::optional<double> most = finite_difference(a, b);
  if (!most) return careful_difference(a, b);
  const std::size_t whole = a.size() / kLanes * kLanes;
  return std::max(*most, careful_difference(a.subspan(whole), b.subspan(whole)));
}

template <class Number>
double blockwise_difference(std::span<const float> x, std::span<const Number> y) {
  std::vector<double> parts(blocks_of(x.size()));
  for_blocks(x.size(), [&](std::size_t i, std::size_t first, std::size_t count) {
    parts[i] = difference_of(x.subspan(first, count), y.subspan(first, count));
  });
  return parts.empty() ? 0 : *std::ranges::max_element(parts);
}

}  // namespace

Extent extent_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  std::vector<Sum> sums(blocks_of(values.size()));
  for_blocks(values.size(), [&](std::size_t i, std::size_t first, std::size_t count) {
    sums[i] = sum_of(values.subspan(first, count));
  });
  Sum total;
  for (const Sum& sum : sums) {
    total.largest = std::max(total.largest, sum.largest);
    total.squares += sum.squares;
  }
  return {static_cast<double>(total.largest),
          std::sqrt(total.squares / static_cast<double>(std::max<std::size_t>(values.size(), 1)))};
}

double largest_rms_along(const Tensor& tensor, std::size_t axis) {
  const auto values = tensor.values<float>();
  const auto dims = tensor.shape().dims();
  const auto length = static_cast<std::size_t>(dims[axis]);
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < dims.size(); ++d) inner *= static_cast<std::size_t>(dims[d]);
  double largest = 0;
  std::vector<double> squares(inner);
  for (auto rest = values; !rest.empty(); rest = rest.subspan(length * inner)) {
    std::ranges::fill(squares, 0);
    for (std::size_t k = 0; k < length; ++k) {
      const auto row = rest.subspan(k * inner, inner);
      for (std::size_t i = 0; i < inner; ++i) {
        const double value = std::isfinite(row[i]) ? row[i] : 0;
        squares[i] += value * value;
      }
    }
    largest = std::max(largest, *std::ranges::max_element(squares));
  }
  return std::sqrt(largest / static_cast<double>(std::max<std::size_t>(length, 1)));
}

double largest_difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::f32) return std::ranges::equal(a.bytes(), b.bytes()) ? 0 : INFINITY;
  return blockwise_difference(a.values<float>(), b.values<float>());
}

double largest_difference(const Tensor& a, std::span<const double> b) {
  return blockwise_difference(a.values<float>(), b);
}

}  // namespace concord
