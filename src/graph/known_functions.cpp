// A known function is a polynomial in its argument and in a gate (sigmoid, erf, tanh), whose argument is a polynomial
// too: the coefficients of both are compared.
#include "concord/graph/known_functions.hpp"

#include <array>
#include <cmath>
#include <vector>

namespace concord {
namespace {

using F = ScalarFunction;
using Code = std::span<const Expression::Instruction>;

constexpr std::size_t kDegrees = 4;  // of x: 0 to 3

/// Σ factors[i][j]·xⁱ·gateʲ
struct Polynomial {
  std::array<std::array<double, 2>, kDegrees> factors{};
};

std::optional<Polynomial> polynomial_product(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (std::size_t i = 0; i < kDegrees * 2; ++i) {
    for (std::size_t k = 0; k < kDegrees * 2; ++k) {
      const double factor = a.factors[i / 2][i % 2] * b.factors[k / 2][k % 2];
      if (factor == 0) continue;
      if (i / 2 + k / 2 >= kDegrees || i % 2 + k % 2 >= 2) return std::nullopt;
      product.factors[i / 2 + k / 2][i % 2 + k % 2] += factor;
    }
  }
  return product;
}

Polynomial polynomial_sum(const Polynomial& a, const Polynomial& b, double sign) {
  Polynomial sum = a;
  for (std::size_t i = 0; i < kDegrees * 2; ++i) sum.factors[i / 2][i % 2] += sign * b.factors[i / 2][i % 2];
  return sum;
}

/// Instruction `last` as a polynomial in the instructions `x` and `gate` (-1: none); nothing if it is none.
std::optional<Polynomial> polynomial_of(Code code, std::int32_t last, std::int32_t x, std::int32_t gate) {
  std::vector<std::optional<Polynomial>> all(static_cast<std::size_t>(last) + 1);
  for (std::int32_t i = 0; i <= last; ++i) {
    const Expression::Instruction& step = code[static_cast<std::size_t>(i)];
    const auto operand = [&](int k) { return all[static_cast<std::size_t>(step.arguments[k])]; };
    std::optional<Polynomial>& here = all[static_cast<std::size_t>(i)];
    if (i == x || i == gate) {
      here.emplace().factors[i == x ? 1 : 0][i == x ? 0 : 1] = 1;
    } else if (step.function == F::constant) {
      here.emplace().factors[0][0] = static_cast<double>(step.value);
    } else if (step.function == F::negate) {
      if (const auto a = operand(0)) here = polynomial_sum({}, *a, -1);
    } else if (step.function == F::add || step.function == F::subtract) {
      const auto a = operand(0), b = operand(1);
      if (a && b) here = polynomial_sum(*a, *b, step.function == F::add ? 1 : -1);
    } else if (step.function == F::multiply) {
      const auto a = operand(0), b = operand(1);
      if (a && b) here = polynomial_product(*a, *b);
    } else if (step.function == F::divide) {
      const Expression::Instruction& divisor = code[static_cast<std::size_t>(step.arguments[1])];
      const auto a = operand(0);
      if (a && divisor.function == F::constant && divisor.value != 0) {
        Polynomial inverse;
        inverse.factors[0][0] = 1 / static_cast<double>(divisor.value);
        here = polynomial_product(*a, inverse);
      }
    }
  }
  return all.back();
}

constexpr double kRootHalf = 0.70710678118654752440, kRootTwoOverPi = 0.79788456080286535588, kCubicPart = 0.044715;

struct Composition {
  F function, gate;
  double linear, cubic;                  // the argument of the gate is linear·x + cubic·x³
  double one, x_alone, by_gate, of_all;  // one + x_alone·x + by_gate·gate + of_all·x·gate
};
constexpr Composition kCompositions[] = {
    {F::silu, F::sigmoid, 1, 0, 0, 0, 0, 1},
    {F::normal_cdf, F::erf, kRootHalf, 0, 0.5, 0, 0.5, 0},
    {F::gelu, F::erf, kRootHalf, 0, 0, 0.5, 0, 0.5},
    {F::gelu, F::normal_cdf, 1, 0, 0, 0, 0, 1},
    {F::gelu_tanh, F::tanh, kRootTwoOverPi, kRootTwoOverPi* kCubicPart, 0, 0.5, 0, 0.5},
    {F::gelu_tanh, F::sigmoid, 2 * kRootTwoOverPi, 2 * kRootTwoOverPi* kCubicPart, 0, 0, 0, 1},
};

bool have_factors(const std::optional<Polynomial>& given, const Polynomial& wanted) {
  if (!given) return false;
  for (std::size_t i = 0; i < kDegrees * 2; ++i) {
    const double a = given->factors[i / 2][i % 2], b = wanted.factors[i / 2][i % 2];
    if (!(std::abs(a - b) <= 1e-6 * std::abs(b))) return false;
  }
  return true;
}

bool is_composition(Code code, std::int32_t result, std::int32_t gate, std::int32_t x, const Composition& wanted) {
  const Polynomial inner{{{{0, 0}, {wanted.linear, 0}, {0, 0}, {wanted.cubic, 0}}}};
  const Polynomial outer{{{{wanted.one, wanted.by_gate}, {wanted.x_alone, wanted.of_all}}}};
  const std::int32_t argument = code[static_cast<std::size_t>(gate)].arguments[0];
  return have_factors(polynomial_of(code, argument, x, -1), inner) &&
         have_factors(polynomial_of(code, result, x, gate), outer);
}

}  // namespace

bool is_gate(ScalarFunction function) {
  return function == F::sigmoid || function == F::erf || function == F::tanh || function == F::normal_cdf;
}

std::optional<KnownFunction> known_function(Code code, std::int32_t result) {
  for (std::int32_t gate = 0; gate < result; ++gate) {
    const Expression::Instruction& step = code[static_cast<std::size_t>(gate)];
    if (!is_gate(step.function)) continue;
    for (const Composition& wanted : kCompositions) {
      if (wanted.gate != step.function) continue;
      for (std::int32_t x = step.arguments[0]; x >= 0; --x) {
        if (is_composition(code, result, gate, x, wanted)) return KnownFunction{wanted.function, x};
      }
    }
  }
  return std::nullopt;
}

}  // namespace concord
