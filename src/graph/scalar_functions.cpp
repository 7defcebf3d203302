// The rows of the operators and of the table in scalar_function_list.hpp, with what its values and slopes call.
#include "concord/graph/scalar_functions.hpp"

#include <shared/formulas.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
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
constexpr float kOneOverLogTwo = 1.44269504088896341F;

// Of max(a, b) with respect to a. Against a constant the tie counts as the constant's (relu at 0), and the condition
// is read off the result `y`, so that a gradient needs the activation only and not what went into it. Otherwise a
// tie is shared.
Scalar max_slope(const Scalar& y, const Scalar& a, const Scalar& b) {
  if (scalar::is_constant(b)) return less(b, y);
  return select(less(b, a), 1.0F, select(equal(a, b), 0.5F, 0.0F));
}
Scalar min_slope(const Scalar& y, const Scalar& a, const Scalar& b) {
  if (scalar::is_constant(b)) return less(y, b);
  return select(less(a, b), 1.0F, select(equal(a, b), 0.5F, 0.0F));
}
Scalar sign(const Scalar& a) { return less(0.0F, a) - less(a, 0.0F); }

// The function on numbers; in double precision; its slope ∂y/∂argument[k], given the result y itself.
struct Row {
  ScalarFunctionInfo info;
  FunctionAccuracy accuracy;
  float (*evaluate)(const float* a);
  double (*exactly)(const double* a);
  Scalar (*slope)(const Scalar& y, Arguments a, int k);
};

constexpr FunctionAccuracy bounds(double ulps, double slope_ulps, double curve_ulps = 0,
                                  double root = std::numeric_limits<double>::quiet_NaN()) {
  return {{}, ulps, slope_ulps, curve_ulps, root};
}

Scalar flat(const Scalar&, Arguments, int) { return 0.0F; }

double logistic(double a) { return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a)); }
double normal_cdf(double a) { return 0.5 * std::erfc(-a / std::numbers::sqrt2); }
double normal_pdf(double a) { return std::exp(-0.5 * a * a) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }
// σ(gelu_tanh_argument(a)) is (1 + tanh(√(2/π)·(a + 0.044715·a³))) / 2.
constexpr double kTwiceRoot = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
double gelu_tanh_argument(double a) { return kTwiceRoot * a * (1 + kCubic * a * a); }
// x·y, 0 where y is.
double product(double x, double y) { return y == 0 ? 0 : x * y; }
double gelu_tanh_slope(double a) {
  const double z = gelu_tanh_argument(a), slope = logistic(z) * logistic(-z);
  return logistic(z) + product(a * kTwiceRoot * (1 + 3 * kCubic * a * a), slope);
}

// `formula` for |a| <= limit, from where on it is 0; not of infinity, which might be ∞·0.
Scalar within(const Scalar& a, float limit, const Scalar& formula) {
  return select(less(limit, scalar::abs(a)), 0.0F, formula);
}

Scalar gelu_tanh_curve(const Scalar& a) {  // σ'(z)·(2z' + a·(z'' - z'²·tanh(z/2)))
  const auto c = static_cast<float>(kTwiceRoot), k = static_cast<float>(kCubic);
  const Scalar square = a * a, z = c * (a * (1.0F + k * square)), z1 = c * (1.0F + 3.0F * k * square);
  const Scalar curved = 6.0F * c * k * a - z1 * z1 * scalar::tanh(0.5F * z);
  return within(a, 20.0F, scalar::sigmoid_slope(z) * (2.0F * z1 + a * curved));
}

// 1/√(a² + 1), without squares out of range.
Scalar asinh_slope(const Scalar& a) {
  const Scalar size = scalar::abs(a), far = less(1e9F, size);
  return select(far, 1.0F / size, scalar::rsqrt(1.0F + select(far, 1.0F, a * a)));
}

Scalar power_slope(const Scalar& y, const Scalar& a, const Scalar& b, int k) {
  if (k == 0) return select(equal(b, 0.0F), 0.0F, b * scalar::power(a, b - 1.0F));
  // Not 0·log(0): 0 to any power from 0 on counts as flat.
  const Scalar is_flat = select(equal(y, 0.0F), 1.0F, equal(b, 0.0F) * equal(a, 0.0F));
  return select(is_flat, 0.0F, y * scalar::log(a));
}

// b/(a² + b²) and -a/(a² + b²), by the quotient of the smaller and the larger, whose squares are in range.
Scalar atan2_slope(const Scalar& a, const Scalar& b, int k) {
  const Scalar is_steep = less(scalar::abs(b), scalar::abs(a));
  const Scalar large = select(is_steep, a, b), small = select(is_steep, b, a), ratio = small / large;
  const Scalar base = 1.0F / (large * (1.0F + ratio * ratio));
  const Scalar slope = k == 0 ? select(is_steep, ratio, 1.0F) * base : -(select(is_steep, 1.0F, ratio) * base);
  return select(equal(large, 0.0F), 0.0F, slope);
}

