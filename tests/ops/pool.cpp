// Pooling against plain loops; who wins at ties and against NaN.
#include "concord/ops/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

struct Window {
  std::int64_t top, bottom, left, right;  // inside the image
  std::int64_t area;                      // with padding, as PyTorch counts it
};

Window window(const ops::PoolSizes& s, std::int64_t oy, std::int64_t ox) {
  const ops::PoolOptions& o = s.options;
  const std::int64_t y = oy * o.stride[0] - o.padding[0];
  const std::int64_t x = ox * o.stride[1] - o.padding[1];
  const std::int64_t bottom = std::min(y + o.kernel[0], s.h + o.padding[0]);
  const std::int64_t right = std::min(x + o.kernel[1], s.w + o.padding[1]);
  return {std::max<std::int64_t>(y, 0), std::min(bottom, s.h), std::max<std::int64_t>(x, 0), std::min(right, s.w),
          (bottom - y) * (right - x)};
}

template <class Fold>
Array pool(const Array& src, const ops::PoolOptions& options, const Fold& fold) {
  const ops::PoolSizes s = ops::pool_sizes(src.shape, options);
  Array dst(Shape{s.n, s.c, s.oh, s.ow});
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t c = 0; c < s.c; ++c)
      for (std::int64_t y = 0; y < s.oh; ++y)
        for (std::int64_t x = 0; x < s.ow; ++x) {
          const Window w = window(s, y, x);
          std::vector<double> values;
          for (std::int64_t i = w.top; i < w.bottom; ++i)
            for (std::int64_t j = w.left; j < w.right; ++j) values.push_back(src.at({n, c, i, j}));
          dst.at({n, c, y, x}) = fold(values, w.area);
        }
  return dst;
}

Array max_pool(const Array& src, const ops::PoolOptions& options) {
  return pool(src, options, [](const std::vector<double>& v, std::int64_t) { return *std::ranges::max_element(v); });
}

Array avg_pool(const Array& src, const ops::PoolOptions& options) {
  return pool(src, options, [&](const std::vector<double>& v, std::int64_t area) {
    double total = 0;
    for (const double x : v) total += x;
    return total / (options.count_include_pad ? static_cast<double>(area) : static_cast<double>(v.size()));
  });
}

struct Geometry {
  Shape src;
  ops::PoolOptions options;
};

const std::vector<Geometry> kGeometries = {
    {{1, 1, 1, 1}, {.kernel = {1, 1}}},
    {{2, 3, 8, 6}, {.kernel = {2, 2}}},
    {{2, 3, 7, 5}, {.kernel = {2, 2}}},
    {{1, 2, 7, 9}, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}}},
    {{1, 2, 7, 7}, {.kernel = {2, 2}, .stride = {3, 3}}},
    {{1, 2, 7, 6}, {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}},
    {{1, 2, 7, 6}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true}},
    {{1, 1, 5, 5}, {.kernel = {2, 2}, .stride = {3, 3}, .padding = {1, 1}, .ceil_mode = true}},
    {{2, 17, 4, 4}, {.kernel = {4, 4}}},
    {{1, 1, 3, 50}, {.kernel = {3, 5}, .stride = {1, 5}, .padding = {1, 2}}},
};

/// Each window's gradient goes to its first largest value.
Array max_pool_gradient(const Array& src, const Array& diff_dst, const ops::PoolOptions& options) {
  const ops::PoolSizes s = ops::pool_sizes(src.shape, options);
  Array diff_src(src.shape);
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t c = 0; c < s.c; ++c)
      for (std::int64_t y = 0; y < s.oh; ++y)
        for (std::int64_t x = 0; x < s.ow; ++x) {
          const Window w = window(s, y, x);
          std::array<std::int64_t, 2> winner{w.top, w.left};
          for (std::int64_t i = w.top; i < w.bottom; ++i)
            for (std::int64_t j = w.left; j < w.right; ++j) {
              if (src.at({n, c, i, j}) > src.at({n, c, winner[0], winner[1]})) winner = {i, j};
            }
          diff_src.at({n, c, winner[0], winner[1]}) += diff_dst.at({n, c, y, x});
        }
  return diff_src;
}

