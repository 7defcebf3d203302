// Optimizer with another weight decay, and the elementwise formulas of a stage.
#include "concord/optim/optimizer.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/optim/terms.hpp"

namespace concord::optim {

Optimizer Optimizer::with_weight_decay(double weight_decay) const {
  CONCORD_CHECK(decayed_, ArgumentError, "the optimizer '{}' has no weight decay to change", rule_.name);
  return decayed_(weight_decay);
}

Value ParameterStep::elementwise(const std::string& label, const std::vector<Value>& staged,
                                 const std::function<Scalar(const UpdateTerms&)>& formula) const {
  TermInputs inputs;
  const UpdateTerms terms = inputs.terms(*this, staged);
  return inputs.compute(label, {formula(terms)}, weight.shape()).front();
}

}  // namespace concord::optim
