// Prologued: an operator whose first input passes through a pointwise expression as it is read. Made by compile/fuse
// where the device supports it, never by users.
#pragma once

#include "concord/graph/expression.hpp"
#include "concord/graph/operator.hpp"

namespace concord::ops {

/// Inputs: those of `base`, then the prologue's further operands (broadcast to the shape of input 0). Input 0 of the
/// prologue is input 0 of this operator; its result takes the place of base's input 0. Outputs: those of `base`.
class Prologued final : public Operator {
 public:
  Prologued(std::shared_ptr<const Operator> base, std::size_t base_inputs, Expression prologue, std::string label)
      : base_(std::move(base)), base_inputs_(base_inputs), prologue_(std::move(prologue)), label_(std::move(label)) {}
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const std::shared_ptr<const Operator>& base() const { return base_; }
  [[nodiscard]] std::size_t base_inputs() const { return base_inputs_; }
  [[nodiscard]] const Expression& prologue() const { return prologue_; }

 private:
  std::shared_ptr<const Operator> base_;
  std::size_t base_inputs_;
  Expression prologue_;
  std::string label_;
};

}  // namespace concord::ops
