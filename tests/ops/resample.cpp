// Resampling: interpolation, blurring, and the functions that map axes, against plain loops; layers are held against
// PyTorch in tests/nn.
#include "concord/ops/resample.hpp"

#include <cmath>

#include "concord/ops/rearrange.hpp"
#include "concord/ops/resize.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using Place = std::function<std::int64_t(std::int64_t)>;

/// x with place(j) of the source at j along an axis.
Array moved(const Array& x, std::size_t axis, std::int64_t size, const Place& place) {
  std::vector<std::int64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims[axis] = size;
  Array dst{Shape(dims)};
  const std::vector<std::int64_t> strides = dst.shape.strides(), from = x.shape.strides();
  for (std::size_t i = 0; i < dst.values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), offset = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::int64_t at = rest / strides[d];
      rest %= strides[d];
      offset += (d == axis ? place(at) : at) * from[d];
    }
    dst.values[i] = x.values[static_cast<std::size_t>(offset)];
  }
  return dst;
}

void check_function(const std::string& name, const Shape& shape, const std::function<Value(Value)>& function,
                    const std::function<Array(const Array&)>& reference) {
  check({.name = name + " of " + shape.str(),
         .inputs = {{integers(shape, 1)}},
         .build = [&](const std::vector<Value>& x) { return std::vector{function(x[0])}; },
         .reference = [&](const std::vector<Array>& x) { return std::vector{reference(x[0])}; },
         .scale = Scale::exact});
}

Place reversed(std::int64_t size) {
  return [size](std::int64_t j) { return size - 1 - j; };
}

TEST_CASE("flip reverses axes", "[ops][resample]") {
  check_function(
      "one", {2, 5, 3}, [](Value x) { return flip(x, {1}); },
      [](const Array& x) { return moved(x, 1, 5, reversed(5)); });
  check_function(
      "last two", {2, 5, 3},
      [](Value x) {
        return flip(x, {-1, 1});
      },
      [](const Array& x) { return moved(moved(x, 1, 5, reversed(5)), 2, 3, reversed(3)); });
  check_function(
      "first and last", {4, 2, 3},
      [](Value x) {
        return flip(x, {0, 2});
      },
      [](const Array& x) { return moved(moved(x, 0, 4, reversed(4)), 2, 3, reversed(3)); });
}

TEST_CASE("tile and repeat_interleave repeat", "[ops][resample]") {
  check_function(
      "tile", {2, 3},
      [](Value x) {
        return tile(x, {2, 3});
      },
      [](const Array& x) {
        return moved(moved(x, 0, 4, [](std::int64_t j) { return j % 2; }), 1, 9, [](std::int64_t j) { return j % 3; });
      });
  // 49 is a divisor for which multiplying by the reciprocal in float falls below a whole number.
  check_function(
      "repeat_interleave", {2, 3, 2}, [](Value x) { return repeat_interleave(x, 49, 1); },
      [](const Array& x) { return moved(x, 1, 147, [](std::int64_t j) { return j / 49; }); });
  check_function(
      "once", {2, 3},
      [](Value x) {
        return repeat_interleave(tile(x, {1, 1}), 1, 1);
      },
      [](const Array& x) { return x; });
}

TEST_CASE("padding takes values from the tensor", "[ops][resample]") {
  check_function(
      "reflect", {4, 2, 5},
      [](Value x) {
        return pad(x, PadMode::reflect, {3, 0, 1}, {2, 0, 4});
      },
      [](const Array& x) {
        const auto mirrored = [](std::int64_t size, std::int64_t before) -> Place {
          return [=](std::int64_t j) {
            const std::int64_t p = std::abs(j - before);
            return p < size ? p : 2 * size - 2 - p;
          };
        };
        return moved(moved(x, 0, 9, mirrored(4, 3)), 2, 10, mirrored(5, 1));
      });
  check_function(
      "replicate", {3, 2},
      [](Value x) {
        return pad(x, PadMode::replicate, {5, 1}, {1, 0});
      },
      [](const Array& x) {
        const auto limited = [](std::int64_t size, std::int64_t before) -> Place {
          return [=](std::int64_t j) { return std::clamp<std::int64_t>(j - before, 0, size - 1); };
        };
        return moved(moved(x, 0, 9, limited(3, 5)), 1, 3, limited(2, 1));
      });
  check_function(
      "circular", {3, 2},
      [](Value x) {
        return pad(x, PadMode::circular, {4, 0}, {2, 0});
      },
      [](const Array& x) { return moved(x, 0, 9, [](std::int64_t j) { return (j + 2) % 3; }); });
  check_function(
      "constant", {3}, [](Value x) { return pad(x, PadMode::constant, {1}, {1}, 7); },
      [](const Array& x) {
        return Array({5}, {7, x.values[0], x.values[1], x.values[2], 7});
      });
}

