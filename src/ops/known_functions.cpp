// The operators before a formula are put into it, as fusion would do, and the whole is looked up.
#include "concord/ops/known_functions.hpp"

#include <algorithm>
#include <map>

#include "concord/graph/known_functions.hpp"

namespace concord::ops {
namespace {

constexpr std::size_t kMostExpanded = 24, kLongestExpanded = 12;  // operators, and instructions of one

bool may_be_known(const Scalar& formula) {
  const ScalarFunction root = formula.node().function;
  return root == ScalarFunction::multiply || root == ScalarFunction::add || root == ScalarFunction::divide;
}

/// The expression of `value`, if it is to be put into a formula of this shape.
const Expression* expandable(const Value& value, const Shape& shape, ExpressionOf expression_of) {
  if (value.dtype() != DType::f32 || value.node().outputs.size() != 1) return nullptr;
  const Expression* const own = expression_of(value);
  if (own == nullptr || own->code().size() > kLongestExpanded || own->uses_coordinates()) return nullptr;
  const bool is_number = own->inputs() == 0 && value.shape().elements() == 1 && value.shape().rank() <= shape.rank();
  return value.shape() == shape || is_number ? own : nullptr;
}

/// The values that are put into the formula, nearest first, and whether there is a gate among them.
struct ValuesBefore {
  std::vector<Value> expanded;
  bool have_gate = false;

  ValuesBefore(const std::vector<Value>& inputs, const Shape& shape, ExpressionOf expression_of) {
    std::vector<Value> waiting = inputs;
    for (std::size_t i = 0; i < waiting.size() && expanded.size() < kMostExpanded; ++i) {
      const Value value = waiting[i];
      const Expression* const own = expandable(value, shape, expression_of);
      if (own == nullptr || std::ranges::find(expanded, value) != expanded.end()) continue;
      expanded.push_back(value);
      have_gate =
          have_gate || std::ranges::any_of(own->code(), [](const auto& step) { return is_gate(step.function); });
      waiting.insert(waiting.end(), value.node().inputs.begin(), value.node().inputs.end());
    }
  }
};

/// Formulas of values over those that are not expanded.
class ExpandedFormulas {
 public:
  ExpandedFormulas(const ValuesBefore& before, ExpressionOf expression_of)
      : before_(before), expression_of_(expression_of) {}

  Scalar of(const Value& value) {
    if (const auto found = formulas_.find(value); found != formulas_.end()) return found->second;
    const bool is_leaf = std::ranges::find(before_.expanded, value) == before_.expanded.end();
    const Scalar formula =
        is_leaf ? scalar::input(leaves_++) : joined(value.node().inputs, expression_of_(value)->formulas()[0]);
    formulas_.emplace(value, formula);
    return formula;
  }
  Scalar joined(const std::vector<Value>& inputs, const Scalar& formula) {
    std::vector<Scalar> operands;
    for (const Value& input : inputs) operands.push_back(of(input));
    return substitute(formula, operands);
  }
  [[nodiscard]] const std::map<Value, Scalar>& all() const { return formulas_; }
  [[nodiscard]] int leaves() const { return leaves_; }

 private:
  const ValuesBefore& before_;
  ExpressionOf expression_of_;
  std::map<Value, Scalar> formulas_;
  int leaves_ = 0;
};

}  // namespace

std::optional<KnownFunctionOf> known_function_of(const std::vector<Value>& inputs, const Scalar& formula,
                                                 const Shape& at_least, ExpressionOf expression_of) {
  if (!may_be_known(formula) || inputs.empty()) return std::nullopt;
  const Shape shape = std::ranges::max(inputs, {}, [](const Value& x) { return x.shape().elements(); }).shape();
  if (at_least.rank() > 0 && at_least != shape) return std::nullopt;
  const ValuesBefore before(inputs, shape, expression_of);
  if (!before.have_gate) return std::nullopt;
  ExpandedFormulas expanded(before, expression_of);
  std::vector<Scalar> formulas{expanded.joined(inputs, formula)};
  std::vector<Value> values;
  for (const auto& [value, own] : expanded.all()) {
    values.push_back(value);
    formulas.push_back(own);
  }
  const Expression expression(formulas, expanded.leaves());
  const auto known = known_function(expression.code(), expression.results()[0]);
  if (!known) return std::nullopt;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_argument = expression.results()[i + 1] == known->argument;
    if (is_argument && values[i].spec() == TensorSpec{DType::f32, shape}) {
      std::vector<Value> joined = before.expanded;
      std::erase(joined, values[i]);
      return KnownFunctionOf{known->function, values[i], std::move(joined)};
    }
  }
  return std::nullopt;
}

}  // namespace concord::ops
