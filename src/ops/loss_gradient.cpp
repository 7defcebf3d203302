// CrossEntropyWithGradient: the shape rule and the cost.
#include "concord/ops/loss_gradient.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {

std::vector<TensorSpec> CrossEntropyWithGradient::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, kBaseInputs + static_cast<std::size_t>(slope_.inputs() - kSlopeInputs));
  std::vector<TensorSpec> outputs = base_.infer(inputs.first(kBaseInputs));
  const TensorSpec& logits = inputs[0];
  CONCORD_CHECK(slope_.results().size() == 1, ShapeError, "{}: its slope has more than one output", name());
  for (const TensorSpec& operand : inputs.subspan(kBaseInputs)) {
    CONCORD_CHECK(broadcast(logits.shape, operand.shape) == logits.shape, ShapeError,
                  "{}: operand {} does not broadcast to the logits {}", name(), operand.shape.str(),
                  logits.shape.str());
  }
  outputs.push_back(logits);
  return outputs;
}

Cost CrossEntropyWithGradient::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  cost.flops = base_.cost(inputs.first(kBaseInputs), outputs.first(kGradient)).flops +
               operations(slope_) * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string CrossEntropyWithGradient::attributes() const {
  return fmt::format("{}, slope {}", base_.attributes(), slope_.str());
}

}  // namespace concord::ops
