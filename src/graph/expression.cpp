// Pointwise expressions: construction with folding, symbolic derivative, straight-line form.
#include "concord/graph/expression.hpp"

#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/graph/scalar_functions.hpp"

namespace concord {
namespace {

using F = ScalarFunction;
using NodePointer = const Scalar::Node*;

using scalar::is_constant;
bool is_number(const Scalar& a, float value) { return is_constant(a) && a.node().value == value; }

Scalar leaf(ScalarFunction function, int index) {
  return Scalar(std::make_shared<const Scalar::Node>(Scalar::Node{function, {}, 0, index}));
}

/// Whether a formula is neither infinite nor NaN, whatever its inputs are.
bool is_always_finite(const Scalar& a) {
  switch (a.node().function) {
    case F::constant: return std::isfinite(a.node().value);
    case F::coordinate:
    case F::less:
    case F::less_equal:
    case F::equal:
    case F::is_finite: return true;
    default: return false;
  }
}

// Identities that hold for every argument; they keep formulas small. Null when none applies. 0·x is not always 0: where
// it is one of the terms of a derivative, `chain` leaves it out.
const Scalar* identity(ScalarFunction function, const std::vector<Scalar>& a) {
  static const Scalar kZero = 0.0F;
  switch (function) {
    case F::add: return is_number(a[0], 0) ? &a[1] : is_number(a[1], 0) ? &a[0] : nullptr;
    case F::subtract: return is_number(a[1], 0) ? &a[0] : nullptr;
    case F::multiply:
      for (const std::size_t k : {0, 1}) {
        if (is_number(a[k], 0) && is_always_finite(a[1 - k])) return &kZero;
      }
      return is_number(a[0], 1) ? &a[1] : is_number(a[1], 1) ? &a[0] : nullptr;
    case F::divide: return is_number(a[1], 1) ? &a[0] : nullptr;
    case F::select:
      if (is_constant(a[0])) return a[0].node().value != 0 ? &a[1] : &a[2];
      if (is_constant(a[1]) && is_constant(a[2]) && a[1].node().value == a[2].node().value) return &a[1];
      return nullptr;
    default: return nullptr;
  }
}

// Rebuilds a formula bottom-up, each shared node once. `leaf_or_node` may supply a replacement for a node.
Scalar rebuild(const Scalar& formula, std::unordered_map<NodePointer, Scalar>& done,
               const std::function<const Scalar*(const Scalar&)>& replacement) {
  if (const auto found = done.find(&formula.node()); found != done.end()) return found->second;
  const Scalar result = [&]() -> Scalar {
    if (const Scalar* other = replacement(formula)) return *other;
    if (formula.node().arguments.empty()) return formula;
    std::vector<Scalar> arguments;
    for (const Scalar& argument : formula.node().arguments) arguments.push_back(rebuild(argument, done, replacement));
    return scalar::apply(formula.node().function, std::move(arguments));
  }();
  done.emplace(&formula.node(), result);
  return result;
}

/// x^n for n ≥ 1 by squaring.
Scalar product_of(const Scalar& x, int n) {
  if (n == 1) return x;
  const Scalar half = product_of(x, n / 2), square = half * half;
  return n % 2 == 0 ? square : square * x;
}

/// A power with a constant whole exponent as products; nothing for other formulas. Up to an exponent of 8 they are as
/// exact as the function. Of negative exponents each half is divided by, so that neither leaves the range before the
/// result does.
std::optional<Scalar> as_products(const Scalar& formula) {
  constexpr float kMost = 8;
  const Scalar::Node& node = formula.node();
  if (node.function != F::power || !is_constant(node.arguments[1])) return std::nullopt;
  const float exponent = node.arguments[1].node().value;
  if (!(std::abs(exponent) <= kMost) || std::floor(exponent) != exponent) return std::nullopt;
  const Scalar& x = node.arguments[0];
  const int n = static_cast<int>(std::abs(exponent));
  if (n == 0) return 1.0F;
  if (exponent > 0) return product_of(x, n);
  const Scalar part = 1.0F / product_of(x, n - n / 2);
  return n == 1 ? part : part / product_of(x, n / 2);
}

// Value numbering: equal subexpressions get equal numbers.
class Numbering {
 public:
  std::int32_t number(const Scalar& formula) {
    const Scalar::Node& node = formula.node();
    if (const auto found = numbers_.find(&node); found != numbers_.end()) return found->second;
    if (std::optional<Scalar> products = as_products(formula)) {
      products_.push_back(*std::move(products));  // numbers_ has the addresses of its nodes
      const std::int32_t same = number(products_.back());
      numbers_.emplace(&node, same);
      return same;
    }
    Expression::Instruction instruction{node.function, {-1, -1, -1}, node.value, node.index};
    for (std::size_t i = 0; i < node.arguments.size(); ++i) instruction.arguments[i] = number(node.arguments[i]);
    const Key key{node.function,
                  instruction.arguments[0],
                  instruction.arguments[1],
                  instruction.arguments[2],
                  std::bit_cast<std::uint32_t>(node.value),
                  node.index};
    const auto [entry, is_new] = known_.try_emplace(key, static_cast<std::int32_t>(code_.size()));
    if (is_new) code_.push_back(instruction);
    numbers_.emplace(&node, entry->second);
    return entry->second;
  }
  [[nodiscard]] std::vector<Expression::Instruction> take() { return std::move(code_); }

