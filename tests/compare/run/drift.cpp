// Perturbed weights are neighbours, and distances are relative.
#include "concord/compare/run/drift.hpp"

#include <cmath>

#include "concord_test.hpp"

namespace concord::test {
namespace {

VariablesPtr weights_of(const std::vector<float>& values) {
  const auto variables = std::make_shared<Variables>(devices().front(), 1);
  const Shape shape{static_cast<std::int64_t>(values.size())};
  static_cast<void>(variables->require({"w", {DType::f32, shape}, {}, true, Tensor::of<float>(shape, values)}));
  return variables;
}

const std::vector<std::string> kNames{"w"};

}  // namespace

TEST_CASE("the distance of weights is relative to the expected ones", "[compare]") {
  const VariablesPtr expected = weights_of({3, 4}), other = weights_of({3, 4.5F}), zero = weights_of({0, 0});
  CHECK(weight_distance(*other, *expected, kNames) == Approx(0.1));
  CHECK(weight_distance(*expected, *expected, kNames) == 0);
  CHECK(weight_distance(*zero, *zero, kNames) == 0);
  CHECK(std::isinf(weight_distance(*expected, *zero, kNames)));
}

TEST_CASE("a perturb moves every weight to a neighbour, up and down", "[compare]") {
  const std::vector<float> values(100, 0.75F);
  const VariablesPtr first = weights_of(values), again = weights_of(values), other = weights_of(values);
  perturb(*first, kNames, 1);
  perturb(*again, kNames, 1);
  perturb(*other, kNames, 2);
  int up = 0;
  const Tensor perturbed = first->read("w");
  for (const float value : perturbed.values<float>()) {
    if (value > 0.75F) ++up;
    CHECK(value == std::nextafter(0.75F, value > 0.75F ? 1.0F : 0.0F));
  }
  CHECK(up > 20);
  CHECK(up < 80);
  CHECK(weight_distance(*again, *first, kNames) == 0);
  CHECK(weight_distance(*other, *first, kNames) > 0);
}

TEST_CASE("a perturb has nothing to do with the numbers that gave the weights", "[compare]") {
  for (const std::uint64_t seed : {1, 2}) {
    const auto variables = std::make_shared<Variables>(devices().front(), seed);
    static_cast<void>(variables->require({"w", {DType::f32, {1000}}, {Initializer::Kind::uniform, -1, 1}, true, {}}));
    const Tensor before = variables->read("w");
    perturb(*variables, kNames, seed);
    const Tensor after = variables->read("w");
    int outwards = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      if (std::abs(after.values<float>()[i]) > std::abs(before.values<float>()[i])) ++outwards;
    }
    CHECK(outwards > 400);
    CHECK(outwards < 600);
  }
}

TEST_CASE("weights are compared at most about 64 times, and at the end", "[compare]") {
  for (const std::int64_t steps : {1, 10, 64, 100, 1000}) {
    int count = 0;
    for (std::int64_t done = 1; done <= steps; ++done) count += is_drift_step(done, steps) ? 1 : 0;
    CHECK(is_drift_step(steps, steps));
    CHECK(count >= std::min<std::int64_t>(steps, 60));
    CHECK(count <= 128);
  }
}

}  // namespace concord::test
