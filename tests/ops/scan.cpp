// Cumulative sums: inclusive, exclusive, from either end.
#include "concord/ops/scan.hpp"

#include <fmt/format.h>

#include "concord/ops/axis.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

Array summed(const Array& x, std::size_t axis, const CumSumOptions& options) {
  const ops::AxisSizes s = ops::axis_sizes(x.shape, axis);
  Array dst = x;
  for (std::int64_t line = 0; line < s.outer * s.inner; ++line) {
    const std::int64_t first = line / s.inner * s.length * s.inner + line % s.inner;
    double sum = 0;
    for (std::int64_t i = 0; i < s.length; ++i) {
      const auto at = static_cast<std::size_t>(first + (options.reverse ? s.length - 1 - i : i) * s.inner);
      dst.values[at] = options.exclusive ? sum : sum + x.values[at];
      sum += x.values[at];
    }
  }
  return dst;
}

TEST_CASE("cumsum adds up along an axis", "[ops][scan]") {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const CumSumOptions options{exclusive, reverse};
      for (const auto& [shape, axis] :
           {std::pair{Shape{7}, std::size_t{0}}, {{3, 5}, 0}, {{2, 3, 4}, 1}, {{2, 301}, 1}, {{1, 1}, 0}}) {
        check({.name = fmt::format("{} along {}{}{}", shape.str(), axis, exclusive ? ", exclusive" : "",
                                   reverse ? ", reverse" : ""),
               .inputs = {{integers(shape, 1)}},
               .build =
                   [axis = axis, options](const std::vector<Value>& x) {
                     return std::vector{cumsum(x[0], static_cast<std::int64_t>(axis), options)};
                   },
               .reference = [axis = axis,
                             options](const std::vector<Array>& x) { return std::vector{summed(x[0], axis, options)}; },
               .scale = Scale::exact});
      }
    }
  }
}

TEST_CASE("cumsum refuses what does not fit", "[ops][scan]") {
  const auto build = [](const std::vector<Value>& x) { return std::vector{cumsum(x[0], 2)}; };
  CHECK_THAT(shape_error({{DType::f32, {4, 3}}}, build), contains("[4, 3]"));
  CHECK_THAT(shape_error({{DType::i32, {4, 3, 2}}}, build), contains("i32"));
}

}  // namespace
}  // namespace concord::test
