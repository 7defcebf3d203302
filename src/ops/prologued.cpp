// Prologued: a formula and the operator that reads its result seen as one.
#include "concord/ops/prologued.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {

std::vector<TensorSpec> Prologued::infer(std::span<const TensorSpec> inputs) const {
  std::vector<TensorSpec> outputs = infer_base(inputs);
  expect_type(name(), "src", inputs[0], DType::f32);
  check_operands(inputs, inputs[0].shape, "prologue");
  return outputs;
}

Cost Prologued::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_over(inputs[0].shape, inputs, outputs);
}

std::string Prologued::attributes() const {
  return fmt::format("{} then {} {{{}}}", prologue().str(), base()->name(), base()->attributes());
}

}  // namespace concord::ops
