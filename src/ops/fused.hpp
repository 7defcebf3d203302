// Fused: an operator whose first output passes through a pointwise expression before it is written. Made by
// compile/fuse where the device supports it, never by users.
#pragma once

#include <string_view>

#include "concord/graph/expression.hpp"
#include "concord/graph/operator.hpp"

namespace concord::ops {

/// What Fused, Prologued and Appended share: an operator `base` and an expression over a value of it. Inputs: those of
/// `base`, then the expression's further operands, which broadcast to the shape of that value.
class WithExpression : public Operator {
 public:
  WithExpression(std::shared_ptr<const Operator> base, std::size_t base_inputs, Expression expression,
                 std::string label)
      : base_(std::move(base)),
        base_inputs_(base_inputs),
        expression_(std::move(expression)),
        label_(std::move(label)) {}
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] const std::shared_ptr<const Operator>& base() const { return base_; }
  [[nodiscard]] std::size_t base_inputs() const { return base_inputs_; }

 protected:
  [[nodiscard]] const Expression& expression() const { return expression_; }
  /// The outputs of `base`.
  [[nodiscard]] std::vector<TensorSpec> infer_base(std::span<const TensorSpec> inputs) const;
  /// Throws ShapeError unless the further operands broadcast to `shape`; `kind` names the expression.
  void check_operands(std::span<const TensorSpec> inputs, const Shape& shape, std::string_view kind) const;
  /// The cost where the expression is computed for each element of `shape`.
  [[nodiscard]] Cost cost_over(const Shape& shape, std::span<const TensorSpec> inputs,
                               std::span<const TensorSpec> outputs) const;

 private:
  std::shared_ptr<const Operator> base_;
  std::size_t base_inputs_;
  Expression expression_;
  std::string label_;
};

/// Input 0 of the epilogue is base's first output. Outputs: those of `base`, the first as the epilogue makes it.
class Fused final : public WithExpression {
 public:
  using WithExpression::WithExpression;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const Expression& epilogue() const { return expression(); }
};

}  // namespace concord::ops
