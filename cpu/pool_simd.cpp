// Pooling loops: for each output pixel, the cells of its window that lie in the image.
#include "pool_simd.hpp"

#include <limits>
#include <type_traits>

namespace concord::cpu {
namespace {

// The pixels of a window along one dimension that lie in the image, `step` apart, and how many there are with padding.
struct Span {
  std::int64_t begin, end, step, padded;
};

[[gnu::always_inline]] inline Span span_of(const PoolAxis& axis, std::int64_t o) {
  const std::int64_t begin = axis.begin(o), end = axis.end(o), step = axis.dilation;
  const std::int64_t skipped = begin < 0 ? (step - 1 - begin) / step * step : 0;
  return {begin + skipped, std::min(end, axis.src), step, std::min(end, axis.src + axis.padding) - begin};
}

struct Window {
  Span z, y, x;
  float divisor;  // of an average
};

// function(window, output pixel's offset) over all output pixels.
template <class Function>
[[gnu::always_inline]] inline void for_windows(const PoolImages& s, Function function) {
  Window v{};
  const auto inside = [](const Span& span) { return span.end - span.begin; };
  std::int64_t pixel = 0;
  for (std::int64_t z = 0; z < s.axes[0].dst; ++z) {
    v.z = span_of(s.axes[0], z);
    for (std::int64_t y = 0; y < s.axes[1].dst; ++y) {
      v.y = span_of(s.axes[1], y);
      for (std::int64_t x = 0; x < s.axes[2].dst; ++x) {
        v.x = span_of(s.axes[2], x);
        const std::int64_t count =
            s.count_padding ? v.z.padded * v.y.padded * v.x.padded : inside(v.z) * inside(v.y) * inside(v.x);
        v.divisor = static_cast<float>(s.divisor != 0 ? s.divisor : count);
        function(v, pixel * s.lanes);
        ++pixel;
      }
    }
  }
}

// function(pixel's offset, pixel's place in the image) over the pixels of a window.
template <class Function>
[[gnu::always_inline]] inline void for_cells(const PoolImages& s, const Window& v, Function function) {
  for (std::int64_t z = v.z.begin; z < v.z.end; z += v.z.step) {
    for (std::int64_t y = v.y.begin; y < v.y.end; y += v.y.step) {
      const std::int64_t row = (z * s.axes[1].src + y) * s.axes[2].src;
      for (std::int64_t x = v.x.begin; x < v.x.end; x += v.x.step) {
        function((row + x) * s.lanes, static_cast<std::int32_t>(row + x));
      }
    }
  }
}

// function(lane, size) over all lanes in blocks of kBlock, the last two overlapping.
template <std::int64_t kBlock, class Function>
[[gnu::always_inline]] inline void for_blocks_of(std::int64_t lanes, Function function) {
  for (std::int64_t lane = 0; lane < lanes; lane += kBlock) {
    function(std::min(lane, lanes - kBlock), std::integral_constant<std::int64_t, kBlock>());
  }
}

// The same in the largest blocks that the lanes fill. What the function does to a lane twice must be the same as once.
template <class Function>
[[gnu::always_inline]] inline void for_blocks(std::int64_t lanes, Function function) {
  if (lanes >= 16) return for_blocks_of<16>(lanes, function);
  if (lanes >= 8) return for_blocks_of<8>(lanes, function);
  if (lanes >= 4) return for_blocks_of<4>(lanes, function);
  for_blocks_of<1>(lanes, function);
}

}  // namespace

CONCORD_SIMD void pool_max_forward(const PoolImages& s, const float* src, float* dst, std::int32_t* indices) {
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
              std::copy_n(winner, kSize, indices + pixel + lane);
            });
      });
}

CONCORD_SIMD void pool_max_backward(const PoolImages& s, const float* diff_dst, const std::int32_t* indices,
                                    float* diff_src) {
  const std::int64_t lanes = s.lanes;
  if (s.tiles_exactly()) {
    for_windows(
        s, [&](const Window& v, std::int64_t pixel) __attribute__((always_inline)) {
          for_blocks(
              lanes, [&](std::int64_t lane, auto size) __attribute__((always_inline)) {
                constexpr std::int64_t kSize = decltype(size)::value;
                const float* diff = diff_dst + pixel + lane;
                const std::int32_t* winner = indices + pixel + lane;
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
        const std::int32_t* winner = indices + pixel;
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
