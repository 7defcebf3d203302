// Factors: the parts of a formula, each looked at once.
#include "concord/compile/factors.hpp"

#include <algorithm>

namespace concord {
namespace {

using F = ScalarFunction;

/// A sum with more other terms than these is not folded.
constexpr std::size_t kMostTerms = 64;

template <class Result, class Find>
Result once(std::unordered_map<const Scalar::Node*, Result>& known, const Scalar& formula, const Find& find) {
  const auto found = known.find(&formula.node());
  return found != known.end() ? found->second : known.emplace(&formula.node(), find()).first->second;
}

}  // namespace

Scalar Factors::without(const Scalar& formula) {
  if (!reads_result(formula)) return formula;
  return once(without_, formula, [&] { return new_without(formula); });
}

std::map<int, Scalar> Factors::factors() const {
  std::map<int, Scalar> found;
  for (const auto& [input, factor] : factors_) {
    if (factor) found.emplace(input, *factor);
  }
  return found;
}

bool Factors::is_useless() const {
  const auto reads_channel = [&](const auto& entry) {
    const Expression factor({entry.second}, inputs_);
    return std::ranges::any_of(factor.code(), [&](const Expression::Instruction& instruction) {
      return instruction.function == F::input && is_by_channel_.contains(instruction.index);
    });
  };
  return clash_ || factors().empty() || !std::ranges::all_of(factors(), reads_channel);
}

bool Factors::reads_result(const Scalar& formula) {
  const Scalar::Node& node = formula.node();
  if (node.function == F::input) return is_result_.contains(node.index);
  return once(reads_result_, formula, [&] {
    return std::ranges::any_of(node.arguments, [&](const Scalar& argument) { return reads_result(argument); });
  });
}

bool Factors::is_by_channel(const Scalar& formula) {
  const Scalar::Node& node = formula.node();
  if (node.function == F::input) return is_by_channel_.contains(node.index);
  if (node.function == F::coordinate) return false;
  return once(has_channels_, formula, [&] {
    return std::ranges::all_of(node.arguments, [&](const Scalar& argument) { return is_by_channel(argument); });
  });
}

std::string Factors::text_of(const std::optional<Scalar>& factor) const {
  return factor ? Expression({*factor}, inputs_).str() : "";
}

/// Among the shifts, each of which stands there once.
int Factors::place_of(const Scalar& shift) {
  const auto [place, is_new] = places_.try_emplace(text_of(shift), static_cast<int>(shifts_.size()));
  if (is_new) shifts_.push_back(shift);
  return place->second;
}

Scalar Factors::new_without(const Scalar& formula) {
  const Sum sum = sum_of(formula);
  std::optional<Scalar> whole;
  const auto add = [&](const Scalar& term) { whole = whole ? *whole + term : term; };
  for (const auto& [input, factor] : sum.results) {
    if (!factors_.emplace(input, factor).second && text_of(factors_.at(input)) != text_of(factor)) clash_ = true;
  }
  if (!sum.results.empty()) add(scalar::input(sum.results.begin()->first));
  if (sum.shift) add(scalar::input(inputs_ + place_of(*sum.shift)));
  for (auto other = sum.results.begin(); other != sum.results.end(); ++other) {
    if (other != sum.results.begin()) add(scalar::input(other->first));
  }
  for (const Scalar& other : sum.others) add(other);
  return *whole;
}

Factors::Sum Factors::sum_of(const Scalar& formula) {
  if (clash_) return {.results = {}, .others = {formula}, .shift = {}};
  return once(sums_, formula, [&] { return new_sum_of(formula); });
}

Factors::Sum Factors::new_sum_of(const Scalar& formula) {
  if (is_by_channel(formula)) return {.results = {}, .others = {}, .shift = formula};
  if (!reads_result(formula)) return {.results = {}, .others = {formula}, .shift = {}};
  const Scalar::Node& node = formula.node();
  const std::vector<Scalar>& of = node.arguments;
  switch (node.function) {
    case F::input: return {.results = {{node.index, {}}}, .others = {}, .shift = {}};
    case F::negate: return times(sum_of(of[0]), -1.0F);
    case F::add: return plus(sum_of(of[0]), sum_of(of[1]));
    case F::subtract: return plus(sum_of(of[0]), times(sum_of(of[1]), -1.0F));
    case F::multiply:
      if (is_by_channel(of[1])) return times(sum_of(of[0]), of[1]);
      if (is_by_channel(of[0])) return times(sum_of(of[1]), of[0]);
      break;
    default: break;
  }
  std::vector<Scalar> arguments;
  for (const Scalar& argument : of) arguments.push_back(without(argument));
  return {.results = {}, .others = {scalar::apply(node.function, std::move(arguments))}, .shift = {}};
}

Factors::Sum Factors::times(Sum sum, const Scalar& number) {
  for (auto& [input, factor] : sum.results) factor = factor ? *factor * number : number;
  for (Scalar& other : sum.others) other = other * number;
  if (sum.shift) sum.shift = *sum.shift * number;
  return sum;
}

Factors::Sum Factors::plus(Sum a, const Sum& b) {
  for (const auto& [input, factor] : b.results) clash_ |= !a.results.emplace(input, factor).second;
  clash_ |= a.others.size() + b.others.size() > kMostTerms;
  if (clash_) return a;
  a.others.insert(a.others.end(), b.others.begin(), b.others.end());
  if (b.shift) a.shift = a.shift ? *a.shift + *b.shift : *b.shift;
  return a;
}

}  // namespace concord
