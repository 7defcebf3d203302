// Transposed convolution and the mirrored kernel against plain loops.
#include <fmt/format.h>

#include "concord/ops/conv.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using ops::Spatial;

/// A transposed convolution as each pixel of src spreading its kernel over dst.
struct Geometry {
  Shape src, weights, dst;
  Spatial stride, padding, dilation;
  std::int64_t groups;
  std::function<Value(Value, Value)> conv;
};

template <std::size_t Rank>
Geometry geometry(Shape src, Shape weights, Shape dst, const ConvTransposeNdOptions<Rank>& o,
                  std::function<Value(Value, Value)> conv) {
  return {std::move(src),
          std::move(weights),
          std::move(dst),
          ops::spatial(o.stride, 1),
          ops::spatial(o.padding, 0),
          ops::spatial(o.dilation, 1),
          o.groups,
          std::move(conv)};
}
Geometry signal(Shape src, Shape weights, Shape dst, const ConvTranspose1dOptions& o = {}) {
  return geometry(src, weights, dst, o, [o](Value x, Value w) { return conv_transpose1d(x, w, o); });
}
Geometry image(Shape src, Shape weights, Shape dst, const ConvTranspose2dOptions& o = {}) {
  return geometry(src, weights, dst, o, [o](Value x, Value w) { return conv_transpose2d(x, w, o); });
}
Geometry volume(Shape src, Shape weights, Shape dst, const ConvTranspose3dOptions& o = {}) {
  return geometry(src, weights, dst, o, [o](Value x, Value w) { return conv_transpose3d(x, w, o); });
}

std::int64_t elements(const Spatial& s) { return s[0] * s[1] * s[2]; }
Spatial place(std::int64_t i, const Spatial& s) { return {i / (s[1] * s[2]), i / s[2] % s[1], i % s[2]}; }

/// Calls visit(src element, weights element, dst element) for every product.
template <class Visit>
void each_product(const Geometry& g, Array& src, Array& weights, Array& dst, const Visit& visit) {
  const Spatial from = ops::spatial_of(g.src), kernel = ops::spatial_of(g.weights), to = ops::spatial_of(g.dst);
  const std::int64_t in = g.src[1], out = g.dst[1], in_group = in / g.groups, out_group = out / g.groups;
  for (std::int64_t i = 0; i < src.shape.elements(); ++i) {
    const std::int64_t channel = i / elements(from) % in, n = i / elements(from) / in;
    const Spatial p = place(i % elements(from), from);
    for (std::int64_t k = 0; k < out_group * elements(kernel); ++k) {
      const Spatial tap = place(k % elements(kernel), kernel);
      std::int64_t pixel = 0;
      bool inside = true;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t q = p[axis] * g.stride[axis] - g.padding[axis] + tap[axis] * g.dilation[axis];
        inside = inside && q >= 0 && q < to[axis];
        pixel = pixel * to[axis] + q;
      }
      if (!inside) continue;
      const std::int64_t o = channel / in_group * out_group + k / elements(kernel);
      visit(src.values[static_cast<std::size_t>(i)],
            weights.values[static_cast<std::size_t>(channel * out_group * elements(kernel) + k)],
            dst.values[static_cast<std::size_t>((n * out + o) * elements(to) + pixel)]);
    }
  }
}

const std::vector<Geometry> kGeometries = {
    image({2, 3, 4, 5}, {3, 2, 3, 3}, {2, 2, 6, 7}),
    image({1, 4, 3, 5}, {4, 3, 4, 4}, {1, 3, 6, 10}, {.stride = {2, 2}, .padding = {1, 1}}),
    image({2, 4, 4, 3}, {4, 1, 3, 3}, {2, 2, 8, 8},
          {.stride = {2, 3}, .padding = {1, 1}, .output_padding = {1, 1}, .groups = 2}),
    image({1, 2, 3, 4}, {2, 3, 2, 3}, {1, 3, 9, 14},
          {.stride = {3, 2}, .padding = {0, 1}, .output_padding = {0, 1}, .dilation = {2, 4}}),
    image({1, 2, 5, 4}, {2, 2, 3, 2}, {1, 2, 13, 7},  // output_padding above the stride, below the dilation
          {.output_padding = {2, 1}, .dilation = {3, 2}, .groups = 1}),
    image({1, 2, 4, 4}, {2, 3, 3, 3}, {1, 3, 5, 4}, {.padding = {1, 0}, .padding_after = {{0, 2}}}),
    image({2, 4, 4, 5}, {4, 1, 3, 3}, {2, 4, 8, 10},  // each channel by itself
          {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}, .groups = 4}),
    signal({2, 3, 7}, {3, 4, 5}, {2, 4, 17}, {.stride = {2}, .padding = {0}}),
    signal({1, 4, 6}, {4, 2, 3}, {1, 4, 18}, {.stride = {3}, .padding = {1}, .output_padding = {2}, .groups = 2}),
    volume({1, 2, 3, 2, 4}, {2, 3, 2, 3, 3}, {1, 3, 6, 2, 8},
           {.stride = {2, 1, 2}, .padding = {0, 1, 1}, .output_padding = {0, 0, 1}}),
    volume({2, 4, 2, 3, 2}, {4, 2, 3, 2, 1}, {2, 4, 5, 5, 2},
           {.stride = {2, 2, 1}, .padding = {0, 1, 0}, .output_padding = {0, 1, 0}, .groups = 2}),
};

