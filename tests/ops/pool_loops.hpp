// Pooling in plain loops over windows, in double precision: what the tests of pooling are held against.
#pragma once

#include "concord/ops/pool.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

using ops::PoolOptions;
using ops::Spatial;

/// The pixels of one window, as places in a channel, and how many there are with padding, as PyTorch counts them.
struct Window {
  std::vector<std::int64_t> places;
  std::int64_t area = 1;
};
/// That of the element `place` of a channel of dst.
[[nodiscard]] Window window(const ops::PoolSizes& sizes, std::int64_t place);

[[nodiscard]] inline std::int64_t elements(const Spatial& s) { return s[0] * s[1] * s[2]; }
[[nodiscard]] inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// visit(window, first element of its channel in src, element of dst) for every window.
template <class Visit>
void each_window(const Shape& src, const PoolOptions& options, const Visit& visit) {
  const ops::PoolSizes s = ops::pool_sizes(src, options);
  for (std::int64_t channel = 0; channel < s.n * s.c; ++channel)
    for (std::int64_t i = 0; i < elements(s.dst); ++i)
      visit(window(s, i), channel * elements(s.src), channel * elements(s.dst) + i);
}

/// Zeros of the result's shape.
[[nodiscard]] Array empty_result(const Shape& src, const PoolOptions& options);
/// The place of the window's first largest value in its channel.
[[nodiscard]] std::int64_t winner(const Array& src, const Window& window, std::int64_t channel);
/// Values and indices.
[[nodiscard]] std::vector<Array> max_pool_loops(const Array& src, const PoolOptions& options);
/// Each window's gradient goes to its first largest value.
[[nodiscard]] Array max_pool_gradient(const Array& src, const Array& diff_dst, const PoolOptions& options);
[[nodiscard]] Array avg_pool_loops(const Array& src, const PoolOptions& options);

}  // namespace concord::test
