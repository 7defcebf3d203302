// Convolution and its two gradients against plain loops.
#include "concord/ops/conv.hpp"

#include <fmt/format.h>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Geometry {
  Shape src, weights;
  ops::ConvOptions options;
  [[nodiscard]] std::string str() const { return fmt::format("{} * {} {}", src.str(), weights.str(), options.str()); }
  [[nodiscard]] Shape dst() const {
    const ops::ConvSizes s = ops::conv_sizes(src, weights, options);
    return {s.n, s.o, s.oh, s.ow};
  }
};

/// Calls visit(src element, weights element, dst element) for every product of the convolution.
template <class Visit>
void each_product(const Geometry& g, Array& src, Array& weights, Array& dst, const Visit& visit) {
  const ops::ConvSizes s = ops::conv_sizes(g.src, g.weights, g.options);
  const std::int64_t in_group = s.c / g.options.groups;
  const std::int64_t out_group = s.o / g.options.groups;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t o = 0; o < s.o; ++o)
      for (std::int64_t c = 0; c < in_group; ++c)
        for (std::int64_t y = 0; y < s.oh; ++y)
          for (std::int64_t x = 0; x < s.ow; ++x)
            for (std::int64_t ky = 0; ky < s.kh; ++ky)
              for (std::int64_t kx = 0; kx < s.kw; ++kx) {
                const std::int64_t sy = y * g.options.stride[0] - g.options.padding[0] + ky * g.options.dilation[0];
                const std::int64_t sx = x * g.options.stride[1] - g.options.padding[1] + kx * g.options.dilation[1];
                if (sy < 0 || sy >= s.h || sx < 0 || sx >= s.w) continue;
                visit(src.at({n, o / out_group * in_group + c, sy, sx}), weights.at({o, c, ky, kx}),
                      dst.at({n, o, y, x}));
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
          .build = [g](const std::vector<Value>& x) { return std::vector{conv2d(x[0], x[1], g.options)}; },
          .reference = [g](const std::vector<Array>& x) { return std::vector{forward(g, x[0], x[1])}; },
          .scale = scale,
          .tolerance = tolerance,
          .reference_gradient =
              [g](const std::vector<Array>& x, const std::vector<Array>& seeds) {
                return std::vector{backward_data(g, seeds[0], x[1]), backward_weights(g, x[0], seeds[0])};
              }};
}

const std::vector<Geometry> kGeometries = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {{2, 3, 7, 5}, {4, 3, 3, 3}, {}},
    {{2, 3, 7, 5}, {4, 3, 3, 3}, {.padding = {1, 1}}},
    {{1, 2, 6, 9}, {3, 2, 3, 2}, {.stride = {2, 3}, .padding = {1, 0}}},
    {{2, 1, 8, 8}, {2, 1, 2, 2}, {.stride = {3, 3}}},  // the stride passes over pixels
    {{1, 2, 9, 8}, {2, 2, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}}},
    {{1, 2, 9, 8}, {2, 2, 2, 3}, {.stride = {2, 1}, .padding = {0, 1}, .dilation = {3, 1}}},
    {{2, 4, 5, 5}, {6, 2, 3, 3}, {.padding = {1, 1}, .groups = 2}},
    {{2, 4, 5, 6}, {4, 1, 3, 3}, {.padding = {1, 1}, .groups = 4}},                    // depthwise
    {{1, 3, 6, 6}, {6, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 3}},  // depthwise, two each
    {{2, 5, 4, 3}, {7, 5, 1, 1}, {}},
    {{2, 5, 5, 4}, {7, 5, 1, 1}, {.stride = {2, 2}}},
    {{1, 1, 5, 4}, {2, 1, 5, 4}, {}},                   // the kernel covers the image
    {{1, 2, 2, 3}, {3, 2, 4, 5}, {.padding = {2, 2}}},  // and more than it
    {{1, 17, 4, 4}, {18, 17, 3, 3}, {.padding = {1, 1}}},
};

TEST_CASE("conv2d of whole numbers is exact, gradients too", "[ops][conv]") {
  for (const Geometry& g : kGeometries) check(conv_case(g, integers(g.src, 1), integers(g.weights, 2), Scale::exact));
}

TEST_CASE("conv2d of random numbers keeps to the bound of its products", "[ops][conv]") {
  for (const std::size_t i : {2U, 3U, 7U, 8U, 14U}) {
    const Geometry& g = kGeometries[i];
    check(conv_case(g, normal(g.src, 3), normal(g.weights, 4), Scale::products));
  }
  const Geometry& g = kGeometries[2];
  check(conv_case(g, normal(g.src, 5, 1e4), normal(g.weights, 6, 1e5), Scale::products));
}

TEST_CASE("the gradients of a convolution have gradients", "[ops][conv]") {
  for (const std::size_t i : {2U, 3U, 7U}) {
    const Geometry g = kGeometries[i];
    check({.name = "backward data " + g.str(),
           .inputs = {{integers(g.dst(), 1)}, {integers(g.weights, 2)}},
           .build =
               [g](const std::vector<Value>& x) {
                 return std::vector{x[0].graph().add(std::make_shared<ops::Conv2dBackwardData>(g.options, g.src), x)};
               },
           .reference = [g](const std::vector<Array>& x) { return std::vector{backward_data(g, x[0], x[1])}; },
           .scale = Scale::exact});
    check({.name = "backward weights " + g.str(),
           .inputs = {{integers(g.src, 1)}, {integers(g.dst(), 2)}},
           .build =
               [g](const std::vector<Value>& x) {
                 return std::vector{
                     x[0].graph().add(std::make_shared<ops::Conv2dBackwardWeights>(g.options, g.weights), x)};
               },
           .reference = [g](const std::vector<Array>& x) { return std::vector{backward_weights(g, x[0], x[1])}; },
           .scale = Scale::exact});
  }
}

TEST_CASE("conv2d refuses what does not fit, naming the operands", "[ops][conv]") {
  const auto error_of = [](const Shape& src, const Shape& weights, const ops::ConvOptions& options = {}) {
    return shape_error({{DType::f32, src}, {DType::f32, weights}},
                       [&](const std::vector<Value>& x) { return std::vector{conv2d(x[0], x[1], options)}; });
  };
  CHECK_THAT(error_of({64, 3, 32, 32}, {16, 4, 3, 3}),
             contains("src [64, 3, 32, 32] has 3 channels, weights [16, 4, 3, 3] with groups 1 want 4"));
  CHECK_THAT(error_of({1, 4, 8, 8}, {3, 2, 3, 3}, {.groups = 2}), contains("[3, 2, 3, 3]") && contains("groups 2"));
  CHECK_THAT(error_of({1, 1, 2, 9}, {1, 1, 3, 3}), contains("[1, 1, 3, 3]") && contains("[1, 1, 2, 9]"));
  CHECK_THAT(error_of({0, 1, 5, 5}, {1, 1, 3, 3}), contains("[0, 1, 5, 5]"));
  CHECK_THAT(error_of({1, 5, 5}, {1, 1, 3, 3}), contains("[1, 5, 5]"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {1, 1, 3, 3}, {.stride = {0, 1}}), contains("stride"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {1, 1, 3, 3}, {.padding = {-1, 0}}), contains("padding"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {1, 1, 3, 3}, {.groups = 0}), contains("groups"));
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
