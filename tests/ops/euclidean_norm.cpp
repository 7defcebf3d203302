// Euclidean norms, sums and means against their definitions, of numbers whose squares leave fp32 too.
#include <fmt/format.h>

#include <cmath>

#include "concord/ops/reduce.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Over the axes that `kept` has of size 1.
Array norms_of(const Array& x, const Shape& kept) {
  Array result(kept);
  const auto dims = x.shape.dims(), out = kept.dims();
  std::vector<std::int64_t> strides = kept.strides();
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), at = 0;
    for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) at += out[d] == 1 ? 0 : rest % dims[d] * strides[d];
    result.values[static_cast<std::size_t>(at)] += x.values[i] * x.values[i];
  }
  for (double& value : result.values) value = std::sqrt(value);
  return result;
}

TEST_CASE("norm is the root of the sum of squares over any axes", "[ops][reduce]") {
  const std::vector<std::pair<Shape, std::vector<std::int64_t>>> all{
      {{4, 7}, {1}}, {{4, 7}, {0}}, {{3, 5, 33}, {0, 2}}, {{2, 600, 40}, {1}}, {{70000}, {0}}, {{2, 3, 4}, {0, 1, 2}}};
  for (const auto& [shape, axes] : all) {
    std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
    for (const std::int64_t axis : axes) dims[static_cast<std::size_t>(axis)] = 1;
    check({.name = fmt::format("{} over {}", shape.str(), axes.size()),
           .inputs = {{normal(shape, 1)}},
           .build = [axes = axes](const std::vector<Value>& x) { return std::vector{norm(x[0], axes, true)}; },
           .reference = [kept = Shape(dims)](const std::vector<Array>& x) { return std::vector{norms_of(x[0], kept)}; },
           .tolerance = 5e-7,
           .gradient_tolerance = 1e-5,
           .gradient = shape.elements() < 1000});
  }
}

TEST_CASE("norm keeps the range of fp32", "[ops][reduce]") {
  for (const double size : {1e-33, 1e-30, 1e-18, 1e-15, 1e15, 1e19, 1e30, 1e36}) {
    for (const std::int64_t axis : {0, 1}) {
      Array x = normal({40, 50}, 3, size);
      x.values[7] = 0;
      check({.name = fmt::format("{} over {}", size, axis),
             .inputs = {{x}},
             .build = [axis](const std::vector<Value>& in) { return std::vector{norm(in[0], {axis}, true)}; },
             .reference =
                 [axis](const std::vector<Array>& in) {
                   return std::vector{norms_of(in[0], axis == 0 ? Shape{1, 50} : Shape{40, 1})};
                 },
             .tolerance = 5e-7,
             .gradient = false});
    }
  }
  const auto norm_of = [](const DevicePtr& device, std::vector<double> values) {
    const Shape shape{static_cast<std::int64_t>(values.size())};
    const Array x(shape, std::move(values));
    const auto results = run(device, {{x}}, [](const std::vector<Value>& in) -> std::vector<Value> {
      const Value length = norm(in[0]);
      return {length, gradient(length, std::vector{in[0]})[0]};
    });
    return std::pair{results[0].values<float>()[0], results[1].values<float>()[0]};
  };
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    CHECK(norm_of(device, {0, 0, 0}) == std::pair{0.0F, 0.0F});
    CHECK(norm_of(device, {3e38, 3e38, 3e38, 3e38}).first == std::numeric_limits<float>::max());
    CHECK(norm_of(device, {static_cast<double>(3e25F), static_cast<double>(4e25F)}).first == Approx(5e25));
    CHECK(norm_of(device, {1e25, 1e-25, 1}).first == Approx(1e25));
    CHECK(norm_of(device, {static_cast<double>(3e-25F), static_cast<double>(4e-25F)}).second == Approx(0.6));
    CHECK(std::isinf(norm_of(device, {1, INFINITY}).first));
    CHECK(std::isnan(norm_of(device, {1, NAN}).first));
    CHECK(std::isnan(norm_of(device, {1e30, NAN}).first));
  }
}

// PyTorch 2.15 adds 1e6 numbers 777.7 up to 1e-7 and N(0, 1) + 100 to 8e-8 of the sum (tests/goldens/norm_errors.py).
TEST_CASE("long sums are exact to a few ULP", "[ops][reduce]") {
  for (const double deviation : {0.0, 1.0}) {
    Array x = normal({1000000}, 4, deviation);
    for (double& value : x.values) value = static_cast<double>(static_cast<float>(value + 777.7));
    double expected = 0;
    for (const double value : x.values) expected += value;
    for (const DevicePtr& device : devices()) {
      for (const Shape& shape : {Shape{1000000, 1}, Shape{1000, 1000}, Shape{20000, 50}}) {
        INFO(device->info().id << " " << shape.str());
        const auto results = run(device, {{Array(shape, x.values)}}, [](const std::vector<Value>& in) {
          return std::vector{sum(sum(in[0], {0})), mean(in[0])};
        });
        CHECK(std::abs(static_cast<double>(results[0].values<float>()[0]) / expected - 1) < 2e-7);
        CHECK(std::abs(static_cast<double>(results[1].values<float>()[0]) / expected * 1e6 - 1) < 2e-7);
      }
    }
  }
}

}  // namespace
}  // namespace concord::test
