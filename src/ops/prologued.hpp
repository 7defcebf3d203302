// Prologued: an operator whose first input passes through a pointwise expression as it is read. Made by compile/fuse
// where the device supports it, never by users.
#pragma once

#include "concord/ops/fused.hpp"

namespace concord::ops {

/// Input 0 of the prologue is input 0 of this operator; its result takes the place of base's input 0. Outputs: those of
/// `base`.
class Prologued final : public WithExpression {
 public:
  using WithExpression::WithExpression;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const Expression& prologue() const { return expression(); }
};

}  // namespace concord::ops
