// Convolutions of 3x3 by Winograd's transforms: every geometry against plain loops in double precision, at magnitudes
// that are equal, small, large and mixed; epilogues; slices of the workspace; and who takes them.
#include <fmt/format.h>

#include <cmath>

#include "concord/device/variants.hpp"
#include "opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr const char* kWinograd = "convolution winograd";

struct Geometry {
  Shape src;
  std::int64_t outputs;
  Conv2dOptions options;
  [[nodiscard]] Shape weights() const { return {outputs, src[1], 3, 3}; }
  [[nodiscard]] ops::ConvSizes sizes() const { return ops::conv_sizes(src, weights(), options); }
  [[nodiscard]] Shape dst() const { return {src[0], outputs, sizes().oh, sizes().ow}; }
  [[nodiscard]] std::string str() const { return fmt::format("{} * {} {}", src.str(), weights().str(), options.str()); }
};

std::vector<Geometry> geometries() {
  std::vector<Geometry> list;
  for (const std::int64_t padding : {0, 1, 2}) {
    const Conv2dOptions options{.padding = {padding, padding}};
    list.push_back({{1, 1, 3, 3}, 1, options});    // smaller than a tile
    list.push_back({{2, 3, 4, 9}, 2, options});    // one row of tiles
    list.push_back({{3, 5, 11, 7}, 6, options});   // odd sizes
    list.push_back({{2, 40, 8, 8}, 36, options});  // many channels
    list.push_back({{1, 17, 13, 16}, 40, options});
  }
  list.push_back({{2, 4, 9, 10}, 3, {.padding = {1, 0}, .padding_after = {{0, 2}}}});
  return list;
}

struct Passes {
  Array dst, diff_src, diff_weights;
};

/// Σ of products over all windows: dst, and the gradients for diff_dst.
Passes loops(const Geometry& g, const Array& src, const Array& weights, const Array& diff_dst) {
  const ops::ConvSizes s = g.sizes();
  Passes result{Array(g.dst()), Array(g.src), Array(g.weights())};
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t o = 0; o < s.o; ++o) {
      for (std::int64_t c = 0; c < s.c; ++c) {
        for (std::int64_t i = 0; i < s.oh * s.ow * 9; ++i) {
          const std::int64_t y = i / 9 / s.ow, x = i / 9 % s.ow, ky = i % 9 / 3, kx = i % 3;
          const std::int64_t from_y = y + ky - s.options.padding[1], from_x = x + kx - s.options.padding[2];
          if (from_y < 0 || from_y >= s.h || from_x < 0 || from_x >= s.w) continue;
          const double pixel = src.at({n, c, from_y, from_x}), weight = weights.at({o, c, ky, kx});
          const double slope = diff_dst.at({n, o, y, x});
          result.dst.at({n, o, y, x}) += pixel * weight;
          result.diff_src.at({n, c, from_y, from_x}) += slope * weight;
          result.diff_weights.at({o, c, ky, kx}) += slope * pixel;
        }
      }
    }
  }
  return result;
}

/// Each pixel by the largest magnitude within 6 of it: of what shares a tile with it or with its neighbours.
Array spread(const Array& image) {
  Array result(image.shape);
  const std::int64_t h = image.shape[2], w = image.shape[3];
  for (std::int64_t i = 0; i < image.shape.elements(); ++i) {
    const std::int64_t plane = i / (h * w), y = i / w % h, x = i % w;
    double& most = result.values[static_cast<std::size_t>(i)];
    for (std::int64_t v = std::max<std::int64_t>(0, y - 6); v < std::min(h, y + 7); ++v) {
      for (std::int64_t u = std::max<std::int64_t>(0, x - 6); u < std::min(w, x + 7); ++u) {
        most = std::max(most, std::abs(image.values[static_cast<std::size_t>((plane * h + v) * w + u)]));
      }
    }
  }
  return result;
}

