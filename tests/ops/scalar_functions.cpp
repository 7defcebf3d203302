// Every row of the table of scalar functions on every device: values within their bounds of double-precision results,
// symbolic derivatives against differences.
#include "concord/graph/scalar_functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/ops/pointwise.hpp"
#include "ops/exact_functions.hpp"

namespace concord::test {
namespace {

constexpr std::int64_t kPoints = 241;

// Arguments spread over the test range, each in an order of its own.
std::vector<Input> arguments_of(const ScalarFunctionInfo& info) {
  std::vector<Input> arguments;
  for (int k = 0; k < info.arity; ++k) {
    arguments.push_back({uniform({kPoints}, static_cast<std::uint32_t>(k + 1), info.test_low, info.test_high)});
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(kPoints); i += 16) {  // equal arguments, zeros, whole numbers
    for (Input& argument : arguments) argument.value.values[i] = std::round(arguments[0].value.values[i]);
  }
  for (Input& argument : arguments) {
    for (double& v : argument.value.values) v = std::clamp<double>(v, info.test_low, info.test_high);
  }
  return arguments;
}

double ulps_between(double got, double expected, double least = 0) {
  const auto nearest = static_cast<float>(std::max(std::abs(expected), least));
  const double ulp = std::max(std::abs(static_cast<double>(std::nextafter(nearest, 1e30F)) - nearest),
                              static_cast<double>(std::numeric_limits<float>::min()));
  return std::abs(got - expected) / ulp;
}

void check_row(const ScalarFunctionInfo& info, const FunctionAccuracy& bound, const DevicePtr& device) {
  const auto formula_at = [&](const double* a) { return evaluate_exactly(info.function, a); };
  INFO("function " << info.name << " on " << device->info().id);
  std::vector<Scalar> operands;
  for (int k = 0; k < info.arity; ++k) operands.push_back(scalar::input(k));
  const Scalar formula = scalar::apply(info.function, operands);
  std::vector<Scalar> formulas = {formula};
  for (int k = 0; k < info.arity; ++k) formulas.push_back(derivative(formula, k));
  const std::vector<Input> arguments = arguments_of(info);
  const std::vector<Tensor> results = run(device, arguments, [&](const std::vector<Value>& x) {
    return pointwise("row", x, formulas, std::vector<DType>(formulas.size(), DType::f32));
  });
  const Array values = to_array(results[0]);
  double worst = 0, worst_slope = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kPoints); ++i) {
    double a[3] = {0, 0, 0};
    for (std::size_t k = 0; k < arguments.size(); ++k) a[k] = arguments[k].value.values[i];
    const double expected = formula_at(a);
    const bool beside_root = std::abs(a[0] - bound.root) < kBesideRoot;
    worst = std::max(worst, ulps_between(values.values[i], expected, beside_root ? 0.125 : 0));
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const double h = 1e-5 * std::max(1.0, std::abs(a[k]));
      const double x = a[k];
      a[k] = x + h;
      const double above = formula_at(a);
      a[k] = x - h;
      const double below = formula_at(a);
      a[k] = x;
      const double slope = (above - below) / (2 * h);
      const double size = std::max(1.0, std::abs(slope));
      const double bend = std::abs(above - 2 * expected + below) / h;
      if (!std::isfinite(slope) || bend > 1e-2 * size) continue;  // a kink
      worst_slope = std::max(worst_slope, std::abs(to_array(results[k + 1]).values[i] - slope) / size);
    }
  }
  CHECK(worst <= bound.ulps);
  CHECK(worst_slope <= 4e-5);
}

TEST_CASE("every scalar function keeps its limit and has the right derivative", "[ops][scalar]") {
  for (const ScalarFunctionInfo& info : scalar_functions()) {
    const FunctionAccuracy& bound = accuracy_of(info.name);
    for (const DevicePtr& device : devices()) check_row(info, bound, device);
  }
}

TEST_CASE("scalar functions at the edges of float", "[ops][scalar]") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const Input x{Array({7}, {0, inf, -inf, nan, 100, -100, 3e38})};
  const auto of = [](ScalarFunction function) { return scalar::apply(function, {scalar::input(0)}); };
  const std::vector<std::pair<Scalar, std::vector<double>>> rows = {
      {of(ScalarFunction::sigmoid), {0.5, 1, 0, nan, 1, static_cast<double>(3.7835059e-44F), 1}},
      {of(ScalarFunction::softplus),
       {static_cast<double>(0.69314718F), inf, 0, nan, 100, 0, static_cast<double>(3e38F)}},
      {of(ScalarFunction::tanh), {0, 1, -1, nan, 1, -1, 1}},
      {of(ScalarFunction::normal_cdf), {0.5, 1, 0, nan, 1, 0, 1}},
      {of(ScalarFunction::is_finite), {1, 0, 0, 0, 1, 1, 1}},
      {scalar::max(scalar::input(0), 0.0F), {0, inf, 0, nan, 100, 0, static_cast<double>(3e38F)}},
      {scalar::min(0.0F, scalar::input(0)), {0, 0, -inf, nan, 0, -100, 0}},
      {scalar::equal(scalar::input(0), scalar::input(0)), {1, 1, 1, 0, 1, 1, 1}},
  };
  std::vector<Scalar> formulas;
  for (const auto& row : rows) formulas.push_back(row.first);
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const std::vector<Tensor> results = run(device, {x}, [&](const std::vector<Value>& v) {
      return pointwise("edges", v, formulas, std::vector<DType>(formulas.size(), DType::f32));
    });
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Array got = to_array(results[r]);
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        INFO("row " << r << " element " << i << " got " << got.values[i]);
        const double expected = rows[r].second[i];
        CHECK((std::isnan(expected) ? std::isnan(got.values[i])
                                    : got.values[i] == expected || ulps_between(got.values[i], expected) <= 6));
      }
    }
  }
}

}  // namespace
}  // namespace concord::test
