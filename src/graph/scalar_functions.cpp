// The table of scalar functions: names, arity, test range, value in double precision, derivative. A new function is one
// row here, its name in scalar_function_list.hpp, its formula in cl_kernels/shared/formulas.h and its bound in
// ops/accuracy.cpp; tests pick it up by themselves.
#include "concord/graph/scalar_functions.hpp"

#include <shared/formulas.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "concord/core/error.hpp"

namespace concord {
namespace {

using scalar::equal;
using scalar::less;
using scalar::select;
using Arguments = std::span<const Scalar>;
using F = ScalarFunction;

constexpr float kTwoOverRootPi = 1.12837916709551257F;
constexpr float kOneOverRootTwoPi = 0.398942280401432678F;

bool is_constant(const Scalar& a) { return a.node().function == F::constant; }

// Of max(a, b) with respect to a. Against a constant the tie counts as the constant's (relu at 0), and the condition
// is read off the result `y`, so that a gradient needs the activation only and not what went into it. Otherwise a
// tie is shared.
Scalar max_slope(const Scalar& y, const Scalar& a, const Scalar& b) {
  if (is_constant(b)) return less(b, y);
  return select(less(b, a), 1.0F, select(equal(a, b), 0.5F, 0.0F));
}
Scalar min_slope(const Scalar& y, const Scalar& a, const Scalar& b) {
  if (is_constant(b)) return less(y, b);
  return select(less(a, b), 1.0F, select(equal(a, b), 0.5F, 0.0F));
}
Scalar sign(const Scalar& a) { return less(0.0F, a) - less(a, 0.0F); }

// The number of arguments and the formula by the name.
#define CONCORD_FORMULA(name) \
  float formula_of_##name(const float* a) { return concord_##name(a[0]); }
CONCORD_UNARY_FUNCTIONS(CONCORD_FORMULA)
#undef CONCORD_FORMULA
#define CONCORD_FORMULA(name) \
  float formula_of_##name(const float* a) { return concord_##name(a[0], a[1]); }
CONCORD_BINARY_FUNCTIONS(CONCORD_FORMULA)
#undef CONCORD_FORMULA
#define CONCORD_FUNCTION(name, arity, low, high) {F::name, #name, arity, low, high}, formula_of_##name

// evaluate: the function on numbers; exactly: the same in double precision; slope: ∂y/∂argument[k], given the result y
// itself. A slope must keep its digits where the function is flat, so it is not made of a result that is rounded there.
struct Row {
  ScalarFunctionInfo info;
  float (*evaluate)(const float* a);
  double (*exactly)(const double* a);
  Scalar (*slope)(const Scalar& y, Arguments a, int k);
};

Scalar flat(const Scalar&, Arguments, int) { return 0.0F; }

double logistic(double a) { return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a)); }
double normal_cdf(double a) { return 0.5 * std::erfc(-a / std::numbers::sqrt2); }
double normal_pdf(double a) { return std::exp(-0.5 * a * a) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }
// σ(gelu_tanh_argument(a)) is (1 + tanh(√(2/π)·(a + 0.044715·a³))) / 2.
constexpr double kTwiceRoot = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
double gelu_tanh_argument(double a) { return kTwiceRoot * a * (1 + kCubic * a * a); }
// x·y, 0 where y is.
double product(double x, double y) { return y == 0 ? 0 : x * y; }

// `formula` for |a| <= limit, from where on it is 0; not of infinity, which might be ∞·0.
Scalar within(const Scalar& a, float limit, const Scalar& formula) {
  return select(less(limit, scalar::abs(a)), 0.0F, formula);
}

