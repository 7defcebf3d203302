// Pointwise operators: broadcasting, several outputs, types, coordinates, and gradients through all of them.
#include "concord/ops/pointwise.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "concord/ops/copy.hpp"
#include "concord/ops/elementary.hpp"
#include "concord/ops/gather.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// f over broadcast arrays.
template <class F>
Array map2(const Array& a, const Array& b, const F& f) {
  const Shape shape = broadcast(a.shape, b.shape);
  Array dst(shape);
  const auto strides = shape.strides();
  const auto offset = [&](const Shape& s, std::int64_t flat) {
    const auto own = s.strides();
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < s.rank(); ++axis) {
      const std::size_t wide = axis + shape.rank() - s.rank();
      const std::int64_t index = flat / strides[wide] % shape.dims()[wide];
      at += s.dims()[axis] == 1 ? 0 : index * own[axis];
    }
    return static_cast<std::size_t>(at);
  };
  for (std::size_t i = 0; i < dst.values.size(); ++i) {
    const auto flat = static_cast<std::int64_t>(i);
    dst.values[i] = f(a.values[offset(a.shape, flat)], b.values[offset(b.shape, flat)]);
  }
  return dst;
}

TEST_CASE("arithmetic broadcasts as NumPy does, gradients sum back", "[ops][pointwise]") {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{3, 5}, {3, 5}},
                                                       {{3, 5}, {5}},
                                                       {{3, 5}, {3, 1}},
                                                       {{3, 1}, {1, 5}},
                                                       {{}, {2, 3}},
                                                       {{1}, {4}},
                                                       {{2, 3}, {1, 1}},
                                                       {{2, 3, 4, 5}, {3, 1, 1}},
                                                       {{4, 1, 3, 1}, {1, 2, 1, 5}},
                                                       {{1, 1}, {1}}};
  for (const auto& [a, b] : shapes) {
    check({.name = fmt::format("{} - {}, {} * {}", a.str(), b.str(), a.str(), b.str()),
           .inputs = {{integers(a, 1)}, {integers(b, 2)}},
           .build =
               [](const std::vector<Value>& x) {
                 return std::vector{x[0] - x[1], x[0] * x[1] + x[0]};
               },
           .reference =
               [](const std::vector<Array>& x) {
                 return std::vector{map2(x[0], x[1], [](double u, double v) { return u - v; }),
                                    map2(x[0], x[1], [](double u, double v) { return u * v + u; })};
               },
           .scale = Scale::exact});
  }
  check({.name = "division",
         .inputs = {{normal({4, 3}, 3)}, {uniform({3}, 4, 0.5, 3)}},
         .build =
             [](const std::vector<Value>& x) {
               return std::vector{x[0] / x[1], 2.0F / x[1], x[0] / 3.0F};
             },
         .reference =
             [](const std::vector<Array>& x) {
               const auto two = [](double, double v) { return 2 / v; };
               const auto third = [](double u, double) { return u / 3; };
               return std::vector{map2(x[0], x[1], [](double u, double v) { return u / v; }), map2(x[1], x[1], two),
                                  map2(x[0], x[0], third)};
             },
         .tolerance = 3e-7});
}

TEST_CASE("one pass computes several outputs over large tensors", "[ops][pointwise]") {
  check({.name = "sum and difference",
         .inputs = {{integers({3, 1001}, 1)}, {integers({1001}, 2)}},
         .build =
             [](const std::vector<Value>& x) {
               const Scalar a = scalar::input(0), b = scalar::input(1);
               return pointwise("pair", x, {a + b, a * a - b}, {DType::f32, DType::f32});
             },
         .reference =
             [](const std::vector<Array>& x) {
               return std::vector{map2(x[0], x[1], [](double u, double v) { return u + v; }),
                                  map2(x[0], x[1], [](double u, double v) { return u * u - v; })};
             },
         .scale = Scale::exact,
         .gradient = false});
}

TEST_CASE("the gradient of a function with several outputs sums over them", "[ops][pointwise]") {
  check({.name = "three outputs, one of them whole numbers",
         .inputs = {{integers({2, 3}, 1)}, {integers({3}, 2)}},
         .build =
             [](const std::vector<Value>& x) {
               const Scalar a = scalar::input(0), b = scalar::input(1);
               return pointwise("triple", x, {a * b, a, a + b}, {DType::f32, DType::i32, DType::f32});
             },
         .reference =
             [](const std::vector<Array>& x) {
               return std::vector{map2(x[0], x[1], [](double u, double v) { return u * v; }),
                                  map2(x[0], x[1], [](double u, double) { return std::trunc(u); }),
                                  map2(x[0], x[1], [](double u, double v) { return u + v; })};
             },
         .scale = Scale::exact,
         .gradient = false});
  const Input x{Array({3}, {0, 1, -2})};
  for (const DevicePtr& device : devices()) {
    const auto results = run(device, {x}, [](const std::vector<Value>& v) {
      const std::vector<Value> y =
          pointwise("pair", v, {scalar::input(0) * 3.0F, scalar::exp(scalar::input(0))}, {DType::f32, DType::f32});
      return gradient(sum(y[0] + y[1]), v);
    });
    const Array slope = to_array(results[0]);
    for (std::size_t i = 0; i < 3; ++i) CHECK(slope.values[i] == Approx(3 + std::exp(x.value.values[i])));
  }
}

