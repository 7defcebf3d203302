// Convolution and its two gradients against plain loops.
#include "concord/ops/conv.hpp"

#include <fmt/format.h>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Geometry {
  Shape src, weights;
  ops::ConvOptions options;
  std::function<Value(Value, Value)> conv;
  [[nodiscard]] std::string str() const { return fmt::format("{} * {} {}", src.str(), weights.str(), options.str()); }
  [[nodiscard]] Shape dst() const {
    const ops::ConvSizes s = ops::conv_sizes(src, weights, options);
    return ops::with_spatial(s.n, s.o, {s.od, s.oh, s.ow}, options.rank);
  }
};

Geometry signal(Shape src, Shape weights, const Conv1dOptions& o = {}) {
  return {std::move(src), std::move(weights), o, [o](Value x, Value w) { return conv1d(x, w, o); }};
}
Geometry image(Shape src, Shape weights, const Conv2dOptions& o = {}) {
  return {std::move(src), std::move(weights), o, [o](Value x, Value w) { return conv2d(x, w, o); }};
}
Geometry volume(Shape src, Shape weights, const Conv3dOptions& o = {}) {
  return {std::move(src), std::move(weights), o, [o](Value x, Value w) { return conv3d(x, w, o); }};
}

/// Where a tap of an output's window lies along an axis of src; -1 outside.
std::int64_t place_of(const ops::ConvOptions& o, std::size_t axis, std::int64_t output, std::int64_t tap,
                      std::int64_t size) {
  const std::int64_t place = output * o.stride[axis] - o.padding[axis] + tap * o.dilation[axis];
  return place < 0 || place >= size ? -1 : place;
}

/// Calls visit(src element, weights element, dst element) for every product of the convolution.
template <class Visit>
void each_product(const Geometry& g, Array& src, Array& weights, Array& dst, const Visit& visit) {
  const ops::ConvSizes s = ops::conv_sizes(g.src, g.weights, g.options);
  const std::int64_t in_group = s.c / g.options.groups, out_group = s.o / g.options.groups;
  const auto at = [](Array& array, std::int64_t offset) -> double& {
    return array.values[static_cast<std::size_t>(offset)];
  };
  for (std::int64_t i = 0; i < s.n * s.o * in_group; ++i) {
    const std::int64_t n = i / (s.o * in_group), o = i / in_group % s.o, c = i % in_group;
    for (std::int64_t place = 0; place < s.od * s.oh * s.ow; ++place)
      for (std::int64_t tap = 0; tap < s.kd * s.kh * s.kw; ++tap) {
        const std::int64_t z = place_of(g.options, 0, place / (s.oh * s.ow), tap / (s.kh * s.kw), s.d);
        const std::int64_t y = place_of(g.options, 1, place / s.ow % s.oh, tap / s.kw % s.kh, s.h);
        const std::int64_t x = place_of(g.options, 2, place % s.ow, tap % s.kw, s.w);
        if (z < 0 || y < 0 || x < 0) continue;
        const std::int64_t channel = n * s.c + o / out_group * in_group + c;
        visit(at(src, ((channel * s.d + z) * s.h + y) * s.w + x),
              at(weights, (o * in_group + c) * s.kd * s.kh * s.kw + tap),
              at(dst, (n * s.o + o) * s.od * s.oh * s.ow + place));
      }
  }
}

Array forward(const Geometry& g, Array src, Array weights) {
  Array dst(g.dst());
  each_product(g, src, weights, dst, [](double s, double w, double& d) { d += s * w; });
  return dst;
}

Array backward_data(const Geometry& g, Array diff_dst, Array weights) {
  Array diff_src(g.src);
  each_product(g, diff_src, weights, diff_dst, [](double& s, double w, double d) { s += d * w; });
  return diff_src;
}

Array backward_weights(const Geometry& g, Array src, Array diff_dst) {
  Array diff_weights(g.weights);
  each_product(g, src, diff_weights, diff_dst, [](double s, double& w, double d) { w += d * s; });
  return diff_weights;
}

Case conv_case(const Geometry& g, Array src, Array weights, Scale scale, double tolerance = 8) {
  return {.name = g.str(),
          .inputs = {{std::move(src)}, {std::move(weights)}},
          .build = [g](const std::vector<Value>& x) { return std::vector{g.conv(x[0], x[1])}; },
          .reference = [g](const std::vector<Array>& x) { return std::vector{forward(g, x[0], x[1])}; },
          .scale = scale,
          .tolerance = tolerance,
          .reference_gradient =
              [g](const std::vector<Array>& x, const std::vector<Array>& seeds) {
                return std::vector{backward_data(g, seeds[0], x[1]), backward_weights(g, x[0], seeds[0])};
              }};
}

