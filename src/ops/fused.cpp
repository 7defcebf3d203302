// Fused: an operator and its epilogue seen as one.
#include "concord/ops/fused.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {

std::vector<TensorSpec> Fused::infer(std::span<const TensorSpec> inputs) const {
  const auto extra = static_cast<std::size_t>(epilogue_.inputs()) - 1;
  expect_inputs(name(), inputs, base_inputs_ + extra);
  CONCORD_CHECK(epilogue_.results().size() == 1, ShapeError, "{}: an epilogue has one output", name());
  std::vector<TensorSpec> outputs = base_->infer(inputs.first(base_inputs_));
  const TensorSpec dst{DType::f32, outputs.front().shape};
  for (const TensorSpec& operand : inputs.subspan(base_inputs_)) {
    CONCORD_CHECK(broadcast(dst.shape, operand.shape) == dst.shape, ShapeError,
                  "{}: epilogue operand {} does not broadcast to {}", name(), operand.shape.str(), dst.shape.str());
  }
  outputs.front() = dst;
  return outputs;
}

Cost Fused::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  cost.flops = base_->cost(inputs.first(base_inputs_), outputs).flops +
               operations(epilogue_) * static_cast<double>(outputs[0].shape.elements());
  return cost;
}

std::string Fused::attributes() const {
  return fmt::format("{} {{{}}} then {}", base_->name(), base_->attributes(), epilogue_.str());
}

}  // namespace concord::ops
