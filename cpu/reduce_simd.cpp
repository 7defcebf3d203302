// Reduction loops, vectorised over a fixed number of lanes, so that the order of sums does not depend on the machine.
#include "reduce_simd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shared/formulas.h"

namespace concord::cpu {
namespace {

using ops::ReduceKind;
constexpr std::int64_t kLanes = 64;
constexpr std::int64_t kPiece = 512;  // 8 values a lane are added up in float
constexpr std::int64_t kRows = 8;     // added up in float

template <class Stored, class Combine>
[[gnu::always_inline]] inline float row_piece(const Stored* src, std::int64_t n, std::int64_t stride, float identity,
                                              Combine combine) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, identity);
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = combine(lanes[j], src[i + j]);
    }
  }
  for (; i < n; ++i) lanes[i % kLanes] = combine(lanes[i % kLanes], src[i * stride]);
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t j = 0; j < width; ++j) lanes[j] = combine(lanes[j], lanes[j + width]);
  }
  return lanes[0];
}

template <class Stored, class Combine>
[[gnu::always_inline]] inline void column_piece(const Stored* src, std::int64_t rows, std::int64_t stride,
                                                std::int64_t lanes, float identity, float* partial, Combine combine) {
  std::fill_n(partial, lanes, identity);
  for (std::int64_t r = 0; r < rows; ++r) {
    const Stored* row = src + r * stride;
#pragma omp simd
    for (std::int64_t j = 0; j < lanes; ++j) partial[j] = combine(partial[j], row[j]);
  }
}

[[gnu::always_inline]] inline double row_squares(const float* src, std::int64_t n, std::int64_t stride) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kLanes; ++j) {
        const auto value = static_cast<double>(src[i + j]);
        lanes[j] += value * value;
      }
    }
  }
  for (; i < n; ++i) {
    const auto value = static_cast<double>(src[i * stride]);
    lanes[i % kLanes] += value * value;
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

// In double, whose range the first factors do not leave where those in the end bring the product back.
[[gnu::always_inline]] inline double row_product_of(const float* src, std::int64_t n, std::int64_t stride) {
  double lanes[kLanes];
  std::fill_n(lanes, kLanes, 1.0);
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] *= static_cast<double>(src[i + j]);
    }
  }
  for (; i < n; ++i) lanes[i % kLanes] *= static_cast<double>(src[i * stride]);
  double total = 1;
  for (const double lane : lanes) total *= lane;
  return total;
}

[[gnu::always_inline]] inline void column_products(const float* src, std::int64_t rows, std::int64_t stride,
                                                   std::int64_t lanes, double* result) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = src + r * stride;
#pragma omp simd
    for (std::int64_t j = 0; j < lanes; ++j) result[j] *= static_cast<double>(row[j]);
  }
}

[[gnu::always_inline]] inline void column_squares(const float* src, std::int64_t rows, std::int64_t stride,
                                                  std::int64_t lanes, double* result) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = src + r * stride;
#pragma omp simd
    for (std::int64_t j = 0; j < lanes; ++j) {
      const auto value = static_cast<double>(row[j]);
      result[j] += value * value;
    }
  }
}

constexpr auto kAdd = [](float a, float b) { return a + b; };
constexpr auto kGreater = [](float a, float b) { return concord_maximum(a, b); };
constexpr auto kLesser = [](float a, float b) { return concord_minimum(a, b); };

}  // namespace

double reduce_identity(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::maximum: return -static_cast<double>(INFINITY);
    case ReduceKind::minimum: return static_cast<double>(INFINITY);
    case ReduceKind::product: return 1;
    default: return 0;
  }
}

double reduce_combine(ReduceKind kind, double a, double b) {
  switch (kind) {
    case ReduceKind::maximum: return a >= b || a != a ? a : b;
    case ReduceKind::minimum: return a <= b || a != a ? a : b;
    case ReduceKind::product: return a * b;
    default: return a + b;
  }
}

float reduce_finished(ReduceKind kind, double result) {
  if (kind != ReduceKind::norm) return static_cast<float>(result);
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double root = std::sqrt(result);
  return static_cast<float>(std::isfinite(result) && root > kLargest ? kLargest : root);
}

CONCORD_SIMD double reduce_row(ReduceKind kind, const float* src, std::int64_t n, std::int64_t stride) {
  if (kind == ReduceKind::norm) return row_squares(src, n, stride);
  if (kind == ReduceKind::product) return row_product_of(src, n, stride);
  double result = reduce_identity(kind);
  for (std::int64_t i = 0; i < n; i += kPiece) {
    const float* piece = src + i * stride;
    const std::int64_t size = std::min(kPiece, n - i);
    float value = 0;
    switch (kind) {
      case ReduceKind::maximum: value = row_piece(piece, size, stride, -INFINITY, kGreater); break;
      case ReduceKind::minimum: value = row_piece(piece, size, stride, INFINITY, kLesser); break;
      default: value = row_piece(piece, size, stride, 0.0F, kAdd); break;
    }
    result = reduce_combine(kind, result, static_cast<double>(value));
  }
  return result;
}

CONCORD_SIMD void reduce_columns(ReduceKind kind, const float* src, std::int64_t rows, std::int64_t stride,
                                 std::int64_t lanes, double* result) {
  if (kind == ReduceKind::norm) return column_squares(src, rows, stride, lanes, result);
  if (kind == ReduceKind::product) return column_products(src, rows, stride, lanes, result);
  float partial[kReduceLanes];
  for (std::int64_t r = 0; r < rows; r += kRows) {
    const float* piece = src + r * stride;
    const std::int64_t count = std::min(kRows, rows - r);
    switch (kind) {
      case ReduceKind::maximum: column_piece(piece, count, stride, lanes, -INFINITY, partial, kGreater); break;
      case ReduceKind::minimum: column_piece(piece, count, stride, lanes, INFINITY, partial, kLesser); break;
      default: column_piece(piece, count, stride, lanes, 0.0F, partial, kAdd); break;
    }
    for (std::int64_t j = 0; j < lanes; ++j) {
      result[j] = reduce_combine(kind, result[j], static_cast<double>(partial[j]));
    }
  }
}

CONCORD_SIMD double reduce_row(ReduceKind, const Bf16* src, std::int64_t n, std::int64_t stride) {
  double result = 0;
  for (std::int64_t i = 0; i < n; i += kPiece) {
    result += static_cast<double>(row_piece(src + i * stride, std::min(kPiece, n - i), stride, 0.0F, kAdd));
  }
  return result;
}

CONCORD_SIMD void reduce_columns(ReduceKind, const Bf16* src, std::int64_t rows, std::int64_t stride,
                                 std::int64_t lanes, double* result) {
  float partial[kReduceLanes];
  for (std::int64_t r = 0; r < rows; r += kRows) {
    column_piece(src + r * stride, std::min(kRows, rows - r), stride, lanes, 0.0F, partial, kAdd);
    for (std::int64_t j = 0; j < lanes; ++j) result[j] += static_cast<double>(partial[j]);
  }
}

}  // namespace concord::cpu