TEST_CASE("a gradient reads only what it needs", "[ops][pointwise]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4}});
  const Value y = graph.input("y", {DType::f32, {4}});
  const auto operands_of_gradient = [&](Value result, Value wrt) {
    const Value diff = graph.input("diff" + std::to_string(graph.size()), result.spec());
    std::vector<bool> wanted;
    for (const Value& input : result.node().inputs) wanted.push_back(input == wrt);
    const auto diffs = result.node().op->gradient(result.node(), std::vector{diff}, wanted);
    const auto found = std::ranges::find(wanted, true) - wanted.begin();
    const Value slope = diffs[static_cast<std::size_t>(found)];
    if (slope == diff) return std::vector<std::string>{"diff"};
    std::vector<std::string> names;
    for (const Value& input : slope.node().inputs) names.push_back(input == diff ? "diff" : input.name());
    return names;
  };
  CHECK(operands_of_gradient(x + y, x) == std::vector<std::string>{"diff"});
  CHECK(operands_of_gradient(x * y, x) == std::vector<std::string>{"y", "diff"});
  const Value r = relu(x);
  CHECK(operands_of_gradient(r, x) == std::vector<std::string>{r.name(), "diff"});
  const Value e = exp(x);
  CHECK(operands_of_gradient(e, x) == std::vector<std::string>{e.name(), "diff"});
  // From the argument: the result is rounded to its limit, where the slope is not 0 yet.
  CHECK(operands_of_gradient(sigmoid(x), x) == std::vector<std::string>{"x", "diff"});
  CHECK(operands_of_gradient(square(x), x) == std::vector<std::string>{"x", "diff"});
}

TEST_CASE("whole-number operands are read as float, whole-number results rounded toward zero", "[ops][pointwise]") {
  check({.name = "bytes to unit range",
         .inputs = {{Array({2, 3}, {0, 1, 127, 128, 254, 255}), DType::u8}, {integers({2, 1}, 1)}},
         .build =
             [](const std::vector<Value>& x) {
               return std::vector{x[0] * x[1], cast(x[0], DType::i32)};
             },
         .reference =
             [](const std::vector<Array>& x) {
               return std::vector{map2(x[0], x[1], [](double u, double v) { return u * v; }), x[0]};
             },
         .scale = Scale::exact,
         .gradient = false});
  check({.name = "rounding",
         .inputs = {{Array({6}, {-2.75, -0.5, 0.5, 2.75, 3, -3})}},
         .build = [](const std::vector<Value>& x) { return std::vector{cast(x[0], DType::i32)}; },
         .reference =
             [](const std::vector<Array>&) {
               return std::vector{Array({6}, {-2, 0, 0, 2, 3, -3})};
             },
         .scale = Scale::exact,
         .gradient = false});
}

TEST_CASE("whole numbers of numbers that have none are the same on all devices", "[ops][pointwise]") {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const Array numbers({10}, {kNan, kInf, -kInf, 3e9, -3e9, 300, -1, 255.75, -0.5, 7}), table({2, 1}, {5, 6});
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> found = run(device, {{numbers}, {table}}, [](const std::vector<Value>& x) {
      const Value index = cast(x[0], DType::i32);
      return std::vector{index, cast(x[0], DType::u8), gather(x[1], slice(index, 0, 0, 1))};
    });
    CHECK(difference(found[0], Tensor::of<std::int32_t>({10}, {-2147483647 - 1, 2147483647, -2147483647 - 1, 2147483647,
                                                               -2147483647 - 1, 300, -1, 255, 0, 7})) == "");
    CHECK(difference(found[1], Tensor::of<std::uint8_t>({10}, {0, 255, 0, 255, 0, 255, 0, 255, 0, 7})) == "");
    CHECK(std::isnan(found[2].values<float>()[0]));  // NaN is no index
  }
}

