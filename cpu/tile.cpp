// Tile loops: one vectorised loop a scalar function, in three forms (which arguments are single numbers).
#include "tile.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "bf16_simd.hpp"
#include "concord/core/error.hpp"
#include "shared/formulas.h"

namespace concord::cpu {
namespace {

using F = ScalarFunction;

// Inlined by force, so that the loops become part of each version of the function that calls them.
#define INLINED __attribute__((always_inline))

template <class Function>
[[gnu::always_inline]] inline void loop(Function function, const TileOperand* arguments, float* dst, std::int64_t n) {
  const float* a = arguments[0].data;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dst[i] = function(a[i]);
}

template <class Function>
[[gnu::always_inline]] inline void loop2(Function function, const TileOperand* arguments, float* dst, std::int64_t n) {
  const float* a = arguments[0].data;
  const float* b = arguments[1].data;
  if (arguments[1].scalar) {
    const float b0 = *b;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = function(a[i], b0);
  } else if (arguments[0].scalar) {
    const float a0 = *a;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = function(a0, b[i]);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = function(a[i], b[i]);
  }
}

[[gnu::always_inline]] inline bool are_small(const float* a, std::int64_t n) {
  int others = 0;
#pragma omp simd reduction(| : others)
  for (std::int64_t i = 0; i < n; ++i) others |= concord_is_small(a[i]) ? 0 : 1;
  return others == 0;
}

[[gnu::always_inline]] inline void loop_select(const TileOperand* arguments, float* dst, std::int64_t n) {
  const float* condition = arguments[0].data;
  const float* a = arguments[1].data;
  const float* b = arguments[2].data;
  if (arguments[1].scalar && arguments[2].scalar) {
    const float a0 = *a, b0 = *b;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = condition[i] != 0 ? a0 : b0;
  } else if (arguments[2].scalar) {
    const float b0 = *b;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = condition[i] != 0 ? a[i] : b0;
  } else if (arguments[1].scalar) {
    const float a0 = *a;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = condition[i] != 0 ? a0 : b[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) dst[i] = condition[i] != 0 ? a[i] : b[i];
  }
}

template <class T>
[[gnu::always_inline]] inline void load(const std::byte* src, std::int64_t stride, float* dst, std::int64_t n) {
  const T* from = reinterpret_cast<const T*>(src);
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<float>(from[i]);
  } else if (stride == 0) {
    std::fill_n(dst, n, static_cast<float>(*from));
  } else {
    for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<float>(from[i * stride]);
  }
}

template <class T>
[[gnu::always_inline]] inline void store(const TileOperand& src, std::byte* dst, std::int64_t n) {
  T* to = reinterpret_cast<T*>(dst);
  const std::int64_t step = src.scalar ? 0 : 1;
  for (std::int64_t i = 0; i < n; ++i) {
    // In double, where both limits of i32 are exact; NaN becomes the lower one.
    constexpr double kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    const double value = src.data[i * step];
    to[i] = static_cast<T>(value > kLow ? std::min(value, kHigh) : kLow);
  }
}

}  // namespace

CONCORD_SIMD void tile_apply(ScalarFunction function, const TileOperand* arguments, float* dst, std::int64_t n) {
  const auto one = [&](auto f) INLINED { loop(f, arguments, dst, n); };
  const auto two = [&](auto f) INLINED { loop2(f, arguments, dst, n); };
  if (function == F::sin && are_small(arguments[0].data, n)) {
    return one([](float a) INLINED { return concord_sin_of_small(a); });
  }
  if (function == F::cos && are_small(arguments[0].data, n)) {
    return one([](float a) INLINED { return concord_cos_of_small(a); });
  }
  switch (function) {
    case F::input:
    case F::constant:
    case F::coordinate: throw Error("a leaf has no tile loop");
    case F::add: return two([](float a, float b) INLINED { return a + b; });
    case F::subtract: return two([](float a, float b) INLINED { return a - b; });
    case F::multiply: return two([](float a, float b) INLINED { return a * b; });
    case F::divide: return two([](float a, float b) INLINED { return a / b; });
    case F::negate: return one([](float a) INLINED { return -a; });
    case F::less: return two([](float a, float b) INLINED { return a < b ? 1.0F : 0.0F; });
    case F::less_equal: return two([](float a, float b) INLINED { return a <= b ? 1.0F : 0.0F; });
    case F::equal: return two([](float a, float b) INLINED { return a == b ? 1.0F : 0.0F; });
    case F::select: return loop_select(arguments, dst, n);
#define CONCORD_CASE(name, ...) \
  case F::name: return one([](float a) INLINED { return concord_##name(a); });
      CONCORD_UNARY_FUNCTIONS(CONCORD_CASE)
#undef CONCORD_CASE
#define CONCORD_CASE(name, ...) \
  case F::name: return two([](float a, float b) INLINED { return concord_##name(a, b); });
      CONCORD_BINARY_FUNCTIONS(CONCORD_CASE)
#undef CONCORD_CASE
#undef INLINED
  }
}

CONCORD_SIMD void tile_load(DType type, const std::byte* src, std::int64_t stride, float* dst, std::int64_t n) {
  switch (type) {
    case DType::f32: return load<float>(src, stride, dst, n);
    case DType::i32: return load<std::int32_t>(src, stride, dst, n);
    case DType::u8: return load<std::uint8_t>(src, stride, dst, n);
    case DType::bf16: return load<Bf16>(src, stride, dst, n);
    default: throw NotSupported("half-precision tiles");
  }
}

CONCORD_SIMD void tile_store(const TileOperand& src, DType type, std::byte* dst, std::int64_t n) {
  switch (type) {
    case DType::f32:
      if (src.scalar) {
        std::fill_n(reinterpret_cast<float*>(dst), n, *src.data);
      } else {
        std::memmove(dst, src.data, static_cast<std::size_t>(n) * sizeof(float));
      }
      return;
    case DType::i32: return store<std::int32_t>(src, dst, n);
    case DType::u8: return store<std::uint8_t>(src, dst, n);
    case DType::bf16:
      if (src.scalar) {
        std::fill_n(reinterpret_cast<Bf16*>(dst), n, Bf16{bf16_bits(*src.data)});
      } else {
        bf16_store(src.data, reinterpret_cast<Bf16*>(dst), n);
      }
      return;
    default: throw NotSupported("half-precision tiles");
  }
}

}  // namespace concord::cpu
