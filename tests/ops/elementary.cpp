// Powers with whole exponents, rounding and signs: exact results, and gradients for x ≤ 0. Accuracy is tested in
// accuracy.cpp.
#include "concord/ops/elementary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "concord/graph/expression.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

TEST_CASE("pow with a constant exponent has values and gradients for any sign of x", "[ops][elementary]") {
  const std::vector<double> points{-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3};
  const std::int64_t count = static_cast<std::int64_t>(points.size());
  for (const DevicePtr& device : devices()) {
    for (const float exponent : {-3.0F, -2.0F, -1.0F, 0.0F, 1.0F, 2.0F, 3.0F, 5.0F, 8.0F, 9.0F, -11.0F, 0.5F, 2.5F}) {
      INFO("device " << device->info().id << ", exponent " << exponent);
      const auto results = run(device, {{Array({count}, points)}}, [&](const std::vector<Value>& in) {
        const Value y = pow(in[0], exponent), slope = gradient(sum(y), in).front();
        return std::vector{y, slope, gradient(sum(slope), in).front()};
      });
      const double n = static_cast<double>(exponent);
      for (std::size_t i = 0; i < points.size(); ++i) {
        // A factor of 0 comes before infinity: x^1 has a second derivative of 0 at 0.
        const auto power = [&](double factor, double e) { return factor == 0 ? 0 : factor * std::pow(points[i], e); };
        const double expected[] = {power(1, n), power(n, n - 1), power(n * (n - 1), n - 2)};
        for (std::size_t k = 0; k < 3; ++k) {
          const double got = static_cast<double>(results[k].values<float>()[i]);
          INFO("x " << points[i] << ", derivative " << k << ", got " << got << ", expected " << expected[k]);
          if (std::isnan(expected[k])) {
            CHECK(std::isnan(got));
          } else if (std::isinf(expected[k])) {
            CHECK(got == expected[k]);
          } else {
            CHECK(std::abs(got - expected[k]) <= 2e-6 * std::abs(expected[k]));
          }
        }
      }
    }
  }
}

TEST_CASE("whole exponents up to 8 are products", "[ops][elementary]") {
  for (int n = -8; n <= 8; ++n) {
    const Expression expression({scalar::power(scalar::input(0), static_cast<float>(n))}, 1);
    for (const auto& instruction : expression.code()) CHECK(instruction.function != ScalarFunction::power);
    for (const float x : {-3.0F, -1.0F, 2.0F}) {
      const float expected = static_cast<float>(std::pow(static_cast<double>(x), n));
      CHECK(expression.evaluate(0, std::vector{x}) == Approx(expected).epsilon(1e-7));
    }
  }
}

TEST_CASE("pow of two values", "[ops][elementary]") {
  check({.name = "broadcast",
         .inputs = {{uniform({3, 4}, 1, 0.5, 2)}, {uniform({4}, 2, -2, 3)}},
         .build = [](const std::vector<Value>& x) { return std::vector{pow(x[0], x[1])}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array y = x[0];
               for (std::size_t i = 0; i < 12; ++i) y.values[i] = std::pow(x[0].values[i], x[1].values[i % 4]);
               return std::vector{y};
             },
         .tolerance = 2e-6});
}

TEST_CASE("atan2 of two values that broadcast", "[ops][elementary]") {
  check({.name = "broadcast",
         .inputs = {{uniform({3, 4}, 1, -2, 2)}, {uniform({4}, 2, -2, 2)}},
         .build = [](const std::vector<Value>& x) { return std::vector{atan2(x[0], x[1])}; },
         .reference =
             [](const std::vector<Array>& x) {
               Array y = x[0];
               for (std::size_t i = 0; i < 12; ++i) y.values[i] = std::atan2(x[0].values[i], x[1].values[i % 4]);
               return std::vector{y};
             },
         .tolerance = 2e-6});
  // The direction of a point comes back, of second order too: ∂²/∂y² atan2(y, x) is −2xy/(x² + y²)².
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<double> y{0, 1, -2, 3, 0, -1}, x{0, 2, 1, -1, -3, 0};
    const auto results = run(device, {{Array({6}, y)}, {Array({6}, x)}}, [](const std::vector<Value>& in) {
      const Value slope = gradient(sum(atan2(in[0], in[1])), in).front();
      return std::vector{gradient(sum(slope), in).front()};
    });
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double square = x[i] * x[i] + y[i] * y[i];
      const double expected = square == 0 ? 0 : -2 * x[i] * y[i] / (square * square);
      CHECK(static_cast<double>(results[0].values<float>()[i]) == Approx(expected).epsilon(1e-5).margin(1e-7));
    }
  }
}

TEST_CASE("rounding is exact, and its gradient 0", "[ops][elementary]") {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> x{-2.5, -1.5, -0.5, -0.25, 0, 0.5, 1.5, 2.5, 3.75, 8388609, -3e9, inf, -inf};
  const std::int64_t count = static_cast<std::int64_t>(x.size());
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {{Array({count}, x)}}, [](const std::vector<Value>& in) {
      std::vector<Value> y{floor(in[0]), ceil(in[0]), round(in[0]), trunc(in[0]), sign(in[0])};
      y.push_back(gradient(sum(y[0] + y[1] + y[2] + y[3] + y[4]), in).front());
      return y;
    });
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO("x " << x[i]);
      const double expected[] = {std::floor(x[i]),
                                 std::ceil(x[i]),
                                 std::nearbyint(x[i]),
                                 std::trunc(x[i]),
                                 x[i] > 0 ? 1.0 : x[i] < 0 ? -1.0 : 0.0,
                                 0};
      for (std::size_t k = 0; k < results.size(); ++k) {
        INFO("function " << k);
        CHECK(static_cast<double>(results[k].values<float>()[i]) == expected[k]);
      }
    }
  }
  Graph graph;
  const Value whole = graph.input("i", {DType::i32, {3}});
  CHECK(round(whole) == whole);
  CHECK(sign(whole).dtype() == DType::i32);
}

TEST_CASE("powers of two have whole logarithms", "[ops][elementary]") {
  std::vector<double> x;
  for (int n = -126; n <= 127; ++n) x.push_back(std::ldexp(1.0, n));
  const std::int64_t count = static_cast<std::int64_t>(x.size());
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results =
        run(device, {{Array({count}, x)}}, [](const std::vector<Value>& in) { return std::vector{log2(in[0])}; });
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(results[0].values<float>()[i] == static_cast<float>(i) - 126);
  }
}

}  // namespace
}  // namespace concord::test
