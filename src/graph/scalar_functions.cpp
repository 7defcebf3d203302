// The table of scalar functions: names, arity, test range, derivative. A new function is one row here, its entry in
// the enumeration and its formula in cl_kernels/formulas.h; tests pick it up by themselves.
#include "concord/graph/scalar_functions.hpp"

#include <formulas.h>

#include <array>

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

// evaluate: the function on numbers; slope: ∂y/∂argument[k], given the result y itself.
struct Row {
  ScalarFunctionInfo info;
  float (*evaluate)(const float* a);
  Scalar (*slope)(const Scalar& y, Arguments a, int k);
};

Scalar flat(const Scalar&, Arguments, int) { return 0.0F; }

const std::array kTable = {
    Row{{F::add, "add", 2, -3, 3},
        [](const float* a) { return a[0] + a[1]; },
        [](const Scalar&, Arguments, int) -> Scalar { return 1.0F; }},
    Row{{F::subtract, "subtract", 2, -3, 3},
        [](const float* a) { return a[0] - a[1]; },
        [](const Scalar&, Arguments, int k) -> Scalar { return k == 0 ? 1.0F : -1.0F; }},
    Row{{F::multiply, "multiply", 2, -3, 3},
        [](const float* a) { return a[0] * a[1]; },
        [](const Scalar&, Arguments a, int k) { return a[k == 0 ? 1 : 0]; }},
    Row{{F::divide, "divide", 2, 0.25F, 3},
        [](const float* a) { return a[0] / a[1]; },
        [](const Scalar& y, Arguments a, int k) { return k == 0 ? 1.0F / a[1] : -(y / a[1]); }},
    Row{{F::minimum, "minimum", 2, -3, 3},
        [](const float* a) { return concord_minimum(a[0], a[1]); },
        [](const Scalar& y, Arguments a, int k) { return min_slope(y, a[k == 0 ? 0 : 1], a[k == 0 ? 1 : 0]); }},
    Row{{F::maximum, "maximum", 2, -3, 3},
        [](const float* a) { return concord_maximum(a[0], a[1]); },
        [](const Scalar& y, Arguments a, int k) { return max_slope(y, a[k == 0 ? 0 : 1], a[k == 0 ? 1 : 0]); }},
    Row{{F::negate, "negate", 1, -3, 3},
        [](const float* a) { return -a[0]; },
        [](const Scalar&, Arguments, int) -> Scalar { return -1.0F; }},
    Row{{F::abs, "abs", 1, -3, 3},
        [](const float* a) { return concord_abs(a[0]); },
        [](const Scalar&, Arguments a, int) { return sign(a[0]); }},
    Row{{F::less, "less", 2, -3, 3}, [](const float* a) { return a[0] < a[1] ? 1.0F : 0.0F; }, flat},
    Row{{F::less_equal, "less_equal", 2, -3, 3}, [](const float* a) { return a[0] <= a[1] ? 1.0F : 0.0F; }, flat},
    Row{{F::equal, "equal", 2, -3, 3}, [](const float* a) { return a[0] == a[1] ? 1.0F : 0.0F; }, flat},
    Row{{F::select, "select", 3, -3, 3},
        [](const float* a) { return a[0] != 0 ? a[1] : a[2]; },
        [](const Scalar&, Arguments a, int k) -> Scalar {
          if (k == 0) return 0.0F;
          return k == 1 ? select(a[0], 1.0F, 0.0F) : select(a[0], 0.0F, 1.0F);
        }},
    Row{{F::exp, "exp", 1, -20, 20},
        [](const float* a) { return concord_exp(a[0]); },
        [](const Scalar& y, Arguments, int) { return y; }},
    Row{{F::expm1, "expm1", 1, -5, 5},
        [](const float* a) { return concord_expm1(a[0]); },
        [](const Scalar& y, Arguments, int) { return y + 1.0F; }},
    Row{{F::log, "log", 1, 0.01F, 100},
        [](const float* a) { return concord_log(a[0]); },
        [](const Scalar&, Arguments a, int) { return 1.0F / a[0]; }},
    Row{{F::log1p, "log1p", 1, -0.9F, 10},
        [](const float* a) { return concord_log1p(a[0]); },
        [](const Scalar&, Arguments a, int) { return 1.0F / (1.0F + a[0]); }},
    Row{{F::sqrt, "sqrt", 1, 0.01F, 100},
        [](const float* a) { return concord_sqrt(a[0]); },
        [](const Scalar& y, Arguments, int) { return 0.5F / y; }},
    Row{{F::rsqrt, "rsqrt", 1, 0.01F, 100},
        [](const float* a) { return concord_rsqrt(a[0]); },
        [](const Scalar& y, Arguments a, int) { return -0.5F * y / a[0]; }},
    Row{{F::sin, "sin", 1, -6, 6},
        [](const float* a) { return concord_sin(a[0]); },
        [](const Scalar&, Arguments a, int) { return scalar::cos(a[0]); }},
    Row{{F::cos, "cos", 1, -6, 6},
        [](const float* a) { return concord_cos(a[0]); },
        [](const Scalar&, Arguments a, int) { return -scalar::sin(a[0]); }},
    Row{{F::tanh, "tanh", 1, -5, 5},
        [](const float* a) { return concord_tanh(a[0]); },
        [](const Scalar& y, Arguments, int) { return 1.0F - y * y; }},
    Row{{F::erf, "erf", 1, -4, 4},
        [](const float* a) { return concord_erf(a[0]); },
        [](const Scalar&, Arguments a, int) { return kTwoOverRootPi * scalar::exp(-(a[0] * a[0])); }},
    Row{{F::normal_cdf, "normal_cdf", 1, -7, 7},
        [](const float* a) { return concord_normal_cdf(a[0]); },
        [](const Scalar&, Arguments a, int) { return kOneOverRootTwoPi * scalar::exp(-0.5F * (a[0] * a[0])); }},
    Row{{F::sigmoid, "sigmoid", 1, -20, 20},
        [](const float* a) { return concord_sigmoid(a[0]); },
        [](const Scalar& y, Arguments, int) { return y * (1.0F - y); }},
    Row{{F::softplus, "softplus", 1, -20, 20},
        [](const float* a) { return concord_softplus(a[0]); },
        [](const Scalar&, Arguments a, int) { return scalar::sigmoid(a[0]); }},
    Row{{F::power, "power", 2, 0.1F, 3},
        [](const float* a) { return concord_power(a[0], a[1]); },
        [](const Scalar& y, Arguments a, int k) {
          return k == 0 ? a[1] * scalar::power(a[0], a[1] - 1.0F) : y * scalar::log(a[0]);
        }},
    Row{{F::floor, "floor", 1, -3, 3}, [](const float* a) { return concord_floor(a[0]); }, flat},
    Row{{F::is_finite, "is_finite", 1, -3, 3}, [](const float* a) { return concord_is_finite(a[0]); }, flat},
};

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

Scalar slope(const Scalar& y, int argument) { return row_of(y.node().function).slope(y, y.node().arguments, argument); }

}  // namespace concord
