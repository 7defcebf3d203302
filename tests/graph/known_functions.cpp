// Functions written out as formulas are found, whatever the order of sums and products; others are not.
#include "concord/graph/known_functions.hpp"

#include "concord_test.hpp"

namespace concord {
namespace {

/// "silu of input", "silu of sum", or "none".
std::string known(const Scalar& formula) {
  const Expression expression({formula}, 2);
  const auto found = known_function(expression.code(), expression.results()[0]);
  if (!found) return "none";
  const ScalarFunction argument = expression.code()[static_cast<std::size_t>(found->argument)].function;
  const std::string of = argument == ScalarFunction::input ? "input"
                         : argument == ScalarFunction::add ? "sum"
                                                           : "other";
  return std::string(info_of(found->function).name) + " of " + of;
}

TEST_CASE("silu and gelu are known in all their spellings", "[graph]") {
  const Scalar x = scalar::input(0);
  CHECK(known(x * scalar::sigmoid(x)) == "silu of input");
  CHECK(known(scalar::sigmoid(x) * x) == "silu of input");
  const Scalar half = 0.5F, one = 1.0F, root = 1.41421356F;
  const Scalar erf = scalar::erf(x / root);
  CHECK(known(half * x * (one + erf)) == "gelu of input");
  CHECK(known(x * (erf + one) * half) == "gelu of input");
  CHECK(known(x * (half * (one + scalar::erf(x * 0.70710678F)))) == "gelu of input");
  CHECK(known(x * (scalar::erf(x * 0.7071067F) * half + half)) == "gelu of input");
  CHECK(known(x * scalar::normal_cdf(x)) == "gelu of input");
  CHECK(known((erf + one) / 2.0F) == "normal_cdf of input");
  const Scalar cubic = x + 0.044715F * scalar::power(x, 3.0F);
  CHECK(known(half * x * (one + scalar::tanh(0.7978845608F * cubic))) == "gelu_tanh of input");
  const Scalar product = x * x * x;
  CHECK(known(half * (x * (one + scalar::tanh((x + product * 0.044715F) * 0.7978846F)))) == "gelu_tanh of input");
  CHECK(known(x * half * (scalar::tanh(x * 0.7978845608F * (one + 0.044715F * x * x)) + one)) == "gelu_tanh of input");
  CHECK(known(x * scalar::sigmoid(1.5957691216F * cubic)) == "gelu_tanh of input");
  const Scalar sum = x + scalar::input(1);
  CHECK(known(sum * scalar::sigmoid(sum)) == "silu of sum");
}

TEST_CASE("formulas that resemble silu and gelu stay", "[graph]") {
  const Scalar x = scalar::input(0), y = scalar::input(1);
  CHECK(known(y * scalar::sigmoid(x)) == "none");
  CHECK(known(x * scalar::sigmoid(1.702F * x)) == "none");
  CHECK(known(x * scalar::sigmoid(-x)) == "none");
  CHECK(known(x * scalar::tanh(x)) == "none");
  CHECK(known(x * scalar::sigmoid(x) + 1.0F) == "none");
  CHECK(known(x * (1.0F + scalar::erf(x / 1.41421356F))) == "none");
  CHECK(known(0.5F * x * (1.0F + scalar::erf(x / 1.4142F))) == "none");
  CHECK(known(0.5F * x * (1.0F + scalar::tanh(0.79788456F * (x + 0.0447F * x * x * x)))) == "none");
  CHECK(known(x * scalar::sigmoid(x) * scalar::sigmoid(x)) == "none");
  CHECK(known(x) == "none");
}

}  // namespace
}  // namespace concord
