// Functions, activations and losses of a logit over the whole range of fp32, with their first and second derivatives,
// on every device against the C library in double precision: within the bounds of ops/accuracy.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>

#include "concord/nn/distribution_loss.hpp"
#include "concord/ops/activations.hpp"
#include "concord/ops/elementary.hpp"
#include "concord/ops/pointwise.hpp"
#include "ops/exact_functions.hpp"

namespace concord::test {
namespace {

constexpr D kInf = std::numeric_limits<D>::infinity();

Scalar scalar_of(std::string_view name, const Scalar& x) {
  for (const ScalarFunctionInfo& info : scalar_functions()) {
    if (info.name == name) return scalar::apply(info.function, {x});
  }
  FAIL("no scalar function " << name);
  return x;
}

/// All exponents with some mantissas, a fine grid where most functions bend, and what is special.
std::vector<float> points() {
  std::vector<float> list = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1.0F, -1.0F};
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (std::uint32_t k = 0; k < 12; ++k) {
      const std::uint32_t mantissa = k == 0   ? 0U
                                     : k == 1 ? 0x7FFFFFU
                                     : k == 2 ? 1U
                                              : (k * 0x9E3779B9U + exponent * 0x85EBCA6BU) >> 9;
      for (const std::uint32_t sign : {0U, 0x80000000U}) {
        list.push_back(std::bit_cast<float>(sign | exponent << 23 | mantissa));
      }
    }
  }
  for (int i = -6000; i <= 6000; ++i) {
    list.push_back(static_cast<float>(i) * 0.0187F);
    list.push_back(static_cast<float>(i) * 0.00137F);
  }
  for (const float edge : {88.7228317F, 88.7228394F, 87.3365402F, 87.3365479F, 103.97F, 16.0F, 20.0F, 13.2F, 12.0F,
                           3.0F, 6.0F, 0.5F, 0.625F, 9.0F, 12000.0F, 100.0F, 98.0F}) {
    for (const float at : {std::nextafter(edge, 0.0F), edge, std::nextafter(edge, INFINITY)}) {
      list.push_back(at);
      list.push_back(-at);
    }
  }
  return list;
}

/// The error in ULP of the right result, of at least `least`; infinite where one is NaN or infinite and the other is
/// not.
D error_of(float got, D expected, D least, D underflow = kUnderflow) {
  constexpr D kLargest = std::numeric_limits<float>::max();
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) == std::isnan(got) ? 0 : kInf;
  const D beyond = kLargest * (1 + 0x1p-25);
  // Near the end of the range a bound of some ULP allows either side of it.
  const D limited = std::clamp(expected, -beyond, beyond);
  const D number = std::isinf(got) ? std::copysign(beyond, static_cast<D>(got)) : static_cast<D>(got);
  if (std::abs(number - limited) <= underflow) return 0;
  const D size = std::max({std::min(std::abs(limited), kLargest), least, static_cast<D>(0x1p-126F)});
  return std::abs(number - limited) / std::ldexp(1.0, std::ilogb(size) - 23);
}

struct Worst {
  D error = 0;
  float at = 0, got = 0;
  D expected = 0;
};

/// Numbers below 2^-126 may be taken for 0 of either sign, and the sign of 0 is of no account to an infinite slope.
void note(Worst& worst, float x, float got, const ExactFunction::Right& right, D least, D underflow = kUnderflow) {
  if (std::abs(x) < std::numeric_limits<float>::min() && std::isinf(got) && std::isinf(right(0.0))) return;
  D error = error_of(got, right(static_cast<D>(x)), least, underflow);
  if (x != 0 && std::abs(x) < std::numeric_limits<float>::min()) {
    for (const D zero : {0.0, -0.0}) error = std::min(error, error_of(got, right(zero), least, underflow));
  }
  if (error > worst.error) worst = {error, x, got, right(static_cast<D>(x))};
}

void expect_within(const Worst& worst, D bound, std::string_view name, const char* what) {
  INFO(name << "'s " << what << " at " << worst.at << ": got " << worst.got << ", right " << worst.expected);
  CHECK(worst.error <= bound);
}

