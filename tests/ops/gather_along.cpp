// Gather and scatter-add along an axis, and scatter-add of so many indices that they are sorted.
#include "concord/ops/gather_along.hpp"

#include <fmt/format.h>

#include <cmath>

#include "concord/ops/axis.hpp"
#include "concord/ops/gather.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Calls function(place in src, place in indices) for every index inside the axis.
template <class Function>
void for_indices(const Shape& src, const Array& indices, std::size_t axis, Function function) {
  const ops::AxisSizes s = ops::axis_sizes(src, axis);
  const std::int64_t count = indices.shape.dims()[axis];
  for (std::size_t i = 0; i < indices.values.size(); ++i) {
    const std::int64_t line = static_cast<std::int64_t>(i) / s.inner, in = static_cast<std::int64_t>(i) % s.inner;
    const auto index = static_cast<std::int64_t>(indices.values[i]);
    if (index < 0 || index >= s.length) continue;
    function(static_cast<std::size_t>((line / count * s.length + index) * s.inner + in), i);
  }
}

Array scattered(const Array& src, const Array& indices, std::size_t axis, std::int64_t size) {
  Array dst(ops::with_size(src.shape, axis, size));
  for_indices(dst.shape, indices, axis, [&](std::size_t to, std::size_t i) { dst.values[to] += src.values[i]; });
  return dst;
}

/// Whole numbers in [low, high].
Array indices_of(const Shape& shape, std::uint32_t seed, double low, double high) {
  Array indices = uniform(shape, seed, low, high + 1);
  for (double& v : indices.values) v = std::min(std::floor(v), high);
  return indices;
}

TEST_CASE("gather_along and scatter_add_along are each other's gradient", "[ops][gather_along]") {
  struct Sizes {
    Shape src;
    std::size_t axis;
    std::int64_t count;
  };
  for (const Sizes& s : {Sizes{{3, 5}, 1, 7}, {{4, 3}, 0, 2}, {{2, 5, 3}, 1, 4}, {{6}, 0, 9}}) {
    const Array indices =
        indices_of(ops::with_size(s.src, s.axis, s.count), 5, 0, static_cast<double>(s.src.dims()[s.axis] - 1));
    check({.name = fmt::format("gather {} along {}", s.src.str(), s.axis),
           .inputs = {{integers(s.src, 1)}, {indices, DType::i32}},
           .build =
               [s](const std::vector<Value>& x) {
                 return std::vector{gather_along(x[0], x[1], static_cast<std::int64_t>(s.axis))};
               },
           .reference =
               [s](const std::vector<Array>& x) {
                 Array dst(x[1].shape);
                 for_indices(s.src, x[1], s.axis,
                             [&](std::size_t from, std::size_t i) { dst.values[i] = x[0].values[from]; });
                 return std::vector{dst};
               },
           .scale = Scale::exact});
    // One index too low and one too high.
    const Array some = indices_of(s.src, 6, -1, 4);
    check({.name = fmt::format("scatter {} along {}", s.src.str(), s.axis),
           .inputs = {{integers(s.src, 2)}, {some, DType::i32}},
           .build =
               [s](const std::vector<Value>& x) {
                 return std::vector{scatter_add_along(x[0], x[1], static_cast<std::int64_t>(s.axis), 4)};
               },
           .reference = [s](const std::vector<Array>& x) { return std::vector{scattered(x[0], x[1], s.axis, 4)}; },
           .scale = Scale::exact});
  }
}

TEST_CASE("gather_along of other types, and of indices out of range", "[ops][gather_along]") {
  const Input floats{Array({2, 2}, {1, 2, 3, 4})};
  const Input bytes{Array({2, 2}, {1, 2, 254, 255}), DType::u8};
  const Input numbers{Array({2, 2}, {2000000011, -5, 7, 8}), DType::i32};
  const Input indices{Array({2, 3}, {1, -1, 0, 2, 1, 1}), DType::i32};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {floats, bytes, numbers, indices}, [](const std::vector<Value>& x) {
      return std::vector{gather_along(x[0], x[3], 1), gather_along(x[1], x[3], 1), gather_along(x[2], x[3], 1)};
    });
    const Array f = to_array(results[0]);
    CHECK((f.values[0] == 2 && std::isnan(f.values[1]) && f.values[2] == 1 && std::isnan(f.values[3])));
    CHECK(to_array(results[1]).values == std::vector<double>{2, 0, 1, 0, 255, 255});
    CHECK(to_array(results[2]).values == std::vector<double>{-5, 0, 2000000011, 0, 8, 8});
  }
}

