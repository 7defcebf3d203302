// Pooling against plain loops; who wins at ties and against NaN.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/pool_loops.hpp"

namespace concord::test {
namespace {

struct Geometry {
  Shape src;
  MaxPool2dOptions options;
};
const std::vector<Geometry> kImages = {
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
const MaxPool1dOptions kSignal{.kernel = {3}, .stride = {2}, .padding = {1}, .ceil_mode = true};
const MaxPool3dOptions kVolume{.kernel = {2, 3, 2}, .stride = {2, 2, 1}, .padding = {1, 0, 1}};

/// Every source with its windows, whose size is fixed.
std::vector<std::pair<Shape, PoolOptions>> fixed_windows() {
  std::vector<std::pair<Shape, PoolOptions>> all{{{2, 3, 10}, kSignal}, {{2, 2, 5, 6, 4}, kVolume}};
  all.emplace_back(Shape{2, 3, 4, 4, 6}, MaxPool3dOptions{});
  // Windows of one slice of a volume.
  all.emplace_back(Shape{2, 2, 3, 6, 5}, MaxPool3dOptions{.kernel = {1, 2, 2}});
  all.emplace_back(Shape{1, 2, 3, 7, 5},
                   MaxPool3dOptions{.kernel = {1, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 1, 1}});
  for (const Geometry& g : kImages) all.emplace_back(g.src, g.options);
  return all;
}
/// Those that dilation allows for max pooling only, and adaptive ones.
const std::vector<std::pair<Shape, PoolOptions>> kDilated{
    {{2, 2, 9, 8}, MaxPool2dOptions{.kernel = {3, 2}, .stride = {1, 2}, .dilation = {2, 3}}},
    {{1, 3, 9, 8}, MaxPool2dOptions{.kernel = {3, 3}, .stride = {2, 2}, .padding = {2, 1}, .dilation = {2, 2}}},
    {{2, 2, 13}, MaxPool1dOptions{.kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {3}, .ceil_mode = true}},
};
const std::vector<std::pair<Shape, PoolOptions>> kAdaptive{
    {{2, 3, 7, 10}, {.adaptive = {1, 3, 4}}},
    {{1, 2, 3, 4}, {.adaptive = {1, 5, 7}}},  // more parts than pixels
    {{2, 2, 11}, {.rank = 1, .adaptive = {1, 1, 4}}},
    {{1, 2, 5, 4, 7}, {.rank = 3, .adaptive = {2, 4, 3}}},
};

void check_max(const Shape& src, const PoolOptions& options) {
  for (const bool ties : {false, true}) {
    check({.name = fmt::format("max {} {} {}", src.str(), options.str(), ties ? "with ties" : ""),
           .inputs = {{ties ? integers(src, 2) : normal(src, 1)}},
           .build =
               [=](const std::vector<Value>& x) {
                 const MaxPooled pooled = max_pool_with_indices(x[0], options);
                 return std::vector{pooled.values, pooled.indices};
               },
           .reference = [=](const std::vector<Array>& x) { return max_pool_loops(x[0], options); },
           .scale = Scale::exact,
           .reference_gradient =
               [=](const std::vector<Array>& x, const std::vector<Array>& seeds) {
                 return std::vector{max_pool_gradient(x[0], seeds[0], options)};
               }});
  }
}

void check_average(const Shape& src, const PoolOptions& options) {
  check({.name = fmt::format("average {} {}", src.str(), options.str()),
         .inputs = {{normal(src, 3)}},
         .build = [=](const std::vector<Value>& x) { return std::vector{avg_pool(x[0], options)}; },
         .reference = [=](const std::vector<Array>& x) { return std::vector{avg_pool_loops(x[0], options)}; },
         .tolerance = 1.2e-6});
}

TEST_CASE("max_pool picks the largest and sends its gradient there", "[ops][pool]") {
  for (const auto& [src, options] : fixed_windows()) check_max(src, options);
  for (const auto& [src, options] : kDilated) check_max(src, options);
  for (const auto& [src, options] : kAdaptive) check_max(src, options);
}

TEST_CASE("avg_pool is the mean, with padding counted or not, or divided by a given number", "[ops][pool]") {
  for (auto [src, options] : fixed_windows()) {
    check_average(src, options);
    if (options.padding == Spatial{0, 0, 0}) continue;
    options.count_include_pad = false;
    check_average(src, options);
  }
  check_average({1, 2, 7, 6}, AvgPool2dOptions{.kernel = {3, 2}, .padding = {1, 1}, .divisor_override = 5});
  for (const auto& [src, options] : kAdaptive) check_average(src, options);
}

TEST_CASE("with ceil_mode one window may be larger than what there is, as in PyTorch", "[ops][pool]") {
  const Input small{Array({1, 1, 2, 2}, {1, 2, 3, 6})};
  for (const DevicePtr& device : devices()) {
    const std::vector<Tensor> pooled = run(device, {small}, [](const std::vector<Value>& x) {
      return std::vector{max_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}),
                         avg_pool2d(x[0], {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true})};
    });
    CHECK(to_array(pooled[0]).values == std::vector<double>{6});
    CHECK(to_array(pooled[1]).values == std::vector<double>{3});
  }
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 1, 2, 2}});
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = {4, 4}, .stride = {2, 2}, .ceil_mode = true}), ShapeError);
}