 private:
  using Key = std::tuple<ScalarFunction, std::int32_t, std::int32_t, std::int32_t, std::uint32_t, std::int32_t>;
  std::map<Key, std::int32_t> known_;
  std::unordered_map<NodePointer, std::int32_t> numbers_;
  std::deque<Scalar> products_;
  std::vector<Expression::Instruction> code_;
};

/// Whether a formula is 0 or 1 wherever it is computed.
bool is_condition(const Scalar& a) {
  switch (a.node().function) {
    case F::less:
    case F::less_equal:
    case F::equal:
    case F::is_finite: return true;
    case F::multiply: return is_condition(a.node().arguments[0]) && is_condition(a.node().arguments[1]);
    default: return false;
  }
}

/// What selects, one inside the other, choose among.
struct Choice {
  static constexpr int kMostSelects = 16;
  int selects = 0;  // up to kMostSelects + 1
  bool has_zero = false;

  explicit Choice(const Scalar& a) { add(a); }

 private:
  void add(const Scalar& a) {
    has_zero = has_zero || is_number(a, 0);
    if (a.node().function != F::select || selects > kMostSelects) return;
    ++selects;
    for (const std::size_t branch : {1, 2}) add(a.node().arguments[branch]);
  }
};

Scalar derivative_of(const Scalar& formula, int index, std::unordered_map<NodePointer, Scalar>& done) {
  const Scalar::Node& node = formula.node();
  if (node.function == F::input) return node.index == index ? 1.0F : 0.0F;
  if (node.arguments.empty()) return 0.0F;
  if (const auto found = done.find(&node); found != done.end()) return found->second;
  if (node.function == F::select) {  // chosen, not weighted by 0 and 1: the slope not taken may be infinite
    const Scalar chosen = scalar::select(node.arguments[0], derivative_of(node.arguments[1], index, done),
                                         derivative_of(node.arguments[2], index, done));
    done.emplace(&node, chosen);
    return chosen;
  }
  Scalar total = 0.0F;
  for (std::size_t k = 0; k < node.arguments.size(); ++k) {
    const Scalar inner = derivative_of(node.arguments[k], index, done);
    if (!is_number(inner, 0)) total = total + scalar::chain(slope(formula, static_cast<int>(k)), inner);
  }
  done.emplace(&node, total);
  return total;
}

}  // namespace

Scalar::Scalar(float value) : node_(std::make_shared<const Node>(Node{ScalarFunction::constant, {}, value, 0})) {}

namespace scalar {

Scalar input(int index) { return leaf(F::input, index); }
Scalar coordinate(int axis_from_last) { return leaf(F::coordinate, axis_from_last); }

Scalar apply(ScalarFunction function, std::vector<Scalar> arguments) {
  if (const Scalar* simpler = identity(function, arguments)) return *simpler;
  bool constant = true;
  float values[3] = {0, 0, 0};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    constant = constant && is_constant(arguments[i]);
    values[i] = arguments[i].node().value;
  }
  if (constant) return evaluate(function, values);
  return Scalar(std::make_shared<const Scalar::Node>(Scalar::Node{function, std::move(arguments), 0, 0}));
}

Scalar less(const Scalar& a, const Scalar& b) { return apply(F::less, {a, b}); }
Scalar less_equal(const Scalar& a, const Scalar& b) { return apply(F::less_equal, {a, b}); }
Scalar equal(const Scalar& a, const Scalar& b) { return apply(F::equal, {a, b}); }
Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b) { return apply(F::select, {condition, a, b}); }
#define CONCORD_DEFINE(name, ...) \
  Scalar name(const Scalar& a) { return apply(F::name, {a}); }
CONCORD_UNARY_FUNCTIONS(CONCORD_DEFINE)
#undef CONCORD_DEFINE
#define CONCORD_DEFINE(name, ...) \
  Scalar name(const Scalar& a, const Scalar& b) { return apply(F::name, {a, b}); }
CONCORD_BINARY_FUNCTIONS(CONCORD_DEFINE)
#undef CONCORD_DEFINE

}  // namespace scalar