TEST_CASE("scatter-add of many indices", "[ops][gather_along]") {
  struct Sizes {
    Shape indices;
    std::int64_t width, rows;
  };
  // Less and more than one sorted block, repeated and missing rows, indices outside.
  for (const Sizes& s : {Sizes{{40, 5}, 3, 17}, {{1500}, 1, 900}, {{2100}, 5, 3}}) {
    const Array indices = indices_of(s.indices, 7, -2, static_cast<double>(s.rows) * 0.9);
    std::vector<std::int64_t> dims(s.indices.dims().begin(), s.indices.dims().end());
    dims.push_back(s.width);
    for (const std::int64_t padding : {-1, 2}) {
      check(
          {.name = fmt::format("{} rows of {} by {}, padding {}", s.rows, s.width, s.indices.str(), padding),
           .inputs = {{integers(Shape(dims), 3)}, {indices, DType::i32}},
           .build = [s, padding](
                        const std::vector<Value>& x) { return std::vector{scatter_add(x[0], x[1], s.rows, padding)}; },
           .reference =
               [s, padding](const std::vector<Array>& x) {
                 Array dst(Shape{s.rows, s.width});
                 for (std::size_t i = 0; i < x[1].values.size(); ++i) {
                   const auto row = static_cast<std::int64_t>(x[1].values[i]);
                   if (row < 0 || row >= s.rows || row == padding) continue;
                   for (std::int64_t c = 0; c < s.width; ++c) {
                     dst.at({row, c}) +=
                         x[0].values[i * static_cast<std::size_t>(s.width) + static_cast<std::size_t>(c)];
                   }
                 }
                 return std::vector{dst};
               },
           .scale = Scale::exact,
           .gradient = false});
    }
  }
  for (const auto& [shape, axis] : {std::pair{Shape{3, 400}, std::size_t{1}}, {{2, 300, 2}, 1}}) {
    check({.name = fmt::format("along {} of {}", axis, shape.str()),
           .inputs = {{integers(shape, 4)}, {indices_of(shape, 8, -1, 60), DType::i32}},
           .build =
               [axis = axis](const std::vector<Value>& x) {
                 return std::vector{scatter_add_along(x[0], x[1], static_cast<std::int64_t>(axis), 50)};
               },
           .reference =
               [axis = axis](const std::vector<Array>& x) { return std::vector{scattered(x[0], x[1], axis, 50)}; },
           .scale = Scale::exact,
           .gradient = false});
  }
}

TEST_CASE("sums of repeated indices have the same bits each time", "[ops][gather_along]") {
  const Input src{normal({1000, 2}, 1)}, indices{indices_of({1000}, 2, 0, 6), DType::i32};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto build = [](const std::vector<Value>& x) { return std::vector{scatter_add(x[0], x[1], 7)}; };
    const Tensor first = run(device, {src, indices}, build)[0];
    CHECK(difference(run(device, {src, indices}, build)[0], first) == "");
  }
}

TEST_CASE("a row of padding gets no gradient", "[ops][gather_along]") {
  check({.name = "gather with padding",
         .inputs = {{integers({4, 3}, 1)}, {Array({5}, {2, 0, 2, 3, 1}), DType::i32}},
         .build = [](const std::vector<Value>& x) { return std::vector{gather(x[0], x[1], 2)}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array dst(Shape{5, 3});
               for (std::size_t i = 0; i < 15; ++i) {
                 dst.values[i] = x[0].values[static_cast<std::size_t>(x[1].values[i / 3]) * 3 + i % 3];
               }
               return std::vector{dst};
             },
         .scale = Scale::exact,
         .reference_gradient =
             [](const std::vector<Array>& x, const std::vector<Array>& seeds) {
               Array diff(Shape{4, 3});
               for (std::size_t i = 0; i < 15; ++i) {
                 const auto row = static_cast<std::size_t>(x[1].values[i / 3]);
                 if (row != 2) diff.values[row * 3 + i % 3] += seeds[0].values[i];
               }
               return std::vector{diff};
             }});
}

TEST_CASE("gather_along and scatter_add_along refuse what does not fit", "[ops][gather_along]") {
  const auto error_of = [](const TensorSpec& a, const TensorSpec& b, Value (*build)(Value, Value)) {
    return shape_error({a, b}, [&](const std::vector<Value>& x) { return std::vector{build(x[0], x[1])}; });
  };
  const auto along = [](Value a, Value b) { return gather_along(a, b, 1); };
  const auto scatter = [](Value a, Value b) { return scatter_add_along(a, b, 1, 4); };
  CHECK_THAT(error_of({DType::f32, {3, 2}}, {DType::i32, {2, 2}}, along), contains("[3, 2]") && contains("[2, 2]"));
  CHECK_THAT(error_of({DType::f32, {3, 2}}, {DType::f32, {3, 2}}, along), contains("f32 [3, 2]"));
  CHECK_THAT(error_of({DType::f32, {3, 2}}, {DType::i32, {3, 3}}, scatter), contains("[3, 2]") && contains("[3, 3]"));
}

}  // namespace
}  // namespace concord::test