TEST_CASE("adaptive and global pooling", "[ops][pool]") {
  const auto means = [](const Array& x) { return avg_pool_loops(x, AvgPool2dOptions{.kernel = {4, 8}}); };
  const auto largest = [](const Array& x) { return max_pool_loops(x, MaxPool2dOptions{.kernel = {4, 8}}).front(); };
  check({.name = "global",
         .inputs = {{integers({2, 3, 4, 8}, 4)}},
         .build =
             [](const std::vector<Value>& x) {
               return std::vector{global_avg_pool2d(x[0]), global_avg_pool(x[0]), global_max_pool(x[0])};
             },
         .reference =
             [=](const std::vector<Array>& x) {
               return std::vector{means(x[0]), means(x[0]), largest(x[0])};
             },
         .scale = Scale::exact,
         .gradient = false});
  const std::array<std::int64_t, 2> halves{2, 4}, thirds{3, 8};
  check({.name = "adaptive",
         .inputs = {{normal({2, 3, 4, 8}, 4)}},
         .build =
             [=](const std::vector<Value>& x) {
               return std::vector{adaptive_avg_pool(x[0], halves), adaptive_max_pool(x[0], thirds),
                                  adaptive_max_pool_with_indices(x[0], halves).indices};
             },
         .reference =
             [](const std::vector<Array>& x) {
               const PoolOptions two = MaxPool2dOptions{}, three{.adaptive = {1, 3, 8}};
               return std::vector{avg_pool_loops(x[0], two), max_pool_loops(x[0], three)[0],
                                  max_pool_loops(x[0], two)[1]};
             }});
}

TEST_CASE("lp_pool is the p-norm of each window", "[ops][pool]") {
  for (const float p : {1.0F, 2.0F, 3.0F, 2.5F}) {
    const AvgPool2dOptions options{.kernel = {2, 3}, .stride = {2, 2}};
    check({.name = fmt::format("lp_pool {}", p),
           .inputs = {{uniform({2, 3, 6, 7}, 3, 0.2, 2)}},
           .build = [=](const std::vector<Value>& x) { return std::vector{lp_pool(x[0], p, options)}; },
           .reference =
               [=](const std::vector<Array>& x) {
                 Array powers = x[0];
                 for (double& v : powers.values) v = std::pow(v, static_cast<double>(p));
                 Array dst = avg_pool_loops(powers, options);
                 for (double& v : dst.values) v = std::pow(v * 6, 1 / static_cast<double>(p));
                 return std::vector{dst};
               },
           .tolerance = 2e-6});
  }
}

/// Values at places of a channel of four pixels; two of them share one, one lies outside.
const Input kPlaces{Array({1, 2, 3}, {2, 0, 2, 3, 9, 1}), DType::i32};

TEST_CASE("max_unpool puts values where they came from, the last one where they meet", "[ops][pool]") {
  const std::array<std::int64_t, 1> four{4};
  check({.name = "unpool",
         .inputs = {{integers({1, 2, 3}, 5)}, kPlaces},
         .build = [=](const std::vector<Value>& x) { return std::vector{max_unpool(x[0], x[1], four)}; },
         .reference =
             [](const std::vector<Array>& x) {
               const std::vector<double>& v = x[0].values;
               return std::vector{Array({1, 2, 4}, {v[1], 0, v[2], 0, 0, v[5], 0, v[3]})};
             },
         .scale = Scale::exact,
         .reference_gradient =
             [](const std::vector<Array>&, const std::vector<Array>& seeds) {
               const std::vector<double>& d = seeds[0].values;
               return std::vector{Array({1, 2, 3}, {d[2], d[0], d[2], d[7], 0, d[5]})};
             }});
  const Shape src{2, 3, 6, 7};
  const MaxPool2dOptions options{.kernel = {2, 3}};
  check({.name = "there and back",
         .inputs = {{normal(src, 6)}},
         .build =
             [=](const std::vector<Value>& x) {
               const MaxPooled pooled = max_pool_with_indices(x[0], options);
               return std::vector{max_unpool(pooled.values, pooled.indices, x[0].shape().dims().subspan(2))};
             },
         .reference =
             [=](const std::vector<Array>& x) {
               return std::vector{max_pool_gradient(x[0], max_pool_loops(x[0], options)[0], options)};
             },
         .scale = Scale::exact,
         .reference_gradient =
             [=](const std::vector<Array>& x, const std::vector<Array>& seeds) {
               Array pooled = empty_result(src, options);
               each_window(src, options, [&](const Window& w, std::int64_t channel, std::int64_t i) {
                 pooled.values[at(i)] = seeds[0].values[at(channel + winner(x[0], w, channel))];
               });
               return std::vector{max_pool_gradient(x[0], pooled, options)};
             }});
}