TEST_CASE("a product with 0 is NaN where its other factor is not finite, fused or not", "[ops][pointwise]") {
  const Array numbers({3}, {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 2});
  for (const DevicePtr& device : devices()) {
    for (const bool fuse : {true, false}) {
      INFO("device " << device->info().id << (fuse ? ", fused" : ""));
      const auto build = [](const std::vector<Value>& x) {
        const Value by_tensor = x[0] * full(x[0].graph(), {3}, 0.0F);
        return std::vector{x[0] * 0.0F, by_tensor + 1.0F, gradient(sum(x[0] * 0.0F), x).front()};
      };
      const std::vector<Tensor> found = run(device, {{numbers}}, build, {.fuse = fuse});
      for (const std::size_t i : {0, 1}) {
        CHECK(std::isnan(found[0].values<float>()[i]));
        CHECK(std::isnan(found[1].values<float>()[i]));
      }
      CHECK(found[0].values<float>()[2] == 0);
      CHECK(found[1].values<float>()[2] == 1);
      CHECK(difference(found[2], Tensor::of<float>({3}, {0, 0, 0})) == "");
    }
  }
}

TEST_CASE("constants, coordinates and widened outputs", "[ops][pointwise]") {
  check({.name = "full, iota, coordinates",
         .inputs = {{integers({1, 3}, 1)}},
         .build =
             [](const std::vector<Value>& x) {
               Graph& graph = x[0].graph();
               const Scalar position = 10.0F * scalar::coordinate(1) + scalar::coordinate(0);
               return std::vector{full(graph, {2, 2}, 1.5F), iota(graph, 5),
                                  pointwise("positions", x, position + scalar::input(0), DType::f32, {4, 3})};
             },
         .reference =
             [](const std::vector<Array>& x) {
               Array positions(Shape{4, 3});
               for (std::int64_t i = 0; i < 4; ++i) {
                 for (std::int64_t j = 0; j < 3; ++j)
                   positions.at({i, j}) = static_cast<double>(10 * i + j) + x[0].at({0, j});
               }
               return std::vector{Array({2, 2}, {1.5, 1.5, 1.5, 1.5}), Array({5}, {0, 1, 2, 3, 4}), positions};
             },
         .scale = Scale::exact});
}

TEST_CASE("where, minimum, maximum and clamp", "[ops][pointwise]") {
  check({.name = "choices",
         .inputs = {{integers({4, 5}, 1)}, {normal({4, 5}, 2)}, {normal({5}, 3)}},
         .build =
             [](const std::vector<Value>& x) {
               const Value positive = pointwise("positive", {x[0]}, scalar::less(0.0F, scalar::input(0)));
               return std::vector{where(positive, x[1], x[2]), minimum(x[1], x[2]), maximum(x[1], x[2]),
                                  clamp(x[1], -0.5F, 0.75F)};
             },
         .reference =
             [](const std::vector<Array>& x) {
               const Array low = map2(x[1], x[2], [](double u, double v) { return std::min(u, v); });
               const Array high = map2(x[1], x[2], [](double u, double v) { return std::max(u, v); });
               Array chosen = map2(x[1], x[2], [](double u, double) { return u; });
               const Array other = map2(x[1], x[2], [](double, double v) { return v; });
               for (std::size_t i = 0; i < chosen.values.size(); ++i) {
                 if (!(x[0].values[i] > 0)) chosen.values[i] = other.values[i];
               }
               return std::vector{chosen, low, high,
                                  map2(x[1], x[1], [](double u, double) { return std::min(std::max(u, -0.5), 0.75); })};
             }});
}

TEST_CASE("pointwise operators refuse what does not broadcast", "[ops][pointwise]") {
  const std::string error = shape_error({{DType::f32, {2, 3}}, {DType::f32, {4}}},
                                        [](const std::vector<Value>& x) { return std::vector{x[0] + x[1]}; });
  CHECK_THAT(error, contains("add") && contains("[2, 3]") && contains("[4]"));
  Graph graph;
  CHECK_THROWS_AS(iota(graph, 1 << 25), ArgumentError);
  CHECK_THROWS_AS(pointwise("empty", {}, Scalar(1.0F)), ArgumentError);
}

TEST_CASE("a function that is written out in values is that function", "[ops][pointwise]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {3, 4}}), y = graph.input("y", {DType::f32, {3, 4}});
  const auto name_of = [](const Value& value) { return std::string(value.node().op->name()); };
  const Value silu_of_x = x * sigmoid(x);
  CHECK(name_of(silu_of_x) == "silu");
  CHECK(silu_of_x.node().inputs == std::vector<Value>{x});
  const Value sum = x + y, gelu_of_sum = 0.5F * sum * (1.0F + erf(sum / 1.41421356F));
  CHECK(name_of(gelu_of_sum) == "gelu");
  CHECK(gelu_of_sum.node().inputs == std::vector<Value>{sum});
  const Value cubic = x + 0.044715F * x * x * x;
  CHECK(name_of(x * (0.5F * (1.0F + tanh(cubic * 0.79788456F)))) == "gelu_tanh");
  CHECK(name_of(y * sigmoid(x)) == "multiply");
}

}  // namespace
}  // namespace concord::test
