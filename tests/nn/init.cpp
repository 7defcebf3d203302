// Initialisers: PyTorch's bounds and deviations, and what is drawn from them.
#include "concord/nn/init.hpp"

#include <algorithm>
#include <cmath>

#include "concord_test.hpp"

using namespace concord;
using namespace concord::nn;

namespace {

constexpr auto kUniform = Initializer::Kind::uniform;
constexpr auto kNormal = Initializer::Kind::normal;

void check(const Initializer& init, Initializer::Kind kind, double a, double b) {
  CHECK(init.kind == kind);
  CHECK(init.a == Approx(a).epsilon(1e-6));
  CHECK(init.b == Approx(b).epsilon(1e-6));
}

}  // namespace

TEST_CASE("fans count the values that enter and leave a unit", "[nn]") {
  CHECK(init::fans_of(Shape{30, 20}).in == 20);
  CHECK(init::fans_of(Shape{30, 20}).out == 30);
  CHECK(init::fans_of(Shape{8, 3, 5, 7}).in == 3 * 35);
  CHECK(init::fans_of(Shape{8, 3, 5, 7}).out == 8 * 35);
  CHECK_THROWS_AS(init::fans_of(Shape{8}), ShapeError);
}

TEST_CASE("initialisers have PyTorch's parameters", "[nn]") {
  const Shape shape{8, 3, 5, 7};  // fan in 105, out 280
  check(init::default_weights(shape), kUniform, -1 / std::sqrt(105.0), 1 / std::sqrt(105.0));
  check(init::default_bias(shape), kUniform, -1 / std::sqrt(105.0), 1 / std::sqrt(105.0));
  check(init::xavier_uniform(shape), kUniform, -std::sqrt(6.0 / 385), std::sqrt(6.0 / 385));
  check(init::xavier_normal(shape, 2), kNormal, 0, 2 * std::sqrt(2.0 / 385));
  const init::KaimingOptions relu_out{.fan = init::Fan::out, .nonlinearity = init::Nonlinearity::relu};
  check(init::kaiming_uniform(shape, relu_out), kUniform, -std::sqrt(6.0 / 280), std::sqrt(6.0 / 280));
  check(init::kaiming_normal(shape, relu_out), kNormal, 0, std::sqrt(2.0 / 280));
  check(init::kaiming_normal(shape, {.slope = 0.2}), kNormal, 0, std::sqrt(2.0 / 1.04 / 105));
  CHECK(init::gain_of(init::Nonlinearity::tanh) == Approx(5.0 / 3));
  CHECK(init::gain_of(init::Nonlinearity::selu) == Approx(0.75));
}

TEST_CASE("what is drawn has the mean and deviation asked for", "[nn]") {
  const Shape shape{300, 400};
  const auto [name, init, mean, deviation] = GENERATE(table<std::string, Initializer, double, double>({
      {"u", init::uniform(-1, 3), 1, 4 / std::sqrt(12.0)},
      {"n", init::normal(2, 0.5), 2, 0.5},
      {"k", init::kaiming_normal(Shape{300, 400}), 0, std::sqrt(2.0 / 400)},
      {"x", init::xavier_uniform(Shape{300, 400}), 0, std::sqrt(2.0 / 700)},
  }));
  const Variable variable{name, {DType::f32, shape}, init, true, {}};
  const Tensor drawn = initial_value(variable, 3);
  const auto values = drawn.values<float>();
  double sum = 0, squares = 0;
  for (const float v : values) sum += static_cast<double>(v);
  const auto n = static_cast<double>(values.size());
  for (const float v : values) squares += std::pow(static_cast<double>(v) - sum / n, 2);
  CHECK(std::abs(sum / n - mean) < 5 * deviation / std::sqrt(n));
  CHECK(std::sqrt(squares / n) == Approx(deviation).epsilon(0.01));

  CHECK(std::ranges::equal(initial_value(variable, 3).bytes(), drawn.bytes()));
  CHECK_FALSE(std::ranges::equal(initial_value(variable, 4).bytes(), drawn.bytes()));
}