TEST_CASE("the gradients of pooling have gradients", "[ops][pool]") {
  const Shape src{1, 2, 6, 6};
  const PoolOptions options = AvgPool2dOptions{.kernel = {2, 2}, .stride = {2, 1}};
  check({.name = "averages spread back",
         .inputs = {{integers({1, 2, 3, 5}, 1)}},
         .build =
             [=](const std::vector<Value>& x) {
               return std::vector{x[0].graph().add(std::make_shared<ops::AvgPoolBackward>(options, src), x)};
             },
         .reference =
             [=](const std::vector<Array>& x) {
               Array diff_src(src);
               each_window(src, options, [&](const Window& w, std::int64_t channel, std::int64_t i) {
                 for (const std::int64_t place : w.places)
                   diff_src.values[at(channel + place)] += x[0].values[at(i)] / 4;
               });
               return std::vector{diff_src};
             },
         .scale = Scale::exact});
  const Array pooled = integers(src, 3);
  check(
      {.name = "largest values spread back",
       .inputs = {{integers({1, 2, 3, 5}, 1)}, {max_pool_loops(pooled, options)[1], DType::i32}},
       .build =
           [=](const std::vector<Value>& x) {
             return std::vector{x[0].graph().add(std::make_shared<ops::MaxPoolBackward>(options, src), x)};
           },
       .reference = [=](const std::vector<Array>& x) { return std::vector{max_pool_gradient(pooled, x[0], options)}; },
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
    CHECK(to_array(results[1]).values == std::vector<double>{0, 2, 5, 6, 8});
    CHECK(to_array(results[2]).values ==
          std::vector<double>{1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("pooling refuses what does not fit", "[ops][pool]") {
  const auto error_of = [](const Shape& src, const MaxPool2dOptions& options) {
    return shape_error({{DType::f32, src}},
                       [&](const std::vector<Value>& x) { return std::vector{max_pool2d(x[0], options)}; });
  };
  CHECK_THAT(error_of({2, 3, 4}, {}), contains("[2, 3, 4]"));
  CHECK_THAT(error_of({1, 3, 0, 4}, {}), contains("[1, 3, 0, 4]"));
  CHECK_THAT(error_of({1, 1, 2, 5}, {.kernel = {3, 3}}), contains("3x3") && contains("[1, 1, 2, 5]"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {.kernel = {2, 2}, .padding = {2, 2}}), contains("padding"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {.kernel = {0, 2}}), contains("kernel"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {.dilation = {0, 2}}), contains("dilation"));
  CHECK_THAT(error_of({1, 1, 5, 5}, {.dilation = {1, 5}}), contains("dilation 1x5 does not fit src [1, 1, 5, 5]"));
  const auto error_with = [](const std::vector<TensorSpec>& inputs, const std::function<Value(std::vector<Value>)>& f) {
    return shape_error(inputs, [&](const std::vector<Value>& x) { return std::vector{f(x)}; });
  };
  const TensorSpec images{DType::f32, {2, 3, 4, 4}}, pooled{DType::f32, {2, 3, 2, 2}};
  const std::array<std::int64_t, 2> none{0, 2};
  const std::array<std::int64_t, 1> one{2};
  ops::PoolOptions dilated = MaxPool2dOptions{.kernel = {2, 2}, .dilation = {1, 2}};
  CHECK_THAT(error_with({images}, [&](auto x) { return avg_pool(x[0], dilated); }),
             contains("only max pooling is dilated"));
  CHECK_THAT(error_with({images}, [](auto x) { return max_pool1d(x[0], {}); }),
             contains("(N, C, W), got [2, 3, 4, 4]"));
  CHECK_THAT(error_with({images}, [&](auto x) { return adaptive_avg_pool(x[0], none); }), contains("0x2"));
  CHECK_THAT(error_with({images}, [&](auto x) { return adaptive_max_pool(x[0], one); }), contains("1 sizes"));
  CHECK_THAT(error_with({{DType::f32, {4, 4}}}, [](auto x) { return global_avg_pool(x[0]); }), contains("[4, 4]"));
  CHECK_THAT(error_with({pooled, {DType::i32, {2, 3, 2, 1}}}, [&](auto x) { return max_unpool(x[0], x[1], none); }),
             contains("[2, 3, 2, 1]"));
}

}  // namespace
}  // namespace concord::test
