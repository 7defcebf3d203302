// What a user of expressions may rely on: folding, common subexpressions once, symbolic derivatives.
#include "concord/graph/expression.hpp"

#include <cmath>

#include "concord/graph/constant_steps.hpp"
#include "concord_test.hpp"

namespace concord {
namespace {

float at(const Scalar& formula, std::vector<float> inputs) {
  return Expression({formula}, static_cast<int>(inputs.size())).evaluate(0, inputs);
}

TEST_CASE("a formula is evaluated as written", "[graph]") {
  const Scalar x = scalar::input(0), y = scalar::input(1);
  CHECK(at((x + 2.0F) * y, {1, 5}) == 15.0F);
  CHECK(at(scalar::select(scalar::less(x, y), x - y, y / x), {1, 4}) == -3.0F);
  CHECK(at(scalar::select(scalar::less(x, y), x - y, y / x), {4, 1}) == 0.25F);
}

TEST_CASE("constants are folded and identities removed", "[graph]") {
  const Scalar x = scalar::input(0);
  CHECK(Expression({(Scalar(2.0F) + 3.0F) * 1.0F * x + 0.0F}, 1).str() == Expression({Scalar(5.0F) * x}, 1).str());
  CHECK(Expression({scalar::less(x, 1.0F) * 0.0F + 0.0F * scalar::coordinate(0)}, 1).code().size() == 1);
}

TEST_CASE("a product with 0 is 0 where its other factor is finite, and nothing in a derivative", "[graph]") {
  const Scalar x = scalar::input(0), y = scalar::input(1);
  const Scalar substituted = substitute(x * y, std::vector{x, Scalar(0.0F)});
  for (const Scalar& formula :
       {x * 0.0F, 0.0F * x, substituted, x * 0.0F * 3.0F, merge_constant_steps(2.0F * x * 0.0F)}) {
    CHECK(at(formula, {7}) == 0);
    CHECK(std::isnan(at(formula, {INFINITY})));
    CHECK(std::isnan(at(formula, {NAN})));
  }
  CHECK(std::isnan(at(Scalar(0.0F) * INFINITY, {})));
  const auto length = [](const Scalar& formula) { return Expression({formula}, 2).code().size(); };
  CHECK(length(derivative(x * 0.0F, 0)) == 1);
  CHECK(length(derivative(scalar::exp(x) * 0.0F + y * 3.0F, 0)) == 1);
  CHECK(length(derivative(scalar::power(x, 0.0F) * y, 0)) == 1);
}

TEST_CASE("steps with numbers that follow each other are one, where rounding alone tells them apart", "[graph]") {
  const Scalar x = scalar::input(0), y = scalar::input(1);
  const auto text = [](const Scalar& formula) { return Expression({formula}, 2).str(); };
  const auto becomes = [&](const Scalar& formula, const Scalar& shorter) {
    CHECK(text(merge_constant_steps(formula)) == text(shorter));
  };
  becomes(x * 0.5F * 3.0F, x * 1.5F);
  becomes(3.0F * (x * 0.5F) + 0.25F, x * 1.5F + 0.25F);
  becomes(x + 0.5F + 0.25F, x + 0.75F);
  becomes(x - 0.5F - 0.25F, x + -0.75F);
  becomes(1.0F - x + 2.0F, 3.0F - x);
  becomes((x + 0.25F) * 0.5F, x * 0.5F + 0.125F);
  becomes((x * 3.0F + 0.25F) * 0.5F, x * 1.5F + 0.125F);
  becomes((x * 2.0F + 1.0F) * 2.0F + 1.0F, x * 4.0F + 3.0F);
  becomes(-(x * 3.0F), x * -3.0F);
  becomes(x * 3.0F / 4.0F, x * 0.75F);
  becomes(scalar::exp(x * 2.0F * 3.0F) * y, scalar::exp(x * 6.0F) * y);
  for (const Scalar& formula : {(x + 0.3F) * 0.7F, x + 12582912.0F - 12582912.0F, x * 1e-30F * 1e-30F,
                                x * 1e30F * 1e30F, (x + 1e-30F) * 0x1p-60F, x + 3e38F + 3e38F, x / 3.0F * 3.0F,
                                (x + y) * 0.5F, scalar::max(x * 0.5F, 0.0F) * 0.5F}) {
    becomes(formula, formula);
  }
  // By powers of two the bits are the same.
  for (const float value : {0.1F, -0.25F, -0.24999999F, 1e-3F, 12345.678F, -7e20F}) {
    CHECK(at(merge_constant_steps((x + 0.25F) * 0.125F), {value}) == (value + 0.25F) * 0.125F);
    CHECK(at(merge_constant_steps(x * 0.3F / 8.0F), {value}) == value * 0.3F / 8.0F);
  }
}

TEST_CASE("equal subexpressions are computed once", "[graph]") {
  const Scalar x = scalar::input(0);
  const Expression twice({scalar::exp(x) * scalar::exp(x), scalar::exp(x)}, 1);
  CHECK(twice.code().size() == 3);
}

TEST_CASE("an expression refuses an input beyond its operands", "[graph]") {
  CHECK_THROWS_AS(Expression({scalar::input(2)}, 2), ArgumentError);
}

TEST_CASE("every scalar function's derivative matches finite differences", "[graph]") {
  for (const ScalarFunctionInfo& info : scalar_functions()) {
    const bool has_jumps = info.function == ScalarFunction::less || info.function == ScalarFunction::less_equal ||
                           info.function == ScalarFunction::equal || info.function == ScalarFunction::floor ||
                           info.function == ScalarFunction::rint;
    if (has_jumps) continue;
    std::vector<Scalar> arguments;
    for (int k = 0; k < info.arity; ++k) arguments.push_back(scalar::input(k));
    const Scalar formula = scalar::apply(info.function, arguments);
    for (int k = 0; k < info.arity; ++k) {
      const Scalar slope = derivative(formula, k);
      for (int step = 1; step < 16; ++step) {
        const float span = info.test_high - info.test_low;
        std::vector<float> point(3, info.test_low + span * 0.37F);
        point[1] = info.test_low + span * 0.71F;
        point[static_cast<std::size_t>(k)] = info.test_low + span * (static_cast<float>(step) + 0.15F) / 17.0F;
        point.resize(static_cast<std::size_t>(info.arity));
        const float h = 1e-3F * std::max(1.0F, std::abs(point[static_cast<std::size_t>(k)]));
        std::vector<float> low = point, high = point;
        low[static_cast<std::size_t>(k)] -= h;
        high[static_cast<std::size_t>(k)] += h;
        const float expected = (at(formula, high) - at(formula, low)) /
                               (high[static_cast<std::size_t>(k)] - low[static_cast<std::size_t>(k)]);
        INFO(info.name << " argument " << k << " at " << point[static_cast<std::size_t>(k)]);
        CHECK(at(slope, point) == Approx(expected).epsilon(0.02).margin(2e-3));
      }
    }
  }
}

TEST_CASE("at kinks the derivative is PyTorch's", "[graph]") {
  const Scalar x = scalar::input(0), y = scalar::input(1);
  CHECK(at(derivative(scalar::max(x, 0.0F), 0), {0}) == 0.0F);  // relu
  CHECK(at(derivative(scalar::abs(x), 0), {0}) == 0.0F);
  CHECK(at(derivative(scalar::max(x, y), 0), {2, 2}) == 0.5F);  // torch.maximum shares a tie
  CHECK(at(derivative(scalar::max(x, y), 1), {2, 2}) == 0.5F);
}

TEST_CASE("the derivative of many choices, one inside the other, grows with their number", "[graph]") {
  constexpr int kChoices = 60;
  constexpr float kSlope = 0.75F;
  const Scalar x = scalar::input(0);
  Scalar formula = scalar::select(scalar::less(x, 8.0F), x, 8.0F);
  for (int k = 0; k < kChoices; ++k) formula = scalar::select(scalar::less(0.0F, formula), formula, kSlope * formula);
  const Scalar slope = derivative(formula, 0);
  CHECK(Expression({slope}, 1).code().size() < 20 * kChoices);
  CHECK(at(slope, {2}) == 1);
  CHECK(at(slope, {9}) == 0);
  CHECK(at(slope, {-2}) == Approx(std::pow(kSlope, kChoices)).epsilon(1e-4));
}

TEST_CASE("relu's derivative can be read from its output", "[graph]") {
  const Scalar formula = scalar::max(scalar::input(0), 0.0F);
  const Scalar slope = replace(derivative(formula, 0), formula, scalar::input(1));
  const Expression expression({slope}, 2);
  for (const auto& instruction : expression.code()) {
    CHECK_FALSE((instruction.function == ScalarFunction::input && instruction.index == 0));
  }
  CHECK(at(slope, {0, 3}) == 1.0F);
  CHECK(at(slope, {0, 0}) == 0.0F);
}

TEST_CASE("maximum and minimum keep a NaN", "[graph]") {
  const Scalar x = scalar::input(0), y = scalar::input(1);
  CHECK(std::isnan(at(scalar::max(x, y), {NAN, 1})));
  CHECK(std::isnan(at(scalar::max(x, y), {1, NAN})));
  CHECK(std::isnan(at(scalar::min(x, y), {NAN, 1})));
  CHECK(at(scalar::is_finite(x), {NAN}) == 0.0F);
  CHECK(at(scalar::is_finite(x), {INFINITY}) == 0.0F);
  CHECK(at(scalar::is_finite(x), {3e38F}) == 1.0F);
}

TEST_CASE("substitution puts formulas in place of inputs", "[graph]") {
  const Scalar formula = scalar::input(0) * scalar::input(1);
  const std::vector<Scalar> by{scalar::input(1) + 1.0F, scalar::input(0)};
  CHECK(at(substitute(formula, by), {3, 4}) == 15.0F);
}

}  // namespace
}  // namespace concord
