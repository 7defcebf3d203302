// Resize by every rule of ONNX's operator: tables against recorded results of ONNX's reference evaluator, and the
// operator with its gradient on every device.
#include "concord/ops/resize.hpp"

#include <cmath>
#include <map>

#include "goldens.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using ops::AxisMap;
using ops::Taps;

template <class T>
T named(const nlohmann::json& name, const std::map<std::string, T>& names) {
  return names.at(name.get<std::string>());
}

ResizeOptions options_of(const nlohmann::json& row) {
  using C = ResizeCoordinates;
  using R = ResizeRounding;
  return {.mode = named<Interpolation>(row["mode"], {{"nearest", Interpolation::nearest},
                                                     {"linear", Interpolation::linear},
                                                     {"cubic", Interpolation::cubic}}),
          .coordinates = named<C>(row["coordinates"], {{"half_pixel", C::half_pixel},
                                                       {"half_pixel_symmetric", C::half_pixel_symmetric},
                                                       {"pytorch_half_pixel", C::pytorch_half_pixel},
                                                       {"align_corners", C::align_corners},
                                                       {"asymmetric", C::asymmetric},
                                                       {"tf_crop_and_resize", C::tf_crop_and_resize}}),
          .rounding = named<R>(row["rounding"], {{"round_prefer_floor", R::round_prefer_floor},
                                                 {"round_prefer_ceil", R::round_prefer_ceil},
                                                 {"floor", R::floor},
                                                 {"ceil", R::ceil}}),
          .cubic_a = row["a"].get<double>(),
          .exclude_outside = row["exclude"] == 1,
          .antialias = row["antialias"] == 1,
          .extrapolation_value = 7};
}

/// The rows of the table times x; a row without taps is `empty`.
std::vector<double> times(const Taps& taps, const std::vector<double>& x, double empty) {
  std::vector<double> y;
  for (std::size_t row = 0; row + 1 < taps.begin.size(); ++row) {
    double sum = taps.begin[row] == taps.begin[row + 1] ? empty : 0;
    for (auto t = static_cast<std::size_t>(taps.begin[row]); t < static_cast<std::size_t>(taps.begin[row + 1]); ++t) {
      sum += static_cast<double>(taps.weight[t]) * x[static_cast<std::size_t>(taps.place[t])];
    }
    y.push_back(sum);
  }
  return y;
}

TEST_CASE("resize follows every rule of ONNX", "[ops][resize]") {
  const nlohmann::json file = golden("resize.json");
  const auto x = file["x"].get<std::vector<double>>();
  REQUIRE(file["cases"].size() == 480);
  for (const nlohmann::json& row : file["cases"]) {
    INFO(row.dump());
    const ResizeOptions options = options_of(row);
    const ResizeAxis axis{.axis = 0,
                          .size = row["size"].get<std::int64_t>(),
                          .scale = static_cast<double>(row["scale"].get<float>()),
                          .begin = static_cast<double>(file["begin"].get<float>()),
                          .end = static_cast<double>(file["end"].get<float>())};
    const bool crops = options.coordinates == ResizeCoordinates::tf_crop_and_resize;
    const AxisMap map = ops::resize_map(axis, static_cast<std::int64_t>(x.size()), options);
    const std::vector<double> got = times(ops::taps_of(map), x, crops ? 7 : 0);
    const auto expected = row["y"].get<std::vector<double>>();
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(4e-6));
  }
}

TEST_CASE("tf_half_pixel_for_nn takes the place in the middle", "[ops][resize]") {
  const AxisMap map = ops::resize_map(
      {.size = 3}, 7, {.coordinates = ResizeCoordinates::tf_half_pixel_for_nn, .rounding = ResizeRounding::floor});
  CHECK(ops::taps_of(map).place == std::vector<std::int32_t>{1, 3, 5});
}

/// (src positions of one axis) → the same axis resized, of an array.
Array mapped(const Array& x, std::size_t axis, const Taps& taps) {
  std::vector<std::int64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims[axis] = static_cast<std::int64_t>(taps.begin.size()) - 1;
  Array y{Shape(dims)};
  const std::int64_t inner = x.shape.strides()[axis], length = x.shape.dims()[axis];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t outer = i / (inner * dims[axis]), row = i / inner % dims[axis];
    for (std::int32_t t = taps.begin[static_cast<std::size_t>(row)]; t < taps.begin[static_cast<std::size_t>(row) + 1];
         ++t) {
      const auto tap = static_cast<std::size_t>(t);
      const std::int64_t from = (outer * length + taps.place[tap]) * inner + i % inner;
      y.values[static_cast<std::size_t>(i)] +=
          static_cast<double>(taps.weight[tap]) * x.values[static_cast<std::size_t>(from)];
    }
  }
  return y;
}

