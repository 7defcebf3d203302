// Reductions over every kind of axis set; shared gradients at ties; sums back to a broadcast shape.
#include "concord/ops/reduce.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/ops/pointwise.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using Axes = std::vector<std::int64_t>;

/// Folds over `axes` (kept with size 1).
template <class F>
Array fold(const Array& src, const Axes& axes, double start, const F& f) {
  Axes dims(src.shape.dims().begin(), src.shape.dims().end());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool is_reduced =
        axes.empty() || std::ranges::any_of(axes, [&](std::int64_t axis) { return src.shape.index_of(axis) == i; });
    if (is_reduced) dims[i] = 1;
  }
  Array dst{Shape(dims)};
  std::ranges::fill(dst.values, start);
  const auto from = src.shape.strides();
  const auto to = dst.shape.strides();
  for (std::size_t i = 0; i < src.values.size(); ++i) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const std::int64_t index = static_cast<std::int64_t>(i) / from[axis] % src.shape.dims()[axis];
      if (dims[axis] != 1) offset += index * to[axis];
    }
    double& total = dst.values[static_cast<std::size_t>(offset)];
    total = f(total, src.values[i]);
  }
  return dst;
}

double plus(double a, double b) { return a + b; }
double times(double a, double b) { return a * b; }
double larger(double a, double b) { return std::max(a, b); }
double smaller(double a, double b) { return std::min(a, b); }

const std::vector<std::pair<Shape, Axes>> kReductions = {{{3, 4, 5}, {}},
                                                         {{3, 4, 5}, {0}},
                                                         {{3, 4, 5}, {1}},
                                                         {{3, 4, 5}, {-1}},
                                                         {{3, 4, 5}, {0, 2}},
                                                         {{3, 4, 5}, {1, 2}},
                                                         {{3, 4, 5}, {0, 1}},
                                                         {{1, 700}, {1}},
                                                         {{700, 2}, {0}},
                                                         {{1, 1, 1}, {1}},
                                                         {{2, 3, 4, 5}, {0, 2, 3}},
                                                         {{2, 3, 4, 5}, {1, 3}},
                                                         {{2, 2, 3, 2, 3}, {0, 2, 4}},
                                                         {{1000}, {}}};

TEST_CASE("sums, largest and smallest over any axes", "[ops][reduce]") {
  for (const auto& [shape, axes] : kReductions) {
    check({.name = fmt::format("{} over [{}]", shape.str(), fmt::join(axes, ", ")),
           .inputs = {{integers(shape, 1)}, {normal(shape, 2)}},
           .build =
               [axes = axes](const std::vector<Value>& x) {
                 return std::vector{sum(x[0], axes, true), reduce_max(x[1], axes, true), reduce_min(x[1], axes, true)};
               },
           .reference =
               [axes = axes](const std::vector<Array>& x) {
                 return std::vector{fold(x[0], axes, 0, plus), fold(x[1], axes, -1e300, larger),
                                    fold(x[1], axes, 1e300, smaller)};
               },
           .scale = Scale::exact});
  }
}

TEST_CASE("sums and means of random numbers", "[ops][reduce]") {
  for (const auto& [shape, axes] : {kReductions[0], kReductions[4], kReductions[7], kReductions[8]}) {
    check({.name = fmt::format("{} over [{}]", shape.str(), fmt::join(axes, ", ")),
           .inputs = {{uniform(shape, 3, 0, 1)}},
           .build =
               [axes = axes](const std::vector<Value>& x) {
                 return std::vector{sum(x[0], axes, true), mean(x[0], axes, true)};
               },
           .reference =
               [axes = axes](const std::vector<Array>& x) {
                 Array total = fold(x[0], axes, 0, plus);
                 Array average = total;
                 const auto count = static_cast<double>(x[0].values.size() / total.values.size());
                 for (double& v : average.values) v /= count;
                 return std::vector{total, average};
               },
           .tolerance = 1.2e-6});
  }
}

TEST_CASE("products over any axes", "[ops][reduce]") {
  for (const auto& [shape, axes] : kReductions) {
    // Around 1, so that neither the product nor a part of it leaves the range; the gradients are those of 1000 factors.
    check({.name = fmt::format("{} over [{}]", shape.str(), fmt::join(axes, ", ")),
           .inputs = {{uniform(shape, 3, 0.95, 1.05)}},
           .build = [axes = axes](const std::vector<Value>& x) { return std::vector{prod(x[0], axes, true)}; },
           .reference = [axes = axes](const std::vector<Array>& x) { return std::vector{fold(x[0], axes, 1, times)}; },
           .tolerance = 1e-5,
           .gradient_tolerance = 2e-5});
  }
  check({.name = "of whole numbers, some of them 0",
         .inputs = {{Array({3, 4}, {2, -3, 0, 4, 0, 1, 5, 0, -1, -2, -3, 4})}},
         .build = [](const std::vector<Value>& x) { return std::vector{prod(x[0], {1})}; },
         .reference =
             [](const std::vector<Array>& x) { return std::vector{Array(Shape{3}, fold(x[0], {1}, 1, times).values)}; },
         .scale = Scale::exact});
}