const std::vector<Geometry> kImages = {
    image({1, 1, 1, 1}, {1, 1, 1, 1}),
    image({2, 3, 7, 5}, {4, 3, 3, 3}),
    image({2, 3, 7, 5}, {4, 3, 3, 3}, {.padding = {1, 1}}),
    image({1, 2, 6, 9}, {3, 2, 3, 2}, {.stride = {2, 3}, .padding = {1, 0}}),
    image({2, 1, 8, 8}, {2, 1, 2, 2}, {.stride = {3, 3}}),  // the stride passes over pixels
    image({1, 2, 9, 8}, {2, 2, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}}),
    image({1, 2, 9, 8}, {2, 2, 2, 3}, {.stride = {2, 1}, .padding = {0, 1}, .dilation = {3, 1}}),
    image({2, 4, 5, 5}, {6, 2, 3, 3}, {.padding = {1, 1}, .groups = 2}),
    image({2, 5, 4, 3}, {7, 5, 1, 1}),
    image({2, 5, 5, 4}, {7, 5, 1, 1}, {.stride = {2, 2}}),
    image({1, 1, 5, 4}, {2, 1, 5, 4}),                       // the kernel covers the image
    image({1, 2, 2, 3}, {3, 2, 4, 5}, {.padding = {2, 2}}),  // and more than it
    image({1, 17, 4, 4}, {18, 17, 3, 3}, {.padding = {1, 1}}),
    image({1, 3, 5, 9}, {4, 3, 1, 7}, {.padding = {0, 3}}),
    image({1, 3, 9, 5}, {4, 3, 7, 1}, {.padding = {3, 0}}),
    image({2, 3, 5, 6}, {4, 3, 2, 4}, {.padding = {0, 1}, .padding_after = {{1, 2}}}),  // "same" of even kernels
    image({1, 2, 5, 6}, {3, 2, 3, 3}, {.stride = {2, 2}, .padding = {2, 0}, .padding_after = {{0, 3}}}),
};

const std::vector<Geometry> kDepthwise = {
    image({2, 4, 5, 6}, {4, 1, 3, 3}, {.padding = {1, 1}, .groups = 4}),
    image({1, 3, 6, 6}, {6, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 3}),  // two outputs each
    image({1, 2, 9, 40}, {2, 1, 2, 5}, {.padding = {1, 2}, .dilation = {2, 3}, .groups = 2, .padding_after = {{0, 5}}}),
    image({2, 3, 7, 37}, {3, 1, 3, 3}, {.stride = {1, 3}, .groups = 3}),
    signal({2, 5, 23}, {10, 1, 4}, {.stride = {2}, .padding = {3}, .groups = 5}),
    volume({2, 3, 4, 5, 6}, {3, 1, 3, 2, 3}, {.stride = {1, 2, 1}, .padding = {1, 0, 1}, .groups = 3}),
};

const std::vector<Geometry> kSignals = {
    signal({2, 3, 11}, {4, 3, 3}),
    signal({2, 4, 10}, {6, 2, 4},
           {.stride = {3}, .padding = {2}, .dilation = {2}, .groups = 2, .padding_after = {{3}}}),
    signal({1, 5, 1}, {3, 5, 1}),
    signal({3, 2, 40}, {33, 2, 9}, {.padding = {4}}),
};

const std::vector<Geometry> kVolumes = {
    volume({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}),
    volume({2, 3, 4, 6, 5}, {4, 3, 3, 3, 3}, {.padding = {1, 1, 1}}),
    volume({1, 2, 5, 4, 7}, {3, 2, 2, 1, 3}, {.stride = {2, 1, 2}, .padding = {0, 1, 1}, .padding_after = {{1, 0, 2}}}),
    volume({1, 4, 7, 5, 6}, {6, 2, 3, 2, 2},
           {.stride = {1, 2, 1}, .padding = {2, 1, 0}, .dilation = {2, 1, 3}, .groups = 2}),
    volume({2, 2, 1, 3, 3}, {3, 2, 1, 3, 3}, {.stride = {3, 1, 1}, .padding = {1, 1, 1}}),  // windows of padding alone
    volume({2, 3, 6, 4, 4}, {2, 3, 1, 1, 1}, {.stride = {2, 2, 1}}),
};

void check_exact(const std::vector<Geometry>& geometries) {
  for (const Geometry& g : geometries) check(conv_case(g, integers(g.src, 1), integers(g.weights, 2), Scale::exact));
}

TEST_CASE("convolutions of whole numbers are exact, gradients too", "[ops][conv]") {
  SECTION("of images") { check_exact(kImages); }
  SECTION("of signals") { check_exact(kSignals); }
  SECTION("of volumes") { check_exact(kVolumes); }
  SECTION("of each channel by itself") { check_exact(kDepthwise); }
}