TEST_CASE("functions and their derivatives keep their digits over all of fp32", "[ops][accuracy]") {
  const std::vector<float> x = points();
  const std::vector<ExactFunction> all = exact_functions();
  Array values(Shape{static_cast<std::int64_t>(x.size())});
  std::ranges::copy(x, values.values.begin());
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results = run(device, {{values}}, [&](const std::vector<Value>& in) {
      std::vector<Value> outputs;
      for (const ExactFunction& function : all) {
        if (function.build != nullptr) {
          outputs.push_back(function.build(in[0]));
        } else {
          outputs.push_back(pointwise(std::string(function.name), {in[0]}, scalar_of(function.name, scalar::input(0))));
        }
        const Value slope = gradient(sum(outputs.back()), std::vector{in[0]}).front();
        outputs.push_back(slope ? slope : full(in[0].graph(), in[0].shape(), 0));
        if (function.curve) outputs.push_back(gradient(sum(slope), std::vector{in[0]}).front());
      }
      return outputs;
    });
    std::size_t result = 0;
    for (const ExactFunction& function : all) {
      const FunctionAccuracy& bound = accuracy_of(function.name);
      const std::span<const float> value = results[result++].values<float>(), slope = results[result++].values<float>();
      const std::span<const float> curve =
          function.curve ? results[result++].values<float>() : std::span<const float>{};
      Worst of_value, of_slope, of_curve;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::isinf(x[i]) && function.is_loss) continue;  // x·(1 - t) is ∞·0, as in PyTorch
        note(of_value, x[i], value[i], function.value, 0);
        if (std::isnan(x[i])) continue;  // the slope at NaN is nobody's
        const bool beside_root = std::abs(static_cast<D>(x[i]) - bound.root) < kBesideRoot;
        note(of_slope, x[i], slope[i], function.slope, beside_root ? 0.125 : 0);
        if (function.curve)
          note(of_curve, x[i], curve[i], function.curve, std::abs(x[i]) < 4 ? 0.125 : 0, kCurveUnderflow);
      }
      expect_within(of_value, bound.ulps, function.name, "value");
      expect_within(of_slope, bound.slope_ulps, function.name, "slope");
      if (function.curve) expect_within(of_curve, bound.curve_ulps, function.name, "second derivative");
    }
  }
}

TEST_CASE("power and exp_product keep their digits over all of fp32", "[ops][accuracy]") {
  std::vector<float> a, b;
  const std::vector<float> all = points();
  constexpr float kPowers[] = {0.5F,     2,         3,           -1,  -2,       2.3F, 0.1F,  -0.37F,
                               7,        30.5F,     1e-3F,       100, -1000.5F, 1e5F, 1e30F, 0,
                               INFINITY, -INFINITY, 16777217.0F, -3,  NAN,      1,    -0.5F};
  for (std::size_t i = 0; i < all.size(); i += 3) {
    for (const float power : kPowers) {
      a.push_back(all[i]);
      b.push_back(power);
    }
  }
  const Shape shape{static_cast<std::int64_t>(a.size())};
  Array first(shape), second(shape);
  std::ranges::copy(a, first.values.begin());
  std::ranges::copy(b, second.values.begin());
  const Scalar x = scalar::input(0), y = scalar::input(1), power = scalar::power(x, y);
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results = run(device, {{first}, {second}}, [&](const std::vector<Value>& in) {
      return pointwise("two", in, {power, derivative(power, 0), scalar::exp_product(x, y)},
                       std::vector<DType>(3, DType::f32));
    });
    Worst of_power, of_slope, of_product;
    const auto hold = [&](Worst& worst, std::size_t i, float got, auto right) {
      if (a[i] != 0 && std::abs(a[i]) < std::numeric_limits<float>::min()) return;
      const D expected = right(static_cast<D>(a[i]), static_cast<D>(b[i])), error = error_of(got, expected, 0);
      if (error > worst.error) worst = {error, a[i], got, expected};
    };
    for (std::size_t i = 0; i < a.size(); ++i) {
      hold(of_power, i, results[0].values<float>()[i], [](D u, D v) { return std::pow(u, v); });
      hold(of_product, i, results[2].values<float>()[i], [](D u, D v) { return std::exp(u * v); });
      if (std::isnan(a[i]) || std::isnan(b[i]) || std::isinf(b[i]) || std::abs(b[i]) > 1e4F) continue;
      const D factor = std::pow(static_cast<D>(a[i]), static_cast<D>(b[i]) - 1);  // may be out of range by itself
      if (std::isfinite(factor) && factor != 0 && !std::isnormal(static_cast<float>(factor))) continue;
      hold(of_slope, i, results[1].values<float>()[i], [](D u, D v) { return v == 0 ? 0 : v * std::pow(u, v - 1); });
    }
    expect_within(of_power, accuracy_of("power").ulps, "power", "value");
    expect_within(of_slope, accuracy_of("power").slope_ulps, "power", "slope");
    expect_within(of_product, accuracy_of("exp_product").ulps, "exp_product", "value");
  }
}

