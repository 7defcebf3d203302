// Top-k: order, ties, NaN, and the way back of gradients.
#include "concord/ops/top_k.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "concord/ops/axis.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Values and indices.
std::vector<Array> best(const Array& x, std::int64_t k, std::size_t axis, bool largest) {
  const ops::AxisSizes s = ops::axis_sizes(x.shape, axis);
  Array values(ops::with_size(x.shape, axis, k)), indices = values;
  for (std::int64_t line = 0; line < s.outer * s.inner; ++line) {
    const std::int64_t outer = line / s.inner, in = line % s.inner;
    const auto at = [&](std::int64_t i) {
      return x.values[static_cast<std::size_t>((outer * s.length + i) * s.inner + in)];
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(s.length));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](std::int64_t a, std::int64_t b) { return largest ? at(a) > at(b) : at(a) < at(b); });
    for (std::int64_t i = 0; i < k; ++i) {
      const auto to = static_cast<std::size_t>((outer * k + i) * s.inner + in);
      values.values[to] = at(order[static_cast<std::size_t>(i)]);
      indices.values[to] = static_cast<double>(order[static_cast<std::size_t>(i)]);
    }
  }
  return {values, indices};
}

TEST_CASE("top_k finds the largest and the smallest, the first of equal ones", "[ops][top_k]") {
  struct Sizes {
    Shape shape;
    std::int64_t k;
    std::size_t axis;
  };
  for (const Sizes& s : {Sizes{{3, 11}, 4, 1}, {{7, 3}, 2, 0}, {{2, 5, 3}, 5, 1}, {{1, 150}, 1, 1}, {{1}, 1, 0}}) {
    for (const bool largest : {true, false}) {
      const auto build = [s, largest](const std::vector<Value>& x) {
        const TopKResult result = top_k(x[0], s.k, static_cast<std::int64_t>(s.axis), largest);
        return std::vector{result.values, result.indices};
      };
      const auto reference = [s, largest](const std::vector<Array>& x) { return best(x[0], s.k, s.axis, largest); };
      const std::string name = fmt::format("{} of {} along {}", s.k, s.shape.str(), s.axis);
      check({.name = name + ", ties",
             .inputs = {{integers(s.shape, 1)}},
             .build = build,
             .reference = reference,
             .scale = Scale::exact,
             .gradient = false});
      // Without ties, where the difference quotient is a gradient; the seeds are not whole.
      check({.name = name,
             .inputs = {{normal(s.shape, 2)}},
             .build = [&](const std::vector<Value>& x) { return std::vector{build(x)[0]}; },
             .reference = [&](const std::vector<Array>& x) { return std::vector{reference(x)[0]}; }});
    }
  }
}

TEST_CASE("top_k puts NaN above all numbers, and zeros of both signs are equal", "[ops][top_k]") {
  const double inf = std::numeric_limits<double>::infinity();
  const Input values{Array({6}, {-inf, std::nan(""), 0.0, -0.0, inf, -2})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {values}, [](const std::vector<Value>& x) {
      return std::vector{top_k(x[0], 6).indices, top_k(x[0], 6, 0, false).indices};
    });
    CHECK(to_array(results[0]).values == std::vector<double>{1, 4, 2, 3, 5, 0});
    CHECK(to_array(results[1]).values == std::vector<double>{0, 5, 2, 3, 4, 1});
  }
}

TEST_CASE("top_k refuses what does not fit", "[ops][top_k]") {
  const auto error_of = [](const TensorSpec& spec, std::int64_t k) {
    return shape_error({spec}, [k](const std::vector<Value>& x) { return std::vector{top_k(x[0], k).values}; });
  };
  CHECK_THAT(error_of({DType::f32, {2, 3}}, 4), contains("4 values") && contains("[2, 3]"));
  CHECK_THAT(error_of({DType::f32, {2, 3}}, 0), contains("0 values"));
  CHECK_THAT(error_of({DType::i32, {2, 3}}, 1), contains("i32 [2, 3]"));
}

}  // namespace
}  // namespace concord::test