TEST_CASE("convolutions of random numbers keep to the bound of their products", "[ops][conv]") {
  for (const Geometry& g : {kImages[2], kImages[3], kImages[7], kImages[12], kDepthwise[0], kSignals[3], kVolumes[1]}) {
    check(conv_case(g, normal(g.src, 3), normal(g.weights, 4), Scale::products));
  }
  const Geometry& g = kImages[2];
  check(conv_case(g, normal(g.src, 5, 1e4), normal(g.weights, 6, 1e5), Scale::products));
}

TEST_CASE("the gradients of a convolution have gradients", "[ops][conv]") {
  for (const Geometry& g : {kImages[2], kImages[3], kImages[7], kDepthwise[1], kVolumes[2]}) {
    check({.name = "backward data " + g.str(),
           .inputs = {{integers(g.dst(), 1)}, {integers(g.weights, 2)}},
           .build =
               [g](const std::vector<Value>& x) {
                 return std::vector{x[0].graph().add(std::make_shared<ops::ConvBackwardData>(g.options, g.src), x)};
               },
           .reference = [g](const std::vector<Array>& x) { return std::vector{backward_data(g, x[0], x[1])}; },
           .scale = Scale::exact});
    check({.name = "backward weights " + g.str(),
           .inputs = {{integers(g.src, 1)}, {integers(g.dst(), 2)}},
           .build =
               [g](const std::vector<Value>& x) {
                 return std::vector{
                     x[0].graph().add(std::make_shared<ops::ConvBackwardWeights>(g.options, g.weights), x)};
               },
           .reference = [g](const std::vector<Array>& x) { return std::vector{backward_weights(g, x[0], x[1])}; },
           .scale = Scale::exact});
  }
}

TEST_CASE("conv2d refuses what does not fit, naming the operands", "[ops][conv]") {
  const auto error_of = [](const Shape& src, const Shape& weights, const Conv2dOptions& options = {}) {
    return shape_error({{DType::f32, src}, {DType::f32, weights}},
                       [&](const std::vector<Value>& x) { return std::vector{conv2d(x[0], x[1], options)}; });
  };
  CHECK_THAT(error_of({64, 3, 32, 32}, {16, 4, 3, 3}),
             contains("src [64, 3, 32, 32] has 3 channels, weights [16, 4, 3, 3] with groups 1 need 4"));
  CHECK_THAT(error_of({1, 4, 8, 8}, {3, 2, 3, 3}, {.groups = 2}), contains("[3, 2, 3, 3]") && contains("groups 2"));
  CHECK_THAT(error_of({1, 1, 2, 9}, {1, 1, 3, 3}), contains("[1, 1, 3, 3]") && contains("[1, 1, 2, 9]"));
  CHECK_THAT(error_of({1, 1, 0, 5}, {1, 1, 3, 3}), contains("[1, 1, 0, 5]"));
  CHECK_THAT(error_of({1, 5, 5}, {1, 1, 3, 3}), contains("[1, 5, 5]"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {1, 1, 3, 3}, {.stride = {0, 1}}), contains("stride"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {1, 1, 3, 3}, {.padding = {-1, 0}}), contains("padding"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {1, 1, 3, 3}, {.padding_after = {{0, -1}}}), contains("padding"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {1, 1, 3, 3}, {.groups = 0}), contains("groups"));
  const std::vector<TensorSpec> images{{DType::f32, {1, 2, 5, 5}}, {DType::f32, {3, 2, 3, 3}}};
  CHECK_THAT(shape_error(images, [](const std::vector<Value>& x) { return std::vector{conv1d(x[0], x[1])}; }),
             contains("conv1d: expected src (N, C, W) and weights (O, C/groups, kW), got [1, 2, 5, 5]"));
  CHECK_THAT(shape_error(images, [](const std::vector<Value>& x) { return std::vector{conv3d(x[0], x[1])}; }),
             contains("conv3d: expected src (N, C, D, H, W) and weights (O, C/groups, kD, kH, kW)"));
}

TEST_CASE("a convolution counts two operations a product", "[ops][conv]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 4, 5, 5}});
  const Value w = graph.input("w", {DType::f32, {6, 2, 3, 3}});
  const Value y = conv2d(x, w, {.padding = {1, 1}, .groups = 2});
  const std::vector<TensorSpec> inputs = {x.spec(), w.spec()};
  const Cost cost = y.node().op->cost(inputs, y.node().outputs);
  CHECK(cost.flops == 2.0 * 2 * 6 * 25 * 2 * 9);
  CHECK(cost.bytes == 4.0 * (200 + 108 + 300));
}

}  // namespace
}  // namespace concord::test
