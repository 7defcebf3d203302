// Max and average pooling with their gradients (ops/pool.hpp).
#include "concord/ops/pool.hpp"

#include <algorithm>
#include <cmath>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

struct Window {
  std::int64_t begin, end;  // may lie outside the source
};

/// Of window o along one axis.
Window window_of(const ops::PoolSizes& s, std::size_t axis, std::int64_t o) {
  const std::int64_t size = s.src[axis], windows = s.dst[axis];
  if (s.options.is_adaptive()) return {o * size / windows, ((o + 1) * size + windows - 1) / windows};
  const std::int64_t begin = o * s.options.stride[axis] - s.options.padding[axis];
  return {begin, begin + (s.options.kernel[axis] - 1) * s.options.dilation[axis] + 1};
}

std::int64_t dilation(const ops::PoolSizes& s, std::size_t axis) {
  return s.options.is_adaptive() ? 1 : s.options.dilation[axis];
}

std::int64_t plane_of(const ops::Spatial& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/// visit(place): the pixels of a window inside its channel.
void each_pixel(const ops::PoolSizes& s, const std::array<Window, 3>& window, auto&& visit) {
  const auto& [zs, ys, xs] = window;
  for (std::int64_t z = zs.begin; z < zs.end; z += dilation(s, 0)) {
    for (std::int64_t y = ys.begin; y < ys.end; y += dilation(s, 1)) {
      for (std::int64_t x = xs.begin; x < xs.end; x += dilation(s, 2)) {
        const bool inside = z >= 0 && z < s.src[0] && y >= 0 && y < s.src[1] && x >= 0 && x < s.src[2];
        if (inside) visit((z * s.src[1] + y) * s.src[2] + x);
      }
    }
  }
}

/// visit(first pixel of the channel, place in dst, window) for every window.
void each_window(const ops::PoolSizes& s, auto&& visit) {
  const std::int64_t windows = plane_of(s.dst);
  for (std::int64_t i = 0; i < s.n * s.c * windows; ++i) {
    const std::int64_t o = i % windows, z = o / (s.dst[1] * s.dst[2]), y = o / s.dst[2] % s.dst[1], x = o % s.dst[2];
    visit(i / windows * plane_of(s.src), static_cast<std::size_t>(i),
          std::array<Window, 3>{window_of(s, 0, z), window_of(s, 1, y), window_of(s, 2, x)});
  }
}

/// What a sum over a window is divided by: the given divisor, the pixels, or with them those of the padding.
double divisor_of(const ops::PoolSizes& s, const std::array<Window, 3>& window) {
  if (s.options.divisor != 0) return static_cast<double>(s.options.divisor);
  const bool padding = s.options.count_include_pad && !s.options.is_adaptive();
  double count = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t beyond = padding ? s.options.padding[axis] : 0;
    const std::int64_t first = std::max(window[axis].begin, -beyond);
    count *= static_cast<double>(std::min(window[axis].end, s.src[axis] + beyond) - first);
  }
  return count;
}

/// Of equal values the first wins, and the first NaN.
Results max_pool(const ops::MaxPool& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  Values dst(static_cast<std::size_t>(node.results[0].elements()), -INFINITY), indices(dst.size(), -1);
  const ops::PoolSizes sizes = ops::pool_sizes(node.inputs[0].shape(), op.options());
  each_window(sizes, [&](std::int64_t channel, std::size_t to, const std::array<Window, 3>& window) {
    each_pixel(sizes, window, [&](std::int64_t place) {
      const double value = src[static_cast<std::size_t>(channel + place)];
      if (indices[to] < 0 || value > dst[to] || (std::isnan(value) && !std::isnan(dst[to]))) {
        dst[to] = value;
        indices[to] = static_cast<double>(place);
      }
    });
  });
  return {{std::move(dst), holds_subnormals(src) ? Values{} : std::move(indices)}};
}

Results max_pool_backward(const ops::MaxPoolBackward& op, const ReplayedNode& node) {
  const ops::PoolSizes sizes = ops::pool_sizes(op.src(), op.options());
  const Values diff = doubles(node.inputs[0]), indices = doubles(node.inputs[1]);
  Values result = zeros(node.results[0]);
  const std::size_t windows = static_cast<std::size_t>(plane_of(sizes.dst)),
                    plane = static_cast<std::size_t>(plane_of(sizes.src));
  for (std::size_t i = 0; i < diff.size(); ++i) {
    if (indices[i] < 0) continue;
    // A device that finds the largest where nothing is.
    if (indices[i] >= static_cast<double>(plane)) return {{Values(result.size(), NAN)}};
    result[i / windows * plane + static_cast<std::size_t>(indices[i])] += diff[i];
  }
  return {{std::move(result)}};
}

Results avg_pool(const ops::AvgPool& op, const ReplayedNode& node) {
  const Values src = doubles(node.inputs[0]);
  Values dst = zeros(node.results[0]);
  const ops::PoolSizes sizes = ops::pool_sizes(node.inputs[0].shape(), op.options());
  each_window(sizes, [&](std::int64_t channel, std::size_t to, const std::array<Window, 3>& window) {
    each_pixel(sizes, window, [&](std::int64_t place) { dst[to] += src[static_cast<std::size_t>(channel + place)]; });
    dst[to] /= divisor_of(sizes, window);
  });
  return {{std::move(dst)}};
}

Results avg_pool_backward(const ops::AvgPoolBackward& op, const ReplayedNode& node) {
  const Values diff = doubles(node.inputs[0]);
  Values result = zeros(node.results[0]);
  const ops::PoolSizes sizes = ops::pool_sizes(op.src(), op.options());
  each_window(sizes, [&](std::int64_t channel, std::size_t from, const std::array<Window, 3>& window) {
    const double each = diff[from] / divisor_of(sizes, window);
    each_pixel(sizes, window, [&](std::int64_t place) { result[static_cast<std::size_t>(channel + place)] += each; });
  });
  return {{std::move(result)}};
}

}  // namespace

Results pool(const ReplayedNode& node) {
  if (const auto* op = dynamic_cast<const ops::MaxPool*>(node.op)) return max_pool(*op, node);
  if (const auto* op = dynamic_cast<const ops::MaxPoolBackward*>(node.op)) return max_pool_backward(*op, node);
  if (const auto* op = dynamic_cast<const ops::AvgPool*>(node.op)) return avg_pool(*op, node);
  if (const auto* op = dynamic_cast<const ops::AvgPoolBackward*>(node.op)) return avg_pool_backward(*op, node);
  return {};
}

}  // namespace concord::float64
