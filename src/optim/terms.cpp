// TermInputs: from formulas over named terms to one pointwise operator.
#include "concord/optim/terms.hpp"

#include "concord/ops/pointwise.hpp"

namespace concord::optim {

Scalar TermInputs::term(Value value) {
  values_.push_back(value);
  return scalar::input(static_cast<int>(values_.size()) - 1);
}

std::vector<Scalar> TermInputs::terms(const std::vector<Value>& values) {
  std::vector<Scalar> all;
  for (const Value& value : values) all.push_back(term(value));
  return all;
}

UpdateTerms TermInputs::terms(const ParameterStep& step, const std::vector<Value>& staged) {
  const Scalar weight = term(step.weight), gradient = term(step.gradient), lr = term(step.lr);
  return {weight, gradient, lr, terms(step.shared), terms(step.states), terms(staged)};
}

std::vector<Value> TermInputs::compute(const std::string& label, const std::vector<Scalar>& formulas,
                                       const Shape& shape) const {
  std::vector<bool> used(values_.size(), false);
  const Expression expression(formulas, static_cast<int>(values_.size()));
  for (const auto& instruction : expression.code()) {
    if (instruction.function == ScalarFunction::input) used[static_cast<std::size_t>(instruction.index)] = true;
  }
  std::vector<Value> operands;
  std::vector<Scalar> renumbered;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    renumbered.push_back(scalar::input(static_cast<int>(operands.size())));
    if (used[i]) operands.push_back(values_[i]);
  }
  std::vector<Scalar> final;
  for (const Scalar& formula : formulas) final.push_back(substitute(formula, renumbered));
  return pointwise(label, std::move(operands), std::move(final), std::vector<DType>(formulas.size(), DType::f32),
                   shape);
}

}  // namespace concord::optim