const std::array kTable = {
    Row{{F::add, "add", 2, -3, 3},
        [](const float* a) { return a[0] + a[1]; },
        [](const double* a) { return a[0] + a[1]; },
        [](const Scalar&, Arguments, int) -> Scalar { return 1.0F; }},
    Row{{F::subtract, "subtract", 2, -3, 3},
        [](const float* a) { return a[0] - a[1]; },
        [](const double* a) { return a[0] - a[1]; },
        [](const Scalar&, Arguments, int k) -> Scalar { return k == 0 ? 1.0F : -1.0F; }},
    Row{{F::multiply, "multiply", 2, -3, 3},
        [](const float* a) { return a[0] * a[1]; },
        [](const double* a) { return a[0] * a[1]; },
        [](const Scalar&, Arguments a, int k) { return a[k == 0 ? 1 : 0]; }},
    Row{{F::divide, "divide", 2, 0.25F, 3},
        [](const float* a) { return a[0] / a[1]; },
        [](const double* a) { return a[0] / a[1]; },
        [](const Scalar& y, Arguments a, int k) { return k == 0 ? 1.0F / a[1] : -(y / a[1]); }},
    Row{{F::negate, "negate", 1, -3, 3},
        [](const float* a) { return -a[0]; },
        [](const double* a) { return -a[0]; },
        [](const Scalar&, Arguments, int) -> Scalar { return -1.0F; }},
    Row{{F::less, "less", 2, -3, 3},
        [](const float* a) { return a[0] < a[1] ? 1.0F : 0.0F; },
        [](const double* a) { return a[0] < a[1] ? 1.0 : 0.0; },
        flat},
    Row{{F::less_equal, "less_equal", 2, -3, 3},
        [](const float* a) { return a[0] <= a[1] ? 1.0F : 0.0F; },
        [](const double* a) { return a[0] <= a[1] ? 1.0 : 0.0; },
        flat},
    Row{{F::equal, "equal", 2, -3, 3},
        [](const float* a) { return a[0] == a[1] ? 1.0F : 0.0F; },
        [](const double* a) { return a[0] == a[1] ? 1.0 : 0.0; },
        flat},
    Row{{F::select, "select", 3, -3, 3},
        [](const float* a) { return a[0] != 0 ? a[1] : a[2]; },
        [](const double* a) { return a[0] != 0 ? a[1] : a[2]; },
        [](const Scalar&, Arguments a, int k) -> Scalar {
          if (k == 0) return 0.0F;
          return k == 1 ? select(a[0], 1.0F, 0.0F) : select(a[0], 0.0F, 1.0F);
        }},
    Row{CONCORD_FUNCTION(minimum, 2, -3, 3),
        [](const double* a) { return a[0] <= a[1] || std::isnan(a[0]) ? a[0] : a[1]; },
        [](const Scalar& y, Arguments a, int k) { return min_slope(y, a[k == 0 ? 0 : 1], a[k == 0 ? 1 : 0]); }},
    Row{CONCORD_FUNCTION(maximum, 2, -3, 3),
        [](const double* a) { return a[0] >= a[1] || std::isnan(a[0]) ? a[0] : a[1]; },
        [](const Scalar& y, Arguments a, int k) { return max_slope(y, a[k == 0 ? 0 : 1], a[k == 0 ? 1 : 0]); }},
    Row{CONCORD_FUNCTION(abs, 1, -3, 3), [](const double* a) { return std::abs(a[0]); },
        [](const Scalar&, Arguments a, int) { return sign(a[0]); }},
    Row{CONCORD_FUNCTION(exp, 1, -20, 20), [](const double* a) { return std::exp(a[0]); },
        [](const Scalar& y, Arguments, int) { return y; }},
    Row{CONCORD_FUNCTION(exp_product, 2, -3, 3), [](const double* a) { return std::exp(a[0] * a[1]); },
        // Not ∞·0.
        [](const Scalar& y, Arguments a, int k) { return select(equal(y, 0.0F), 0.0F, a[k == 0 ? 1 : 0] * y); }},
    Row{CONCORD_FUNCTION(expm1, 1, -5, 5), [](const double* a) { return std::expm1(a[0]); },
        [](const Scalar&, Arguments a, int) { return scalar::exp(a[0]); }},
    Row{CONCORD_FUNCTION(log, 1, 0.01F, 100), [](const double* a) { return std::log(a[0]); },
        [](const Scalar&, Arguments a, int) { return 1.0F / a[0]; }},
    Row{CONCORD_FUNCTION(log1p, 1, -0.9F, 10), [](const double* a) { return std::log1p(a[0]); },
        [](const Scalar&, Arguments a, int) { return 1.0F / (1.0F + a[0]); }},
    Row{CONCORD_FUNCTION(sqrt, 1, 0.01F, 100), [](const double* a) { return std::sqrt(a[0]); },
        [](const Scalar& y, Arguments, int) { return 0.5F / y; }},
    Row{CONCORD_FUNCTION(rsqrt, 1, 0.01F, 100), [](const double* a) { return 1 / std::sqrt(a[0]); },
        [](const Scalar& y, Arguments a, int) { return -0.5F * y / a[0]; }},
    Row{CONCORD_FUNCTION(sin, 1, -6, 6), [](const double* a) { return std::sin(a[0]); },
        [](const Scalar&, Arguments a, int) { return scalar::cos(a[0]); }},
    Row{CONCORD_FUNCTION(cos, 1, -6, 6), [](const double* a) { return std::cos(a[0]); },
        [](const Scalar&, Arguments a, int) { return -scalar::sin(a[0]); }},
    Row{CONCORD_FUNCTION(tanh, 1, -5, 5), [](const double* a) { return std::tanh(a[0]); },
        [](const Scalar&, Arguments a, int) { return 4.0F * scalar::sigmoid_slope(2.0F * a[0]); }},
    Row{CONCORD_FUNCTION(erf, 1, -4, 4), [](const double* a) { return std::erf(a[0]); },
        [](const Scalar&, Arguments a, int) { return kTwoOverRootPi * scalar::exp_product(a[0], -a[0]); }},
    Row{CONCORD_FUNCTION(normal_cdf, 1, -7, 7), [](const double* a) { return normal_cdf(a[0]); },
        [](const Scalar&, Arguments a, int) { return kOneOverRootTwoPi * scalar::exp_product(a[0], -0.5F * a[0]); }},
    Row{CONCORD_FUNCTION(gelu, 1, -7, 7), [](const double* a) { return product(a[0], normal_cdf(a[0])); },
        [](const Scalar&, Arguments a, int) { return scalar::gelu_slope(a[0]); }},
    Row{CONCORD_FUNCTION(gelu_slope, 1, -7, 7),
        [](const double* a) { return normal_cdf(a[0]) + product(a[0], normal_pdf(a[0])); },
        [](const Scalar&, Arguments a, int) {
          const Scalar density = kOneOverRootTwoPi * scalar::exp_product(a[0], -0.5F * a[0]);
          return within(a[0], 20.0F, density * (2.0F - a[0] * a[0]));
        }},
    Row{CONCORD_FUNCTION(gelu_tanh, 1, -7, 7),
        [](const double* a) { return product(a[0], logistic(gelu_tanh_argument(a[0]))); },
        [](const Scalar&, Arguments a, int) { return scalar::gelu_tanh_slope(a[0]); }},
    Row{CONCORD_FUNCTION(gelu_tanh_slope, 1, -7, 7),
        [](const double* a) {
          const double z = gelu_tanh_argument(a[0]), slope = logistic(z) * logistic(-z);
          return logistic(z) + product(a[0] * kTwiceRoot * (1 + 3 * kCubic * a[0] * a[0]), slope);
        },
        [](const Scalar&, Arguments a, int) {  // σ'(z)·(2z' + a·(z'' - z'²·tanh(z/2)))
          const auto c = static_cast<float>(kTwiceRoot), k = static_cast<float>(kCubic);
          const Scalar square = a[0] * a[0], z = c * (a[0] * (1.0F + k * square)), z1 = c * (1.0F + 3.0F * k * square);
          const Scalar curved = 6.0F * c * k * a[0] - z1 * z1 * scalar::tanh(0.5F * z);
          return within(a[0], 20.0F, scalar::sigmoid_slope(z) * (2.0F * z1 + a[0] * curved));
        }},
    Row{CONCORD_FUNCTION(sigmoid, 1, -20, 20), [](const double* a) { return logistic(a[0]); },
        [](const Scalar&, Arguments a, int) { return scalar::sigmoid_slope(a[0]); }},
    Row{CONCORD_FUNCTION(sigmoid_slope, 1, -20, 20), [](const double* a) { return logistic(a[0]) * logistic(-a[0]); },
        [](const Scalar& y, Arguments a, int) { return -(y * scalar::tanh(0.5F * a[0])); }},
    Row{CONCORD_FUNCTION(silu, 1, -20, 20), [](const double* a) { return product(a[0], logistic(a[0])); },
        [](const Scalar&, Arguments a, int) { return scalar::silu_slope(a[0]); }},
    Row{CONCORD_FUNCTION(silu_slope, 1, -20, 20),
        [](const double* a) { return logistic(a[0]) + product(a[0], logistic(a[0]) * logistic(-a[0])); },
        [](const Scalar&, Arguments a, int) {
          return within(a[0], 120.0F, scalar::sigmoid_slope(a[0]) * (2.0F - a[0] * scalar::tanh(0.5F * a[0])));
        }},
    Row{CONCORD_FUNCTION(softplus, 1, -20, 20),
        [](const double* a) { return std::max(a[0], 0.0) + std::log1p(std::exp(-std::abs(a[0]))); },
        [](const Scalar&, Arguments a, int) { return scalar::sigmoid(a[0]); }},
    Row{CONCORD_FUNCTION(power, 2, 0.1F, 3), [](const double* a) { return std::pow(a[0], a[1]); },
        [](const Scalar& y, Arguments a, int k) {
          if (k == 0) return select(equal(a[1], 0.0F), 0.0F, a[1] * scalar::power(a[0], a[1] - 1.0F));
          // Not 0·log(0): 0 to any power from 0 on counts as flat.
          const Scalar is_flat = select(equal(y, 0.0F), 1.0F, equal(a[1], 0.0F) * equal(a[0], 0.0F));
          return select(is_flat, 0.0F, y * scalar::log(a[0]));
        }},
    Row{CONCORD_FUNCTION(floor, 1, -3, 3), [](const double* a) { return std::floor(a[0]); }, flat},
    Row{CONCORD_FUNCTION(is_finite, 1, -3, 3), [](const double* a) { return std::isfinite(a[0]) ? 1.0 : 0.0; }, flat},
};
#undef CONCORD_FUNCTION

const Row& row_of(ScalarFunction function) {
  for (const Row& row : kTable) {
    if (row.info.function == function) return row;
  }
  throw Error("a leaf of an expression is not a scalar function");
}

}  // namespace

const ScalarFunctionInfo& info_of(ScalarFunction function) { return row_of(function).info; }

std::span<const ScalarFunctionInfo> scalar_functions() {
  static const auto infos = [] {
    std::array<ScalarFunctionInfo, kTable.size()> list{};
    for (std::size_t i = 0; i < kTable.size(); ++i) list[i] = kTable[i].info;
    return list;
  }();
  return infos;
}

float evaluate(ScalarFunction function, const float* arguments) { return row_of(function).evaluate(arguments); }

double evaluate_exactly(ScalarFunction function, const double* arguments) {
  return row_of(function).exactly(arguments);
}

Scalar slope(const Scalar& y, int argument) { return row_of(y.node().function).slope(y, y.node().arguments, argument); }

}  // namespace concord
