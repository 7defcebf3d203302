// The rules, applied from the leaves up.
#include "concord/graph/constant_steps.hpp"

#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace concord {
namespace {

using F = ScalarFunction;

/// `inner`·number, inner + number, or number - inner.
struct ConstantStep {
  enum class Kind : std::uint8_t { product, sum, difference } kind;
  Scalar inner;
  float number;
};

std::optional<float> number_of(const Scalar& formula) {
  if (formula.node().function != F::constant) return {};
  return formula.node().value;
}

bool is_power_of_two(float number) {
  int exponent = 0;
  return std::isnormal(number) && std::abs(std::frexp(number, &exponent)) == 0.5F;
}

std::optional<ConstantStep> step_of(const Scalar& formula) {
  using Kind = ConstantStep::Kind;
  const auto& [function, arguments, value, index] = formula.node();
  if (function == F::negate) return ConstantStep{Kind::product, arguments[0], -1.0F};
  if (arguments.size() != 2) return {};
  const auto first = number_of(arguments[0]), second = number_of(arguments[1]);
  if (first.has_value() == second.has_value()) return {};
  const Scalar& inner = first ? arguments[1] : arguments[0];
  const float number = first ? *first : *second;
  switch (function) {
    case F::multiply: return ConstantStep{Kind::product, inner, number};
    case F::add: return ConstantStep{Kind::sum, inner, number};
    case F::subtract:
      return second ? ConstantStep{Kind::sum, inner, -number} : ConstantStep{Kind::difference, inner, number};
    case F::divide:
      if (!second || !is_power_of_two(number) || !std::isnormal(1 / number)) return {};
      return ConstantStep{Kind::product, inner, 1 / number};
    default: return {};
  }
}

bool have_one_sign(float a, float b) { return std::signbit(a) == std::signbit(b); }

/// `outer` of `inner` as one step, or as two of which the last is a sum; nothing where the rules do not say so.
std::optional<Scalar> merged(const ConstantStep& inner, const ConstantStep& outer) {
  using Kind = ConstantStep::Kind;
  const float product = inner.number * outer.number, sum = inner.number + outer.number;
  if (outer.kind == Kind::product && inner.kind == Kind::product && std::isnormal(product)) {
    return inner.inner * product;
  }
  if (outer.kind == Kind::product && inner.kind == Kind::sum && outer.number > 0 && is_power_of_two(outer.number) &&
      std::isnormal(product)) {
    const Scalar scaled = inner.inner * outer.number;
    const auto below = step_of(inner.inner);
    const auto one = below ? merged(*below, {Kind::product, inner.inner, outer.number}) : std::nullopt;
    return (one ? *one : scaled) + product;
  }
  if (outer.kind == Kind::sum && inner.kind != Kind::product && have_one_sign(inner.number, outer.number) &&
      std::isfinite(sum)) {
    return inner.kind == Kind::sum ? inner.inner + sum : sum - inner.inner;
  }
  return {};
}

class Merging {
 public:
  Scalar merge(const Scalar& formula) {
    if (formula.node().arguments.empty()) return formula;
    if (const auto found = done_.find(&formula.node()); found != done_.end()) return found->second;
    std::vector<Scalar> arguments;
    for (const Scalar& argument : formula.node().arguments) arguments.push_back(merge(argument));
    Scalar result = scalar::apply(formula.node().function, std::move(arguments));
    if (const auto outer = step_of(result)) {
      const auto inner = step_of(outer->inner);
      if (const auto one = inner ? merged(*inner, *outer) : std::nullopt) result = *one;
    }
    done_.emplace(&formula.node(), result);
    return result;
  }

 private:
  std::unordered_map<const Scalar::Node*, Scalar> done_;
};

}  // namespace

Scalar merge_constant_steps(const Scalar& formula) { return Merging().merge(formula); }

}  // namespace concord
