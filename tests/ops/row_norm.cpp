// Normalisation of rows, centred and by squares alone, against its definition.
#include "concord/ops/row_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr float kEpsilon = 1e-3F;

/// dst, rstd and, centred, mean.
std::vector<Array> normalised(const Array& src, std::size_t axis, bool centred) {
  const ops::RowSizes sizes = ops::row_sizes(src.shape, axis);
  const auto rows = src.shape.dims().first(axis);
  Array dst = src, rstd(Shape(std::vector<std::int64_t>(rows.begin(), rows.end()))), mean = rstd;
  const auto n = static_cast<std::size_t>(sizes.length);
  for (std::size_t r = 0; r < rstd.values.size(); ++r) {
    double squares = 0;
    for (std::size_t i = 0; centred && i < n; ++i) mean.values[r] += src.values[r * n + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) squares += std::pow(src.values[r * n + i] - mean.values[r], 2);
    rstd.values[r] = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(kEpsilon));
    for (std::size_t i = 0; i < n; ++i)
      dst.values[r * n + i] = (src.values[r * n + i] - mean.values[r]) * rstd.values[r];
  }
  if (centred) return {dst, rstd, mean};
  return {dst, rstd};
}

RowNormResult built(Value x, std::int64_t axis, bool centred) {
  return centred ? row_norm(x, axis, kEpsilon) : row_norm_rms(x, axis, kEpsilon);
}

TEST_CASE("row_norm normalises the last dimensions", "[ops][row_norm]") {
  const std::vector<std::pair<Shape, std::size_t>> cases = {{{4, 7}, 1},     {{2, 3, 5}, 1}, {{37}, 0},
                                                            {{3, 2, 67}, 2}, {{5, 1}, 1},    {{2, 1300}, 1}};
  for (const bool centred : {true, false}) {
    for (const auto& [shape, axis] : cases) {
      check({.name = fmt::format("{} from {}{}", shape.str(), axis, centred ? "" : ", squares"),
             .inputs = {{normal(shape, 1)}},
             .build =
                 [axis = axis, centred](const std::vector<Value>& x) {
                   return std::vector{built(x[0], static_cast<std::int64_t>(axis), centred).dst};
                 },
             .reference = [axis = axis, centred](
                              const std::vector<Array>& x) { return std::vector{normalised(x[0], axis, centred)[0]}; },
             .tolerance = 2e-6,
             .gradient_tolerance = 2e-5});
    }
  }
}

TEST_CASE("row_norm hands out rstd and mean", "[ops][row_norm]") {
  for (const bool centred : {true, false}) {
    check({.name = centred ? "centred" : "squares",
           .inputs = {{normal({3, 4, 9}, 2, 3)}},
           .build =
               [centred](const std::vector<Value>& x) {
                 const RowNormResult result = built(x[0], -1, centred);
                 return centred ? std::vector{result.dst, result.rstd, result.mean}
                                : std::vector{result.dst, result.rstd};
               },
           .reference = [centred](const std::vector<Array>& x) { return normalised(x[0], 2, centred); },
           .tolerance = 2e-6,
           .gradient_tolerance = 2e-5});
  }
}

TEST_CASE("row_norm of values far from zero", "[ops][row_norm]") {
  Array src = normal({3, 200}, 4);
  for (double& v : src.values) v = static_cast<float>(v + 1000);
  check({.name = "around 1000",
         .inputs = {{src}},
         .build = [](const std::vector<Value>& x) { return std::vector{row_norm(x[0], 1, kEpsilon).dst}; },
         .reference = [](const std::vector<Array>& x) { return std::vector{normalised(x[0], 1, true)[0]}; },
         .tolerance = 2e-4,
         .gradient_tolerance = 1e-3});
}

TEST_CASE("row_norm and its gradient with what follows them", "[ops][row_norm][fused]") {
  // Scale and shift by place, a factor by row, a sum by element: the values around a layer normalisation.
  const std::vector<std::pair<Shape, std::size_t>> cases = {{{4, 7}, 1}, {{2, 3, 5}, 1}, {{37}, 0}, {{3, 2, 67}, 2}};
  for (const bool centred : {true, false}) {
    for (const auto& [shape, axis] : cases) {
      const auto dims = shape.dims();
      std::vector<std::int64_t> one_a_row(dims.begin(), dims.end());
      std::fill(one_a_row.begin() + static_cast<std::ptrdiff_t>(axis), one_a_row.end(), 1);
      const std::vector<std::int64_t> place(dims.begin() + static_cast<std::ptrdiff_t>(axis), dims.end());
      check({.name = fmt::format("{} from {}{}", shape.str(), axis, centred ? "" : ", squares"),
             .inputs = {{normal(shape, 1)},
                        {normal(Shape(place), 2)},
                        {normal(Shape(place), 3)},
                        {normal(Shape(one_a_row), 4)},
                        {normal(shape, 5)}},
             .build =
                 [axis = axis, centred](const std::vector<Value>& x) {
                   // x[0] is read by the sum too: the gradients of both meet behind that of the norm.
                   const Value dst = built(x[0], static_cast<std::int64_t>(axis), centred).dst;
                   return std::vector{(dst * x[1] + x[2]) * x[3] + x[4] + x[0]};
                 },
             .reference =
                 [axis = axis, centred](const std::vector<Array>& x) {
                   Array y = normalised(x[0], axis, centred)[0];
                   const std::size_t length = x[1].values.size();
                   for (std::size_t i = 0; i < y.values.size(); ++i) {
                     const std::size_t row = i / length, j = i % length;
                     y.values[i] = (y.values[i] * x[1].values[j] + x[2].values[j]) * x[3].values[row] + x[4].values[i] +
                                   x[0].values[i];
                   }
                   return std::vector{y};
                 },
             .tolerance = 4e-6,
             .gradient_tolerance = 4e-5});
    }
  }
}

TEST_CASE("row_norm refuses what does not fit", "[ops][row_norm]") {
  const auto build = [](const std::vector<Value>& x) { return std::vector{row_norm(x[0], 1).dst}; };
  CHECK_THAT(shape_error({{DType::i32, {4, 3}}}, build), contains("i32 [4, 3]"));
  CHECK_THAT(shape_error({{DType::f32, {4, 0}}}, build), contains("[4, 0]"));
  CHECK_THAT(shape_error({{DType::f32, {4}}}, build), contains("[4]"));
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}});
  CHECK_THROWS_AS(row_norm(x, 1, -1), ArgumentError);
}

}  // namespace
}  // namespace concord::test