TEST_CASE("transposed convolutions of whole numbers are exact, gradients too", "[ops][conv]") {
  for (const Geometry& g : kGeometries) {
    check({.name = fmt::format("{} transposed {} → {}", g.src.str(), g.weights.str(), g.dst.str()),
           .inputs = {{integers(g.src, 1)}, {integers(g.weights, 2)}},
           .build = [&](const std::vector<Value>& x) { return std::vector{g.conv(x[0], x[1])}; },
           .reference =
               [&](std::vector<Array> x) {
                 Array dst(g.dst);
                 each_product(g, x[0], x[1], dst, [](double s, double w, double& d) { d += s * w; });
                 return std::vector{dst};
               },
           .scale = Scale::exact,
           .reference_gradient =
               [&](std::vector<Array> x, std::vector<Array> seeds) {
                 Array src(g.src), weights(g.weights);
                 each_product(g, src, x[1], seeds[0], [](double& s, double w, double d) { s += d * w; });
                 each_product(g, x[0], weights, seeds[0], [](double s, double& w, double d) { w += d * s; });
                 return std::vector{src, weights};
               }});
  }
}

TEST_CASE("a mirrored kernel makes a convolution of a cross-correlation", "[ops][conv]") {
  check({.name = "mirrored kernel",
         .inputs = {{integers({2, 3, 2, 3}, 1)}},
         .build = [](const std::vector<Value>& x) { return std::vector{mirror_kernel(x[0])}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array mirrored(x[0].shape);
               for (std::int64_t c = 0; c < 6; ++c)
                 for (std::int64_t y = 0; y < 2; ++y)
                   for (std::int64_t k = 0; k < 3; ++k)
                     mirrored.at({c / 3, c % 3, y, k}) = x[0].at({c / 3, c % 3, 1 - y, 2 - k});
               return std::vector{mirrored};
             },
         .scale = Scale::exact});
  // (1 + 2t + 3t²)·(4 + 5t) = 4 + 13t + 22t² + 15t³
  for (const DevicePtr& device : devices()) {
    const std::vector<Input> inputs{{Array({1, 1, 3}, {1, 2, 3})}, {Array({1, 1, 2}, {4, 5})}};
    const auto product = run(device, inputs, [](const std::vector<Value>& x) {
      return std::vector{conv1d(x[0], mirror_kernel(x[1]), {.padding = {1}})};
    });
    CHECK(to_array(product[0]).values == std::vector<double>{4, 13, 22, 15});
  }
}

TEST_CASE("transposed convolution refuses what does not fit, naming the operands", "[ops][conv]") {
  const auto error_of = [](const Shape& src, const Shape& weights, const ConvTranspose2dOptions& options = {}) {
    return shape_error({{DType::f32, src}, {DType::f32, weights}},
                       [&](const std::vector<Value>& x) { return std::vector{conv_transpose2d(x[0], x[1], options)}; });
  };
  CHECK_THAT(error_of({1, 3, 5, 5}, {4, 2, 3, 3}), contains("x [1, 3, 5, 5] has 3 channels, weights [4, 2, 3, 3]"));
  CHECK_THAT(error_of({1, 3, 5}, {3, 2, 3}), contains("expected x (N, C, H, W) and weights (C, O/groups, kH, kW)"));
  CHECK_THAT(error_of({1, 3, 5, 5}, {3, 2, 3, 3}, {.groups = 2}), contains("2 groups"));
  CHECK_THAT(error_of({1, 3, 5, 5}, {3, 2, 3, 3}, {.stride = {2, 2}, .output_padding = {2, 0}}),
             contains("output_padding 2x0 must be smaller"));
  CHECK_THAT(error_of({1, 3, 1, 5}, {3, 2, 2, 3}, {.padding = {1, 1}}), contains("leave 0 pixels along H"));
  CHECK_THAT(error_of({1, 3, 5, 5}, {3, 2, 3, 3}, {.stride = {0, 1}}), contains("stride"));
  CHECK_THAT(error_of({1, 3, 0, 5}, {3, 2, 3, 3}), contains("[1, 3, 0, 5]"));
}

}  // namespace
}  // namespace concord::test
