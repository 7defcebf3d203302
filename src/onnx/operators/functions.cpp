// Trigonometric, hyperbolic and error functions of ONNX, elementwise.
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {
namespace {

template <Scalar (*formula)(const Scalar&)>
void function_of_one(Call& call) {
  set_pointwise(
      call, "function", {0}, [](const std::vector<Scalar>& x) { return formula(x[0]); }, call.type(0));
}

Scalar sine(const Scalar& a) { return scalar::sin(a); }
Scalar cosine(const Scalar& a) { return scalar::cos(a); }
Scalar tangent(const Scalar& a) { return scalar::sin(a) / scalar::cos(a); }
Scalar error_function(const Scalar& a) { return scalar::erf(a); }
Scalar hyperbolic_tangent(const Scalar& a) { return scalar::tanh(a); }

// Near 0 the two exponentials cancel; far from it one of them is all.
Scalar hyperbolic_sine(const Scalar& a) {
  const Scalar size = scalar::abs(a), minus_one = scalar::expm1(size);
  const Scalar near = 0.5F * (minus_one + minus_one / (minus_one + 1.0F));
  const Scalar half = scalar::exp(0.5F * size);
  return sign_of(a) * scalar::select(scalar::less(size, 10.0F), near, 0.5F * half * half);
}

Scalar hyperbolic_cosine(const Scalar& a) {
  const Scalar half = scalar::exp(0.5F * scalar::abs(a));
  return 0.5F * half * half + 0.5F * scalar::exp(-scalar::abs(a));
}

Scalar inverse_hyperbolic_sine(const Scalar& a) {
  const Scalar size = scalar::abs(a), square = size * size;
  const Scalar near = scalar::log1p(size + square / (1.0F + scalar::sqrt(square + 1.0F)));
  constexpr float kLog2 = 0.693147181F;
  return sign_of(a) * scalar::select(scalar::less(size, 1e9F), near, scalar::log(size) + kLog2);
}

Scalar inverse_hyperbolic_cosine(const Scalar& a) {
  const Scalar above = a - 1.0F;
  const Scalar near = scalar::log1p(above + scalar::sqrt(above * (above + 2.0F)));
  constexpr float kLog2 = 0.693147181F;
  return scalar::select(scalar::less(1e9F, a), scalar::log(a) + kLog2, near);
}

Scalar inverse_hyperbolic_tangent(const Scalar& a) { return 0.5F * (scalar::log1p(a) - scalar::log1p(-a)); }

}  // namespace

void add_functions(Table& table) {
  table.add("Sin", {.since = 7, .run = function_of_one<sine>});
  table.add("Cos", {.since = 7, .run = function_of_one<cosine>});
  table.add("Tan", {.since = 7, .run = function_of_one<tangent>});
  table.add("Sinh", {.since = 9, .run = function_of_one<hyperbolic_sine>});
  table.add("Cosh", {.since = 9, .run = function_of_one<hyperbolic_cosine>});
  table.add("Tanh", {.run = function_of_one<hyperbolic_tangent>});
  table.add("Asinh", {.since = 9, .run = function_of_one<inverse_hyperbolic_sine>});
  table.add("Acosh", {.since = 9, .run = function_of_one<inverse_hyperbolic_cosine>});
  table.add("Atanh", {.since = 9, .run = function_of_one<inverse_hyperbolic_tangent>});
  table.add("Erf", {.since = 9, .run = function_of_one<error_function>});
}

}  // namespace concord::onnx