TEST_CASE("the gradient of a product with factors of 0", "[ops][reduce]") {
  const Input x{Array({4, 3}, {2, 0, 4, 0, 5, 0, 2, 3, 4, 0, 0, 0})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {x}, [](const std::vector<Value>& v) {
      return std::vector{prod(v[0], {1}), gradient(sum(prod(v[0], {1})), v).front()};
    });
    CHECK(to_array(results[0]).values == std::vector<double>{0, 0, 24, 0});
    CHECK(to_array(results[1]).values == std::vector<double>{0, 8, 0, 0, 0, 0, 12, 8, 6, 0, 0, 0});
  }
}

TEST_CASE("dimensions are dropped unless kept", "[ops][reduce]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {3, 4, 5}});
  CHECK(sum(x).shape() == Shape{});
  CHECK(sum(x, {}, true).shape() == Shape{1, 1, 1});
  CHECK(mean(x, {1}).shape() == Shape{3, 5});
  CHECK(reduce_max(x, {0, -1}).shape() == Shape{4});
  CHECK(argmax(x, -1).shape() == Shape{3, 4});
  CHECK(argmax(x, 1, true).shape() == Shape{3, 1, 5});
  CHECK(argmax(x, 1).dtype() == DType::i32);
}

TEST_CASE("argmax gives the first winner, and a NaN wins", "[ops][reduce]") {
  const double nan = std::nan("");
  const Input x{Array({4, 5}, {1, 3, 3, 0, 3, -1, -2, -1, -3, -4, 0, nan, 9, nan, 0, 5, 4, 3, 2, 1})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {x}, [](const std::vector<Value>& v) {
      return std::vector{argmax(v[0], 1), argmax(v[0], 0), reduce_max(v[0], {1})};
    });
    CHECK(to_array(results[0]).values == std::vector<double>{1, 0, 1, 0});
    CHECK(to_array(results[1]).values == std::vector<double>{3, 2, 2, 2, 0});
    CHECK(std::isnan(to_array(results[2]).values[2]));
  }
}

TEST_CASE("winners of a tie share the gradient evenly", "[ops][reduce]") {
  const Input x{Array({2, 4}, {3, 1, 3, 0, -2, -2, -2, -2})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {x}, [](const std::vector<Value>& v) {
      return std::vector{gradient(sum(reduce_max(v[0], {1})), v).front(),
                         gradient(sum(reduce_min(v[0], {1})), v).front()};
    });
    CHECK(to_array(results[0]).values == std::vector<double>{0.5, 0, 0.5, 0, 0.25, 0.25, 0.25, 0.25});
    CHECK(to_array(results[1]).values == std::vector<double>{0, 0, 0, 1, 0.25, 0.25, 0.25, 0.25});
  }
}

TEST_CASE("sum_to undoes a broadcast", "[ops][reduce]") {
  const std::vector<std::pair<Shape, Axes>> cases = {{{4, 5}, {0}},    {{1, 4, 5}, {0}},    {{3, 1, 5}, {1}},
                                                     {{3, 4, 1}, {2}}, {{1, 1, 5}, {0, 1}}, {{5}, {0, 1}},
                                                     {{}, {}}};
  for (const auto& [shape, axes] : cases) {
    check({.name = shape.str(),
           .inputs = {{integers({3, 4, 5}, 1)}},
           .build = [shape = shape](const std::vector<Value>& x) { return std::vector{sum_to(x[0], shape)}; },
           .reference =
               [shape = shape, axes = axes](const std::vector<Array>& x) {
                 return std::vector{Array(shape, fold(x[0], axes, 0, plus).values)};
               },
           .scale = Scale::exact});
  }
}

TEST_CASE("reductions refuse wrong axes", "[ops][reduce]") {
  const auto error_of = [](const std::function<Value(Value)>& build) {
    return shape_error({{DType::f32, {2, 6}}}, [&](const std::vector<Value>& x) { return std::vector{build(x[0])}; });
  };
  CHECK_THAT(error_of([](Value x) { return sum(x, {2}); }), contains("[2, 6]"));
  CHECK_THAT(error_of([](Value x) { return sum(x, {0, -2}); }), contains("twice"));
  CHECK_THAT(error_of([](Value x) { return sum_to(x, {3}); }), contains("[3]"));
  CHECK_THAT(error_of([](Value x) { return reduce_max(cast(x, DType::i32)); }), contains("f32"));
}

}  // namespace
}  // namespace concord::test