Scalar operator+(const Scalar& a, const Scalar& b) { return scalar::apply(F::add, {a, b}); }
Scalar operator-(const Scalar& a, const Scalar& b) { return scalar::apply(F::subtract, {a, b}); }
Scalar operator*(const Scalar& a, const Scalar& b) { return scalar::apply(F::multiply, {a, b}); }
Scalar operator/(const Scalar& a, const Scalar& b) { return scalar::apply(F::divide, {a, b}); }
Scalar operator-(const Scalar& a) { return scalar::apply(F::negate, {a}); }

namespace scalar {

Scalar chain(const Scalar& slope, const Scalar& diff) {
  if (is_number(slope, 0) || is_number(diff, 0)) return 0.0F;
  if (is_number(slope, 1)) return diff;
  if (is_number(diff, 1)) return slope;
  for (const auto& [chosen, other] : {std::pair{slope, diff}, std::pair{diff, slope}}) {
    if (is_condition(chosen)) return select(chosen, other, 0.0F);
    const Choice choice(chosen);
    if (choice.selects == 0) continue;
    // The branches are copied, so only those of few selects: copies of copies would grow with each factor.
    if (choice.selects > Choice::kMostSelects) return select(equal(chosen, 0.0F), 0.0F, slope * diff);
    if (!choice.has_zero) continue;
    const auto& arguments = chosen.node().arguments;
    return select(arguments[0], chain(arguments[1], other), chain(arguments[2], other));
  }
  return slope * diff;
}

}  // namespace scalar

Scalar derivative(const Scalar& formula, int index) {
  std::unordered_map<NodePointer, Scalar> done;
  return derivative_of(formula, index, done);
}

Scalar replace(const Scalar& formula, const Scalar& part, const Scalar& by) {
  Numbering numbering;
  const std::int32_t target = numbering.number(part);
  std::unordered_map<NodePointer, Scalar> done;
  return rebuild(formula, done, [&](const Scalar& node) { return numbering.number(node) == target ? &by : nullptr; });
}

Scalar substitute(const Scalar& formula, std::span<const Scalar> replacements) {
  std::unordered_map<NodePointer, Scalar> done;
  return rebuild(formula, done, [&](const Scalar& node) {
    return node.node().function == F::input ? &replacements[static_cast<std::size_t>(node.node().index)] : nullptr;
  });
}

Expression::Expression(std::vector<Scalar> formulas, int inputs) : formulas_(std::move(formulas)), inputs_(inputs) {
  Numbering numbering;
  for (const Scalar& formula : formulas_) results_.push_back(numbering.number(formula));
  code_ = numbering.take();
  for (const Instruction& instruction : code_) {
    CONCORD_CHECK(instruction.function != F::input || instruction.index < inputs_, ArgumentError,
                  "an expression with {} inputs uses input {}", inputs_, instruction.index);
  }
}

bool Expression::uses_coordinates() const {
  for (const Instruction& instruction : code_) {
    if (instruction.function == F::coordinate) return true;
  }
  return false;
}

std::string Expression::str() const {
  std::string text;
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const Instruction& instruction = code_[i];
    switch (instruction.function) {
      case F::input: text += fmt::format("t{}=in{};", i, instruction.index); break;
      case F::constant: text += fmt::format("t{}={};", i, hexadecimal(instruction.value)); break;
      case F::coordinate: text += fmt::format("t{}=coordinate{};", i, instruction.index); break;
      default: {
        const ScalarFunctionInfo& info = info_of(instruction.function);
        text += fmt::format("t{}={}(", i, info.name);
        for (int k = 0; k < info.arity; ++k) text += fmt::format("{}t{}", k == 0 ? "" : ",", instruction.arguments[k]);
        text += ");";
      }
    }
  }
  for (std::size_t k = 0; k < results_.size(); ++k) text += fmt::format("out{}=t{};", k, results_[k]);
  return text;
}

float Expression::evaluate(std::size_t k, std::span<const float> inputs,
                           std::span<const std::int64_t> coordinates) const {
  std::vector<float> values(code_.size());
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const Instruction& instruction = code_[i];
    const auto index = static_cast<std::size_t>(instruction.index);
    switch (instruction.function) {
      case F::input: values[i] = inputs[index]; break;
      case F::constant: values[i] = instruction.value; break;
      case F::coordinate: values[i] = static_cast<float>(coordinates[index]); break;
      default: {
        float arguments[3] = {0, 0, 0};
        for (int a = 0; a < info_of(instruction.function).arity; ++a) {
          arguments[a] = values[static_cast<std::size_t>(instruction.arguments[a])];
        }
        values[i] = concord::evaluate(instruction.function, arguments);
      }
    }
  }
  return values[static_cast<std::size_t>(results_[k])];
}

}  // namespace concord