TEST_CASE("max_pool2d picks the largest and sends its gradient there", "[ops][pool]") {
  for (const Geometry& g : kGeometries) {
    for (const bool ties : {false, true}) {
      check({.name = fmt::format("max {} {} {}", g.src.str(), g.options.str(), ties ? "with ties" : ""),
             .inputs = {{ties ? integers(g.src, 2) : normal(g.src, 1)}},
             .build = [g](const std::vector<Value>& x) { return std::vector{max_pool2d(x[0], g.options)}; },
             .reference = [g](const std::vector<Array>& x) { return std::vector{max_pool(x[0], g.options)}; },
             .scale = Scale::exact,
             .reference_gradient =
                 [g](const std::vector<Array>& x, const std::vector<Array>& seeds) {
                   return std::vector{max_pool_gradient(x[0], seeds[0], g.options)};
                 }});
    }
  }
}

TEST_CASE("avg_pool2d is the mean, with padding counted or not", "[ops][pool]") {
  for (Geometry g : kGeometries) {
    for (const bool include : {true, false}) {
      if (!include && g.options.padding == std::array<std::int64_t, 2>{0, 0}) continue;
      g.options.count_include_pad = include;
      check({.name = fmt::format("average {} {}", g.src.str(), g.options.str()),
             .inputs = {{normal(g.src, 3)}},
             .build = [g](const std::vector<Value>& x) { return std::vector{avg_pool2d(x[0], g.options)}; },
             .reference = [g](const std::vector<Array>& x) { return std::vector{avg_pool(x[0], g.options)}; },
             .tolerance = 1.2e-6});
    }
  }
  check({.name = "global average",
         .inputs = {{integers({2, 3, 4, 8}, 4)}},
         .build = [](const std::vector<Value>& x) { return std::vector{global_avg_pool2d(x[0])}; },
         .reference =
             [](const std::vector<Array>& x) {
               return std::vector{avg_pool(x[0], {.kernel = {4, 8}})};
             },
         .scale = Scale::exact});
}

TEST_CASE("the gradient of avg_pool2d has a gradient", "[ops][pool]") {
  const Shape src{1, 2, 6, 6};
  const ops::PoolOptions options{.kernel = {2, 2}, .stride = {2, 1}};
  check({.name = "averages spread back",
         .inputs = {{integers({1, 2, 3, 5}, 1)}},
         .build =
             [=](const std::vector<Value>& x) {
               return std::vector{x[0].graph().add(std::make_shared<ops::AvgPoolBackward>(options, src), x)};
             },
         .reference =
             [=](const std::vector<Array>& x) {
               Array diff_src(src);
               for (std::int64_t c = 0; c < 2; ++c)
                 for (std::int64_t i = 0; i < 3 * 5 * 4; ++i) {
                   const std::int64_t y = i / 20, column = i / 4 % 5;
                   diff_src.at({0, c, 2 * y + i / 2 % 2, column + i % 2}) += x[0].at({0, c, y, column}) / 4;
                 }
               return std::vector{diff_src};
             },
         .scale = Scale::exact});
}

TEST_CASE("in max_pool2d the first of equals wins, and a NaN wins over all", "[ops][pool]") {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const Input src{Array({1, 1, 2, 10}, {3, 3, -0.0, 0, 1,   nan, -inf, -inf, inf, 2,  //
                                        3, 3, 0,    0, nan, 7,   -inf, -inf, 1,   inf})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results = run(device, {src}, [](const std::vector<Value>& x) {
      const Value dst = max_pool2d(x[0], {.kernel = {2, 2}});
      return std::vector{dst, Value(&x[0].graph(), dst.node_id(), 1), gradient(sum(dst * 1.0F), x).front()};
    });
    const Array dst = to_array(results[0]);
    CHECK(dst.values[0] == 3);
    CHECK(dst.values[1] == 0);
    CHECK(std::isnan(dst.values[2]));
    CHECK(dst.values[3] == -inf);
    CHECK(dst.values[4] == inf);
    CHECK(to_array(results[1]).values == std::vector<double>{0, 0, 1, 0, 0});
    CHECK(to_array(results[2]).values ==
          std::vector<double>{1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("pooling refuses what does not fit", "[ops][pool]") {
  const auto error_of = [](const Shape& src, const ops::PoolOptions& options) {
    return shape_error({{DType::f32, src}},
                       [&](const std::vector<Value>& x) { return std::vector{max_pool2d(x[0], options)}; });
  };
  CHECK_THAT(error_of({2, 3, 4}, {}), contains("[2, 3, 4]"));
  CHECK_THAT(error_of({0, 3, 4, 4}, {}), contains("[0, 3, 4, 4]"));
  CHECK_THAT(error_of({1, 1, 2, 5}, {.kernel = {3, 3}}), contains("3x3") && contains("[1, 1, 2, 5]"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {.kernel = {2, 2}, .padding = {2, 2}}), contains("padding"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {.kernel = {0, 2}}), contains("kernel"));
}

}  // namespace
}  // namespace concord::test
