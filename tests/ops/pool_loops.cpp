// Pooling in plain loops.
#include "ops/pool_loops.hpp"

#include <algorithm>
#include <cmath>

namespace concord::test {
namespace {

/// The pixels along one axis, and their number with padding.
std::pair<std::vector<std::int64_t>, std::int64_t> along(const ops::PoolSizes& s, std::size_t axis, std::int64_t o) {
  const PoolOptions& p = s.options;
  const std::int64_t size = s.src[axis];
  std::vector<std::int64_t> pixels;
  if (p.is_adaptive()) {
    const auto part = [&](std::int64_t i) { return static_cast<double>(i * size) / static_cast<double>(s.dst[axis]); };
    for (auto i = static_cast<std::int64_t>(std::floor(part(o))); static_cast<double>(i) < std::ceil(part(o + 1)); ++i)
      pixels.push_back(i);
    return {pixels, static_cast<std::int64_t>(pixels.size())};
  }
  const std::int64_t first = o * p.stride[axis] - p.padding[axis];
  for (std::int64_t k = 0; k < p.kernel[axis]; ++k) {
    const std::int64_t pixel = first + k * p.dilation[axis];
    if (pixel >= 0 && pixel < size) pixels.push_back(pixel);
  }
  return {pixels, std::min(first + p.kernel[axis], size + p.padding[axis]) - first};
}

double divisor_of(const Window& w, const PoolOptions& options) {
  if (options.divisor != 0) return static_cast<double>(options.divisor);
  return options.count_include_pad ? static_cast<double>(w.area) : static_cast<double>(w.places.size());
}

}  // namespace

Window window(const ops::PoolSizes& s, std::int64_t place) {
  const auto [z, depth] = along(s, 0, place / (s.dst[1] * s.dst[2]));
  const auto [y, height] = along(s, 1, place / s.dst[2] % s.dst[1]);
  const auto [x, width] = along(s, 2, place % s.dst[2]);
  Window w{{}, depth * height * width};
  for (const std::int64_t i : z)
    for (const std::int64_t j : y)
      for (const std::int64_t k : x) w.places.push_back((i * s.src[1] + j) * s.src[2] + k);
  return w;
}

Array empty_result(const Shape& src, const PoolOptions& options) {
  const ops::PoolSizes s = ops::pool_sizes(src, options);
  return Array(ops::with_spatial(s.n, s.c, s.dst, options.rank));
}

std::int64_t winner(const Array& src, const Window& w, std::int64_t channel) {
  std::int64_t best = w.places.front();
  for (const std::int64_t i : w.places) {
    if (src.values[at(channel + i)] > src.values[at(channel + best)]) best = i;
  }
  return best;
}

std::vector<Array> max_pool_loops(const Array& src, const PoolOptions& options) {
  Array values = empty_result(src.shape, options), indices = values;
  each_window(src.shape, options, [&](const Window& w, std::int64_t channel, std::int64_t i) {
    const std::int64_t best = winner(src, w, channel);
    values.values[at(i)] = src.values[at(channel + best)];
    indices.values[at(i)] = static_cast<double>(best);
  });
  return {values, indices};
}

Array max_pool_gradient(const Array& src, const Array& diff_dst, const PoolOptions& options) {
  Array diff_src(src.shape);
  each_window(src.shape, options, [&](const Window& w, std::int64_t channel, std::int64_t i) {
    diff_src.values[at(channel + winner(src, w, channel))] += diff_dst.values[at(i)];
  });
  return diff_src;
}

Array avg_pool_loops(const Array& src, const PoolOptions& options) {
  Array dst = empty_result(src.shape, options);
  each_window(src.shape, options, [&](const Window& w, std::int64_t channel, std::int64_t i) {
    double total = 0;
    for (const std::int64_t place : w.places) total += src.values[at(channel + place)];
    dst.values[at(i)] = total / divisor_of(w, options);
  });
  return dst;
}

}  // namespace concord::test