TEST_CASE("resize of several axes, with its gradient", "[ops][resize]") {
  const ResizeOptions smaller{.mode = Interpolation::cubic, .exclude_outside = true, .antialias = true};
  const std::vector<ResizeAxis> axes{{.axis = 1, .size = 2}, {.axis = 2, .size = 3}, {.axis = 3, .size = 9}};
  check({.name = "cubic, antialias",
         .inputs = {{normal({2, 5, 8, 6}, 1)}},
         .build = [&](const std::vector<Value>& x) { return std::vector{resize(x[0], axes, smaller)}; },
         .reference =
             [&](const std::vector<Array>& x) {
               Array y = x[0];
               for (const ResizeAxis& axis : axes) {
                 y = mapped(y, axis.axis, ops::taps_of(ops::resize_map(axis, y.shape.dims()[axis.axis], smaller)));
               }
               return std::vector{y};
             }});
  const ResizeOptions crop{
      .mode = Interpolation::linear, .coordinates = ResizeCoordinates::tf_crop_and_resize, .extrapolation_value = 10};
  const std::vector<ResizeAxis> parts{{.axis = 1, .size = 4, .begin = 0.25, .end = 1.5},
                                      {.axis = 2, .size = 3, .begin = -0.5, .end = 0.5}};
  // Of 5 and 3 positions: coordinates 1, 2 2/3, 4 1/3 (outside) …, and -1 (outside), 0, 1.
  check({.name = "a part, and what is outside",
         .inputs = {{normal({2, 5, 3}, 2)}},
         .build = [&](const std::vector<Value>& x) { return std::vector{resize(x[0], parts, crop)}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array y(Shape{2, 4, 3});
               for (std::int64_t n = 0; n < 2; ++n) {
                 for (std::int64_t i = 0; i < 4; ++i) {
                   for (std::int64_t j = 0; j < 3; ++j) {
                     const bool inside = i < 2 && j > 0;
                     const double third = i == 0 ? x[0].at({n, 1, std::max<std::int64_t>(j - 1, 0)})
                                                 : x[0].at({n, 2, std::max<std::int64_t>(j - 1, 0)}) / 3 +
                                                       x[0].at({n, 3, std::max<std::int64_t>(j - 1, 0)}) * 2 / 3;
                     y.at({n, i, j}) = inside ? third : 10;
                   }
                 }
               }
               return std::vector{y};
             }});
}

TEST_CASE("a map of given taps", "[ops][resize]") {
  // A row without taps, one place twice, and a place that is never read.
  const AxisMap map = AxisMap::of_taps(4, 3, {{0, 2, 2, 5}, {3, 0, 1, 1, 0}, {0.5F, 2, 1, 1, -4}});
  check({.name = "taps",
         .inputs = {{integers({2, 4, 3}, 3)}},
         .build = [&](const std::vector<Value>& x) { return std::vector{resample(x[0], {1}, {map})}; },
         .reference = [&](const std::vector<Array>& x) { return std::vector{mapped(x[0], 1, ops::taps_of(map))}; }});
  CHECK(AxisMap::of_taps(4, 1, {{0, 1}, {3}, {1}}).str() != AxisMap::of_taps(4, 1, {{0, 1}, {2}, {1}}).str());
  CHECK(map.transpose().transpose().str() == map.str());
  CHECK_THROWS_AS(AxisMap::of_taps(4, 1, {{0, 1}, {4}, {1}}), ArgumentError);
  CHECK_THROWS_AS(AxisMap::of_taps(4, 2, {{0, 1}, {3}, {1}}), ArgumentError);
  CHECK_THROWS_AS(AxisMap::of_taps(4, 2, {{0, 2, 1}, {3}, {1}}), ArgumentError);
  CHECK_THROWS_AS(AxisMap::of_taps(4, 1, {{0, 1}, {3}, {}}), ArgumentError);
}

TEST_CASE("resize refuses what does not fit", "[ops][resize]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {3, 4}});
  CHECK_THROWS_AS(resize(x, {{.axis = 2, .size = 3}}, {}), ShapeError);
  CHECK_THROWS_AS(resize(x, {{.axis = 1, .size = 0}}, {}), ShapeError);
  CHECK_THROWS_AS(resize(x, {{.axis = 1, .size = 3}, {.axis = 1, .size = 2}}, {}), ShapeError);
  CHECK_THROWS_AS(resize(x, {{.axis = 1, .size = 3}}, {.antialias = true}), ArgumentError);
  CHECK(resize(x, {{.axis = 1, .size = 4}}, {}) == x);
}

}  // namespace
}  // namespace concord::test
