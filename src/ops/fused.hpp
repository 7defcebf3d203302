// Fused: an operator whose first output passes through a pointwise expression before it is written. Made by
// compile/fuse where the device supports it, never by users.
#pragma once

#include "concord/graph/expression.hpp"
#include "concord/graph/operator.hpp"

namespace concord::ops {

/// Inputs: those of `base`, then the epilogue's further operands (broadcast to the output's shape). Input 0 of
/// the epilogue is base's first output. Outputs: those of `base`, the first as the epilogue makes it.
class Fused final : public Operator {
 public:
  Fused(std::shared_ptr<const Operator> base, std::size_t base_inputs, Expression epilogue, std::string label)
      : base_(std::move(base)), base_inputs_(base_inputs), epilogue_(std::move(epilogue)), label_(std::move(label)) {}
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] const std::shared_ptr<const Operator>& base() const { return base_; }
  [[nodiscard]] std::size_t base_inputs() const { return base_inputs_; }
  [[nodiscard]] const Expression& epilogue() const { return epilogue_; }

 private:
  std::shared_ptr<const Operator> base_;
  std::size_t base_inputs_;
  Expression epilogue_;
  std::string label_;
};

}  // namespace concord::ops
