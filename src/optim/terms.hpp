// TermInputs: the operands of a formula in the order in which it meets them. Shared by minimize and the stages of
// rules; internal to the room.
#pragma once

#include <string>
#include <vector>

#include "concord/optim/optimizer.hpp"

namespace concord::optim {

class TermInputs {
 public:
  /// The formula of a value.
  Scalar term(Value value);
  std::vector<Scalar> terms(const std::vector<Value>& values);
  UpdateTerms terms(const ParameterStep& step, const std::vector<Value>& staged);
  /// f32 values of `shape`, one a formula, in one operator that reads only what the formulas use.
  [[nodiscard]] std::vector<Value> compute(const std::string& label, const std::vector<Scalar>& formulas,
                                           const Shape& shape) const;

 private:
  std::vector<Value> values_;
};

}  // namespace concord::optim
