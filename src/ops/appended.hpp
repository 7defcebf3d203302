// Appended: an operator and a pointwise expression of its result, of which both are written. Made by
// compile/append_formulas where the device has a kernel for it, never by users.
#pragma once

#include "concord/ops/fused.hpp"

namespace concord::ops {

/// Input 0 of the expression is the output of `base`, which has one. Outputs: that, and what the expression makes of
/// it.
class Appended final : public WithExpression {
 public:
  using WithExpression::WithExpression;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const Expression& formula() const { return expression(); }
};

}  // namespace concord::ops
