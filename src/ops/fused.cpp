// Fused: an operator and its epilogue seen as one; and what it shares with Prologued.
#include "concord/ops/fused.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {

std::vector<TensorSpec> WithExpression::infer_base(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, base_inputs_ + static_cast<std::size_t>(expression_.inputs()) - 1);
  return base_->infer(inputs.first(base_inputs_));
}

void WithExpression::check_operands(std::span<const TensorSpec> inputs, const Shape& shape,
                                    std::string_view kind) const {
  CONCORD_CHECK(expression_.results().size() == 1, ShapeError, "{}: its {} has more than one output", name(), kind);
  for (const TensorSpec& operand : inputs.subspan(base_inputs_)) {
    CONCORD_CHECK(broadcast(shape, operand.shape) == shape, ShapeError, "{}: {} operand {} does not broadcast to {}",
                  name(), kind, operand.shape.str(), shape.str());
  }
}

Cost WithExpression::cost_over(const Shape& shape, std::span<const TensorSpec> inputs,
                               std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  cost.flops = base_->cost(inputs.first(base_inputs_), outputs).flops +
               operations(expression_) * static_cast<double>(shape.elements());
  return cost;
}

std::vector<TensorSpec> Fused::infer(std::span<const TensorSpec> inputs) const {
  std::vector<TensorSpec> outputs = infer_base(inputs);
  outputs.front().dtype = DType::f32;
  check_operands(inputs, outputs.front().shape, "epilogue");
  return outputs;
}

Cost Fused::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_over(outputs[0].shape, inputs, outputs);
}

std::string Fused::attributes() const {
  return fmt::format("{} {{{}}} then {}", base()->name(), base()->attributes(), epilogue().str());
}

}  // namespace concord::ops
