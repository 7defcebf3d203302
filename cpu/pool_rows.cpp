// Pooling loops: for each output pixel, the cells of its window that lie in the image.
#include "pool_rows.hpp"

#include <limits>
#include <type_traits>

namespace concord::cpu {
namespace {

// The part of a window inside the image, and what an average divides by.
struct Window {
  std::int64_t row_begin, row_end, column_begin, column_end;  // pixels
  std::int64_t top, left;                                     // of the whole window; may be negative
  float divisor;
};

[[gnu::always_inline]] inline Window window_of(const PoolImages& s, std::int64_t y, std::int64_t x) {
  Window v{};
  v.top = y * s.sh - s.ph;
  v.left = x * s.sw - s.pw;
  v.row_begin = std::max<std::int64_t>(v.top, 0);
  v.column_begin = std::max<std::int64_t>(v.left, 0);
  v.row_end = std::min(v.top + s.kh, s.h);
  v.column_end = std::min(v.left + s.kw, s.w);
  const std::int64_t padded =
      (std::min(v.top + s.kh, s.h + s.ph) - v.top) * (std::min(v.left + s.kw, s.w + s.pw) - v.left);
  const std::int64_t inside = (v.row_end - v.row_begin) * (v.column_end - v.column_begin);
  v.divisor = static_cast<float>(s.count_padding ? padded : inside);
  return v;
}

// function(window, output pixel's offset) over all output pixels.
template <class Function>
[[gnu::always_inline]] inline void for_windows(const PoolImages& s, Function function) {
  for (std::int64_t y = 0; y < s.oh; ++y) {
    for (std::int64_t x = 0; x < s.ow; ++x) function(window_of(s, y, x), (y * s.ow + x) * s.lanes);
  }
}

// function(cell's offset in the image, cell's number in the window) over the cells of a window in the image.
template <class Function>
[[gnu::always_inline]] inline void for_cells(const PoolImages& s, const Window& v, Function function) {
  for (std::int64_t r = v.row_begin; r < v.row_end; ++r) {
    for (std::int64_t c = v.column_begin; c < v.column_end; ++c) {
      function((r * s.w + c) * s.lanes, static_cast<std::int32_t>((r - v.top) * s.kw + (c - v.left)));
    }
  }
}

// function(lane, size) over all lanes in blocks of 16, the last two overlapping, or in blocks of one when there are
// fewer. What it does to a lane twice must be the same as once.
template <class Function>
[[gnu::always_inline]] inline void for_blocks(std::int64_t lanes, Function function) {
  constexpr std::int64_t kBlock = 16;
  if (lanes < kBlock) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) function(lane, std::integral_constant<std::int64_t, 1>());
    return;
  }
  for (std::int64_t lane = 0; lane < lanes; lane += kBlock) {
    function(std::min(lane, lanes - kBlock), std::integral_constant<std::int64_t, kBlock>());
  }
}

}  // namespace

CONCORD_SIMD void pool_max_forward(const PoolImages& s, const float* src, float* dst, std::int32_t* argmax) {
  for_windows(
      s, [&](const Window& v, std::int64_t pixel) __attribute__((always_inline)) {
        for_blocks(
            s.lanes, [&](std::int64_t lane, auto size) __attribute__((always_inline)) {
              constexpr std::int64_t kSize = decltype(size)::value;
              float best[kSize];
              std::int32_t winner[kSize];
              std::fill_n(best, kSize, -std::numeric_limits<float>::infinity());
              std::fill_n(winner, kSize, -1);
              for_cells(
                  s, v, [&](std::int64_t cell, std::int32_t number) __attribute__((always_inline)) {
                    const float* value = src + cell + lane;
#pragma omp simd
                    for (std::int64_t i = 0; i < kSize; ++i) {
                      // Greater, or NaN, or the first; but nothing follows a NaN.
                      const bool wins = (!(value[i] <= best[i]) & (best[i] == best[i])) | (winner[i] < 0);
                      best[i] = wins ? value[i] : best[i];
                      winner[i] = wins ? number : winner[i];
                    }
                  });
              std::copy_n(best, kSize, dst + pixel + lane);
              std::copy_n(winner, kSize, argmax + pixel + lane);
            });
      });
}

CONCORD_SIMD void pool_max_backward(const PoolImages& s, const float* diff_dst, const std::int32_t* argmax,
                                    float* diff_src) {
  const std::int64_t lanes = s.lanes;
  if (s.tiles_exactly()) {
    for_windows(
        s, [&](const Window& v, std::int64_t pixel) __attribute__((always_inline)) {
          for_blocks(
              lanes, [&](std::int64_t lane, auto size) __attribute__((always_inline)) {
                constexpr std::int64_t kSize = decltype(size)::value;
                const float* diff = diff_dst + pixel + lane;
                const std::int32_t* winner = argmax + pixel + lane;
                for_cells(
                    s, v, [&](std::int64_t cell, std::int32_t number) __attribute__((always_inline)) {
                      float* target = diff_src + cell + lane;
#pragma omp simd
                      for (std::int64_t i = 0; i < kSize; ++i) target[i] = winner[i] == number ? diff[i] : 0.0F;
                    });
              });
        });
    return;
  }
  std::fill_n(diff_src, s.src_elements(), 0.0F);
  for_windows(
      s, [&](const Window& v, std::int64_t pixel) __attribute__((always_inline)) {
        const float* diff = diff_dst + pixel;
        const std::int32_t* winner = argmax + pixel;
        for_cells(
            s, v, [&](std::int64_t cell, std::int32_t number) __attribute__((always_inline)) {
              float* target = diff_src + cell;
#pragma omp simd
              for (std::int64_t i = 0; i < lanes; ++i) target[i] += winner[i] == number ? diff[i] : 0.0F;
            });
      });
}

CONCORD_SIMD void pool_avg_forward(const PoolImages& s, const float* src, float* dst) {
  const std::int64_t lanes = s.lanes;
  for_windows(
      s, [&](const Window& v, std::int64_t pixel) __attribute__((always_inline)) {
        float* sum = dst + pixel;
        std::fill_n(sum, lanes, 0.0F);
        for_cells(
            s, v, [&](std::int64_t cell, std::int32_t) __attribute__((always_inline)) {
              const float* value = src + cell;
#pragma omp simd
              for (std::int64_t i = 0; i < lanes; ++i) sum[i] += value[i];
            });
#pragma omp simd
        for (std::int64_t i = 0; i < lanes; ++i) sum[i] /= v.divisor;
      });
}

CONCORD_SIMD void pool_avg_backward(const PoolImages& s, const float* diff_dst, float* diff_src) {
  const std::int64_t lanes = s.lanes;
  std::fill_n(diff_src, s.src_elements(), 0.0F);
  for_windows(
      s, [&](const Window& v, std::int64_t pixel) __attribute__((always_inline)) {
        const float* diff = diff_dst + pixel;
        for_cells(
            s, v, [&](std::int64_t cell, std::int32_t) __attribute__((always_inline)) {
              float* target = diff_src + cell;
#pragma omp simd
              for (std::int64_t i = 0; i < lanes; ++i) target[i] += diff[i] / v.divisor;
            });
      });
}

}  // namespace concord::cpu