TEST_CASE("atan2 keeps its digits in all quadrants and all of fp32", "[ops][accuracy]") {
  std::vector<float> a, b;
  const std::vector<float> all = points();
  for (std::size_t i = 0; i < all.size(); i += 3) {
    for (const float ratio : {0.0F, -0.0F, 1.0F, -1.0F, 1e-4F, 0.37F, -2.5F, 1e9F, INFINITY, -INFINITY, NAN}) {
      a.push_back(all[i]);
      b.push_back(i % 2 == 0 || !std::isfinite(all[i] * ratio) ? ratio : all[i] * ratio);
    }
  }
  const Shape shape{static_cast<std::int64_t>(a.size())};
  Array first(shape), second(shape);
  std::ranges::copy(a, first.values.begin());
  std::ranges::copy(b, second.values.begin());
  const auto is_subnormal = [](float x) { return x != 0 && std::abs(x) < std::numeric_limits<float>::min(); };
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results = run(device, {{first}, {second}}, [](const std::vector<Value>& in) {
      std::vector<Value> outputs{atan2(in[0], in[1])};
      for (const Value& slope : gradient(sum(outputs[0]), in)) outputs.push_back(slope);
      return outputs;
    });
    Worst worst[3];
    for (std::size_t i = 0; i < a.size(); ++i) {
      const D y = static_cast<D>(a[i]), x = static_cast<D>(b[i]), square = y * y + x * x;
      if (is_subnormal(a[i]) || is_subnormal(b[i])) continue;
      const bool is_flat = square == 0, has_slope = std::isfinite(square);
      const D right[] = {std::atan2(y, x), is_flat ? 0 : x / square, is_flat ? 0 : -y / square};
      for (std::size_t k = 0; k < (has_slope ? 3 : 1); ++k) {
        const float got = results[k].values<float>()[i];
        const D error = error_of(got, right[k], 0);
        if (error > worst[k].error) worst[k] = {error, a[i], got, right[k]};
        if (k == 0 && !std::isnan(got)) CHECK(std::signbit(got) == std::signbit(right[k]));
      }
    }
    expect_within(worst[0], accuracy_of("atan2").ulps, "atan2", "value");
    expect_within(worst[1], accuracy_of("atan2").slope_ulps, "atan2", "slope by y");
    expect_within(worst[2], accuracy_of("atan2").slope_ulps, "atan2", "slope by x");
  }
}

TEST_CASE("a focal loss of any gamma has a gradient where the prediction is certain", "[ops][accuracy]") {
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results =
        run(device, {{Array({4}, {100, 200, -100, 20})}}, [](const std::vector<Value>& in) {
          const loss::Focal focal{.alpha = -1, .gamma = 0.5F, .reduction = loss::Reduction::sum};
          return std::vector{gradient(focal(in[0], full(in[0].graph(), in[0].shape(), 1)), std::vector{in[0]}).front()};
        });
    const std::span<const float> slope = results[0].values<float>();
    CHECK(slope[0] == 0.0F);
    CHECK(slope[1] == 0.0F);
    CHECK(slope[2] == Approx(-1));
    // The loss is exp(-1.5·x) to first order.
    CHECK(slope[3] == Approx(-1.5 * std::exp(-30.0)).epsilon(1e-5));
  }
}

TEST_CASE("docs/functions.md has the bounds of what is made of scalar functions", "[ops][accuracy]") {
  std::ifstream file(folder_of_tests() / "../docs/functions.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto scalars = scalar_function_accuracy();
  for (const FunctionAccuracy& row : function_accuracy()) {
    if (std::ranges::find(scalars, row.name, &FunctionAccuracy::name) != scalars.end()) continue;
    const std::string line = fmt::format("| {} | {} | {} | {} | {} |\n", row.name, row.ulps, row.slope_ulps,
                                         row.curve_ulps > 0 ? fmt::format("{}", row.curve_ulps) : "–",
                                         std::isnan(row.root) ? "–" : fmt::format("{}", row.root));
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
}

// Slopes as they were asked for.
TEST_CASE("slopes of ELU, SELU, CELU and expm1 do not cancel far left", "[ops][accuracy]") {
  const Input x{Array({2}, {-16, -20})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results = run(device, {x}, [](const std::vector<Value>& in) {
      std::vector<Value> slopes;
      for (const Value y : {elu(in[0]), elu(in[0], 2), selu(in[0]), celu(in[0], 2),
                            pointwise("expm1", {in[0]}, scalar::expm1(scalar::input(0))), tanh(in[0])}) {
        slopes.push_back(gradient(sum(y), std::vector{in[0]}).front());
      }
      return slopes;
    });
    for (std::size_t i = 0; i < 2; ++i) {
      const D at = x.value.values[i], e = std::exp(at);
      const D right[] = {e, 2 * e, kSelu * kAlpha * e, std::exp(at / 2), e, std::pow(std::cosh(at), -2)};
      for (std::size_t k = 0; k < results.size(); ++k) {
        INFO("function " << k << " at " << at);
        CHECK(results[k].values<float>()[i] == Approx(right[k]).epsilon(1e-6).margin(0));
      }
    }
  }
}

}  // namespace
}  // namespace concord::test