#define CONCORD_UNARY_ROW(name, low, high, accuracy, value, derivative)          \
  Row{{F::name, #name, 1, low, high},                                            \
      accuracy,                                                                  \
      [](const float* arguments) { return concord_##name(arguments[0]); },       \
      [](const double* arguments) -> double {                                    \
        const double a = arguments[0];                                           \
        return value;                                                            \
      },                                                                         \
      []([[maybe_unused]] const Scalar& y, Arguments arguments, int) -> Scalar { \
        [[maybe_unused]] const Scalar& a = arguments[0];                         \
        return derivative;                                                       \
      }},
#define CONCORD_BINARY_ROW(name, low, high, accuracy, value, derivative)                 \
  Row{{F::name, #name, 2, low, high},                                                    \
      accuracy,                                                                          \
      [](const float* arguments) { return concord_##name(arguments[0], arguments[1]); }, \
      [](const double* arguments) -> double {                                            \
        const double a = arguments[0], b = arguments[1];                                 \
        return value;                                                                    \
      },                                                                                 \
      []([[maybe_unused]] const Scalar& y, Arguments arguments, int k) -> Scalar {       \
        [[maybe_unused]] const Scalar &a = arguments[0], &b = arguments[1];              \
        return derivative;                                                               \
      }},

const std::array kTable = {
    CONCORD_UNARY_FUNCTIONS(CONCORD_UNARY_ROW) CONCORD_BINARY_FUNCTIONS(CONCORD_BINARY_ROW)
        Row{{F::add, "add", 2, -3, 3},
            bounds(0.5, 0),
            [](const float* a) { return a[0] + a[1]; },
            [](const double* a) { return a[0] + a[1]; },
            [](const Scalar&, Arguments, int) -> Scalar { return 1.0F; }},
    Row{{F::subtract, "subtract", 2, -3, 3},
        bounds(0.5, 0),
        [](const float* a) { return a[0] - a[1]; },
        [](const double* a) { return a[0] - a[1]; },
        [](const Scalar&, Arguments, int k) -> Scalar { return k == 0 ? 1.0F : -1.0F; }},
    Row{{F::multiply, "multiply", 2, -3, 3},
        bounds(0.5, 0),
        [](const float* a) { return a[0] * a[1]; },
        [](const double* a) { return a[0] * a[1]; },
        [](const Scalar&, Arguments a, int k) { return a[k == 0 ? 1 : 0]; }},
    Row{{F::divide, "divide", 2, 0.25F, 3},
        bounds(2.5, 5),
        [](const float* a) { return a[0] / a[1]; },
        [](const double* a) { return a[0] / a[1]; },
        [](const Scalar& y, Arguments a, int k) { return k == 0 ? 1.0F / a[1] : -(y / a[1]); }},
    Row{{F::negate, "negate", 1, -3, 3},
        bounds(0, 0),
        [](const float* a) { return -a[0]; },
        [](const double* a) { return -a[0]; },
        [](const Scalar&, Arguments, int) -> Scalar { return -1.0F; }},
    Row{{F::less, "less", 2, -3, 3},
        bounds(0, 0),
        [](const float* a) { return a[0] < a[1] ? 1.0F : 0.0F; },
        [](const double* a) { return a[0] < a[1] ? 1.0 : 0.0; },
        flat},
    Row{{F::less_equal, "less_equal", 2, -3, 3},
        bounds(0, 0),
        [](const float* a) { return a[0] <= a[1] ? 1.0F : 0.0F; },
        [](const double* a) { return a[0] <= a[1] ? 1.0 : 0.0; },
        flat},
    Row{{F::equal, "equal", 2, -3, 3},
        bounds(0, 0),
        [](const float* a) { return a[0] == a[1] ? 1.0F : 0.0F; },
        [](const double* a) { return a[0] == a[1] ? 1.0 : 0.0; },
        flat},
    Row{{F::select, "select", 3, -3, 3},
        bounds(0, 0),
        [](const float* a) { return a[0] != 0 ? a[1] : a[2]; },
        [](const double* a) { return a[0] != 0 ? a[1] : a[2]; },
        [](const Scalar&, Arguments a, int k) -> Scalar {
          if (k == 0) return 0.0F;
          return k == 1 ? select(a[0], 1.0F, 0.0F) : select(a[0], 0.0F, 1.0F);
        }},
};
#undef CONCORD_UNARY_ROW
#undef CONCORD_BINARY_ROW

const Row& row_of(ScalarFunction function) {
  for (const Row& row : kTable) {
    if (row.info.function == function) return row;
  }
  throw Error("a leaf of an expression is not a scalar function");
}

}  // namespace

bool scalar::is_constant(const Scalar& a) { return a.node().function == F::constant; }

const ScalarFunctionInfo& info_of(ScalarFunction function) { return row_of(function).info; }

std::span<const ScalarFunctionInfo> scalar_functions() {
  static const auto infos = [] {
    std::array<ScalarFunctionInfo, kTable.size()> list{};
    for (std::size_t i = 0; i < kTable.size(); ++i) list[i] = kTable[i].info;
    return list;
  }();
  return infos;
}

std::span<const FunctionAccuracy> scalar_function_accuracy() {
  static const auto bounds_of_all = [] {
    std::array<FunctionAccuracy, kTable.size()> list{};
    for (std::size_t i = 0; i < kTable.size(); ++i) {
      list[i] = kTable[i].accuracy;
      list[i].name = kTable[i].info.name;
    }
    return list;
  }();
  return bounds_of_all;
}

float evaluate(ScalarFunction function, const float* arguments) { return row_of(function).evaluate(arguments); }

double evaluate_exactly(ScalarFunction function, const double* arguments) {
  return row_of(function).exactly(arguments);
}

Scalar slope(const Scalar& y, int argument) { return row_of(y.node().function).slope(y, y.node().arguments, argument); }

}  // namespace concord
