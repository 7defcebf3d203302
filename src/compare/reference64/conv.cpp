// Convolution and its two gradients: dst(n, o, p) = Σ_c Σ_t src(n, c, p·stride − padding + t·dilation)·weights(o, c,
// t), zero outside src (see ops::ConvFamily); the gradients are the derivatives of this sum.
#include "concord/ops/conv.hpp"

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

/// The pixel that a tap of a window meets along one axis, or -1 in the padding.
std::int64_t pixel(std::int64_t window, std::int64_t tap, std::size_t axis, std::int64_t size,
                   const ops::ConvOptions& options) {
  const std::int64_t at = window * options.stride[axis] - options.padding[axis] + tap * options.dilation[axis];
  return at >= 0 && at < size ? at : -1;
}

/// visit(src place, dst place) for all pairs of a pixel and a window that one tap joins, in one channel.
void each_pair(const ops::ConvSizes& s, std::int64_t tap, auto&& visit) {
  const std::int64_t tz = tap / (s.kh * s.kw), ty = tap / s.kw % s.kh, tx = tap % s.kw;
  for (std::int64_t z = 0; z < s.od; ++z) {
    const std::int64_t from_z = pixel(z, tz, 0, s.d, s.options);
    for (std::int64_t y = 0; from_z >= 0 && y < s.oh; ++y) {
      const std::int64_t from_y = pixel(y, ty, 1, s.h, s.options);
      for (std::int64_t x = 0; from_y >= 0 && x < s.ow; ++x) {
        const std::int64_t from_x = pixel(x, tx, 2, s.w, s.options);
        if (from_x >= 0) visit((from_z * s.h + from_y) * s.w + from_x, (z * s.oh + y) * s.ow + x);
      }
    }
  }
}

/// visit(src plane, dst plane, weight) for all planes of an image and a result that a filter's channel joins.
void each_filter(const ops::ConvSizes& s, auto&& visit) {
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t o = 0; o < s.o; ++o) {
      const std::int64_t first = o / s.group_o() * s.group_c();
      for (std::int64_t c = 0; c < s.group_c(); ++c) {
        visit((n * s.c + first + c) * s.src_plane(), (n * s.o + o) * s.dst_plane(), (o * s.group_c() + c) * s.taps());
      }
    }
  }
}

/// term(src, dst, weight): places of the three numbers of one product, all over the convolution.
void each_product(const ops::ConvSizes& s, auto&& term) {
  each_filter(s, [&](std::int64_t src, std::int64_t dst, std::int64_t weight) {
    for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
      each_pair(s, tap, [&](std::int64_t from, std::int64_t to) {
        term(static_cast<std::size_t>(src + from), static_cast<std::size_t>(dst + to),
             static_cast<std::size_t>(weight + tap));
      });
    }
  });
}

}  // namespace

Results conv(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::ConvFamily*>(node.op);
  if (op == nullptr) return {};
  const std::vector<TensorSpec> specs{node.inputs[0].spec(), node.inputs[1].spec()};
  const ops::ConvSizes sizes = op->sizes(specs);
  const Values a = doubles(node.inputs[0]), b = doubles(node.inputs[1]);
  Values result = zeros(node.results[0]);
  using Place = std::size_t;
  if (dynamic_cast<const ops::Conv*>(op) != nullptr) {
    each_product(sizes, [&](Place src, Place dst, Place weight) { result[dst] += a[src] * b[weight]; });
  } else if (dynamic_cast<const ops::ConvBackwardData*>(op) != nullptr) {
    each_product(sizes, [&](Place src, Place dst, Place weight) { result[src] += a[dst] * b[weight]; });
  } else {
    each_product(sizes, [&](Place src, Place dst, Place weight) { result[weight] += a[src] * b[dst]; });
  }
  return {{std::move(result)}};
}

}  // namespace concord::float64