TEST_CASE("interpolation of more rows than one work-group", "[ops][resample]") {
  // Half a place further on, weights are powers of two and the values whole numbers: nothing is rounded.
  check_function(
      "linear", {2, 40, 30},
      [](Value x) { return interpolate(x, {.size = {59}, .mode = Interpolation::linear, .align_corners = true}); },
      [](const Array& x) {
        Array even = moved(x, 2, 59, [](std::int64_t j) { return j / 2; });
        const Array odd = moved(x, 2, 59, [](std::int64_t j) { return (j + 1) / 2; });
        for (std::size_t i = 0; i < even.values.size(); ++i) even.values[i] = (even.values[i] + odd.values[i]) / 2;
        return even;
      });
}

TEST_CASE("nearest_exact takes the position whose centre is nearest", "[ops][resample]") {
  const auto nearest = [](std::int64_t src, std::int64_t dst) -> Place {
    return [=](std::int64_t j) { return (2 * j + 1) * src / (2 * dst); };
  };
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {3, 4}, {9, 16}}) {
    check_function(
        "interpolate", {2, 3, 6, 7},
        [&](Value x) {
          return interpolate(x, {.size = {rows, columns}, .mode = Interpolation::nearest_exact});
        },
        [&](const Array& x) { return moved(moved(x, 2, rows, nearest(6, rows)), 3, columns, nearest(7, columns)); });
    check_function(
        "resize", {6, 2, 7},
        [&](Value x) {
          return resize(x, {{.axis = 0, .size = rows}, {.axis = 2, .size = columns}},
                        {.mode = Interpolation::nearest_exact});
        },
        [&](const Array& x) { return moved(moved(x, 0, rows, nearest(6, rows)), 2, columns, nearest(7, columns)); });
  }
}

TEST_CASE("gaussian_blur is a weighted mean of what lies inside", "[ops][resample]") {
  const auto blurred = [](const Array& x, std::size_t axis) {
    Array sum = x, weights = x;
    for (std::size_t i = 0; i < x.values.size(); ++i) sum.values[i] = weights.values[i] = 0;
    const std::int64_t size = x.shape[static_cast<std::int64_t>(axis)], stride = x.shape.strides()[axis];
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) / stride % size;
      for (std::int64_t d = -1; d <= 1; ++d) {
        if (at + d < 0 || at + d >= size) continue;
        const double weight = std::exp(-0.5 * static_cast<double>(d * d) / (0.8 * 0.8));
        sum.values[i] += weight * x.values[i + static_cast<std::size_t>(d * stride)];
        weights.values[i] += weight;
      }
    }
    for (std::size_t i = 0; i < x.values.size(); ++i) sum.values[i] /= weights.values[i];
    return sum;
  };
  check({.name = "blur",
         .inputs = {{normal({2, 4, 6}, 3)}},
         .build = [](const std::vector<Value>& x) { return std::vector{gaussian_blur(x[0], 3, 0.8)}; },
         .reference = [&](const std::vector<Array>& x) { return std::vector{blurred(blurred(x[0], 1), 2)}; }});
}

TEST_CASE("resampling refuses what does not fit", "[ops][resample]") {
  const auto error_of = [](const Shape& shape, const std::function<Value(Value)>& build) {
    return shape_error({{DType::f32, shape}}, [&](const std::vector<Value>& x) { return std::vector{build(x[0])}; });
  };
  CHECK_THAT(error_of({3, 4},
                      [](Value x) {
                        return pad(x, PadMode::reflect, {0, 4}, {0, 0});
                      }),
             contains("[3, 4]") && contains("4 before"));
  CHECK_THAT(error_of({3, 4}, [](Value x) { return pad(x, PadMode::circular, {1}, {0}); }), contains("[3, 4]"));
  CHECK_THAT(error_of({3, 4}, [](Value x) { return interpolate(x, {.size = {2}}); }), contains("[3, 4]"));
  CHECK_THAT(error_of({3, 4, 5}, [](Value x) { return interpolate(x, {.size = {2, 2}}); }), contains("2 sizes"));
  CHECK_THAT(error_of({3, 4, 5}, [](Value x) { return interpolate(x, {.scale_factor = {0.1}}); }), contains("size 0"));
  CHECK_THAT(error_of({3, 4, 5}, [](Value x) { return interpolate(x, {.size = {2}, .mode = Interpolation::cubic}); }),
             contains("rows, columns"));
  CHECK_THAT(error_of({3, 4}, [](Value x) { return flip(x, {1, -1}); }), contains("[1, -1]"));
  CHECK_THAT(error_of({3, 4}, [](Value x) { return tile(x, {2}); }), contains("[2]"));
  CHECK_THAT(
      shape_error({{DType::i32, {3, 4}}}, [](const std::vector<Value>& x) { return std::vector{flip(x[0], {0})}; }),
      contains("i32 [3, 4]"));
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 2, 3, 4}});
  CHECK_THROWS_AS(interpolate(x, {}), ArgumentError);
  CHECK_THROWS_AS(interpolate(x, {.size = {2, 2}, .align_corners = true}), ArgumentError);
  CHECK_THROWS_AS(interpolate(x, {.size = {2, 2}, .mode = Interpolation::nearest_exact, .align_corners = true}),
                  ArgumentError);
  CHECK_THROWS_AS(gaussian_blur(x, 4, 1), ArgumentError);
}

}  // namespace
}  // namespace concord::test
