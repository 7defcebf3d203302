// Trigonometric, hyperbolic and error functions of ONNX, elementwise.
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/table.hpp"

namespace concord::onnx {
namespace {

using ScalarOfOne = Scalar (*)(const Scalar&);

template <ScalarOfOne formula>
void function_of_one(Call& call) {
  set_pointwise(
      call, "function", {0}, [](const std::vector<Scalar>& x) { return formula(x[0]); }, call.type(0));
}

Scalar tangent(const Scalar& a) { return scalar::sin(a) / scalar::cos(a); }

}  // namespace

void add_functions(Table& table) {
  table.add("Sin", {.since = 7, .run = function_of_one<scalar::sin>});
  table.add("Cos", {.since = 7, .run = function_of_one<scalar::cos>});
  table.add("Tan", {.since = 7, .run = function_of_one<tangent>});
  table.add("Asin", {.since = 7, .run = function_of_one<scalar::asin>});
  table.add("Acos", {.since = 7, .run = function_of_one<scalar::acos>});
  table.add("Atan", {.since = 7, .run = function_of_one<scalar::atan>});
  table.add("Sinh", {.since = 9, .run = function_of_one<scalar::sinh>});
  table.add("Cosh", {.since = 9, .run = function_of_one<scalar::cosh>});
  table.add("Tanh", {.run = function_of_one<scalar::tanh>});
  table.add("Asinh", {.since = 9, .run = function_of_one<scalar::asinh>});
  table.add("Acosh", {.since = 9, .run = function_of_one<scalar::acosh>});
  table.add("Atanh", {.since = 9, .run = function_of_one<scalar::atanh>});
  table.add("Erf", {.since = 9, .run = function_of_one<scalar::erf>});
}

}  // namespace concord::onnx
