// Prologued: a formula and the operator that reads its result seen as one.
#include "concord/ops/prologued.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {

std::vector<TensorSpec> Prologued::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, base_inputs_ + static_cast<std::size_t>(prologue_.inputs()) - 1);
  CONCORD_CHECK(prologue_.results().size() == 1, ShapeError, "{}: a prologue has one output", name());
  expect_type(name(), "src", inputs[0], DType::f32);
  const Shape& src = inputs[0].shape;
  for (const TensorSpec& operand : inputs.subspan(base_inputs_)) {
    CONCORD_CHECK(broadcast(src, operand.shape) == src, ShapeError, "{}: prologue operand {} does not broadcast to {}",
                  name(), operand.shape.str(), src.str());
  }
  return base_->infer(inputs.first(base_inputs_));
}

Cost Prologued::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  cost.flops = base_->cost(inputs.first(base_inputs_), outputs).flops +
               operations(prologue_) * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string Prologued::attributes() const {
  return fmt::format("{} then {} {{{}}}", prologue_.str(), base_->name(), base_->attributes());
}

}  // namespace concord::ops