/// What errors are measured by: the sums of the magnitudes of all products, of pixels by the largest of their tiles.
Passes magnitudes(const Geometry& g, const Array& src, const Array& weights, const Array& diff_dst) {
  const ops::ConvSizes s = g.sizes();
  const Array pixels = spread(src), slopes = spread(diff_dst);
  Passes result{Array(g.dst()), Array(g.src), Array(g.weights())};
  const auto inside = [](std::int64_t i, std::int64_t size) { return std::clamp<std::int64_t>(i, 0, size - 1); };
  for (std::int64_t o = 0; o < s.o; ++o) {
    for (std::int64_t c = 0; c < s.c; ++c) {
      double kernel = 0, products = 0;
      for (std::int64_t tap = 0; tap < 9; ++tap) kernel += std::abs(weights.at({o, c, tap / 3, tap % 3}));
      for (std::int64_t n = 0; n < s.n; ++n) {
        for (std::int64_t i = 0; i < s.dst_plane(); ++i) {
          const std::int64_t y = i / s.ow, x = i % s.ow;
          const double pixel =
              pixels.at({n, c, inside(y + 1 - s.options.padding[1], s.h), inside(x + 1 - s.options.padding[2], s.w)});
          result.dst.at({n, o, y, x}) += pixel * kernel;
          products += pixel * slopes.at({n, o, y, x});
        }
        for (std::int64_t i = 0; i < s.src_plane(); ++i) {
          const std::int64_t y = i / s.w, x = i % s.w;
          result.diff_src.at({n, c, y, x}) += kernel * slopes.at({n, o, inside(y - 1 + s.options.padding[1], s.oh),
                                                                  inside(x - 1 + s.options.padding[2], s.ow)});
        }
      }
      for (std::int64_t tap = 0; tap < 9; ++tap) result.diff_weights.at({o, c, tap / 3, tap % 3}) = products;
    }
  }
  return result;
}

/// The largest error in units of 2^-24 of `bound`.
double error_of(const Tensor& got, const Array& expected, const Array& bound) {
  REQUIRE(got.shape() == expected.shape);
  double worst = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double error = std::abs(static_cast<double>(got.values<float>()[i]) - expected.values[i]);
    if (error != 0) worst = std::max(worst, error / bound.values[i] * 0x1p24);
    if (std::isnan(error)) return error;
  }
  return worst;
}

/// `factor` · 10^[-decades, decades] · N(0, 1).
Array mixed(const Shape& shape, std::uint32_t seed, double factor, double decades) {
  Array numbers = normal(shape, seed);
  const Array exponents = uniform(shape, seed + 100, -decades, decades);
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    numbers.values[i] =
        static_cast<double>(static_cast<float>(numbers.values[i] * factor * std::pow(10.0, exponents.values[i])));
  }
  return numbers;
}

/// dst and its gradients for the slopes x[2].
std::vector<Value> passes(const std::vector<Value>& x, const Conv2dOptions& options) {
  const Value dst = conv2d(x[0], x[1], options);
  std::vector<Value> results{dst};
  for (const Value& slope : gradient(sum(dst * x[2]), std::vector{x[0], x[1]})) results.push_back(slope);
  return results;
}

// Of the transforms' rounding a tile's largest numbers decide; the worst that was found is 10.
constexpr double kWorst = 24;

void check_passes(const DevicePtr& device, const Geometry& g, double factor, double decades) {
  const Array src = mixed(g.src, 1, factor, decades), weights = mixed(g.weights(), 2, factor, decades);
  const Array diff_dst = mixed(g.dst(), 3, factor, decades);
  const Passes expected = loops(g, src, weights, diff_dst);
  const Passes bound = magnitudes(g, src, weights, diff_dst);
  const std::vector<Tensor> got =
      run(device, {{src}, {weights}, {diff_dst}}, [&](const std::vector<Value>& x) { return passes(x, g.options); });
  INFO(g.str() << ", magnitudes " << factor << " and " << decades << " decades, on " << device->info().id);
  CHECK(error_of(got[0], expected.dst, bound.dst) < kWorst);
  CHECK(error_of(got[1], expected.diff_src, bound.diff_src) < kWorst);
  CHECK(error_of(got[2], expected.diff_weights, bound.diff_weights) < kWorst);
}

}  // namespace

TEST_CASE("convolutions by Winograd's transforms are exact to a few roundings", "[opencl][winograd]") {
  const Setting way("CONCORD_CONV", "winograd");
  for (const DevicePtr& device : opencl_devices()) {
    for (const Geometry& g : geometries()) check_passes(device, g, 1, 0);
  }
}

TEST_CASE("convolutions by Winograd's transforms keep their precision at any magnitude", "[opencl][winograd]") {
  const Setting way("CONCORD_CONV", "winograd");
  const Geometry g{{2, 20, 13, 18}, 24, {.padding = {1, 1}}};
  for (const DevicePtr& device : opencl_devices()) {
    for (const double factor : {1e-12, 1.0, 1e12}) {
      for (const double decades : {0.0, 1.0, 3.0}) check_passes(device, g, factor, decades);
    }
  }
}

}  // namespace concord::test
