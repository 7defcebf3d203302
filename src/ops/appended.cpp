// Appended: the rules of its base, and those of the formula.
#include "concord/ops/appended.hpp"

#include <fmt/format.h>

namespace concord::ops {

std::vector<TensorSpec> Appended::infer(std::span<const TensorSpec> inputs) const {
  std::vector<TensorSpec> outputs = infer_base(inputs);
  outputs.resize(1);
  check_operands(inputs, outputs.front().shape, "formula");
  outputs.push_back({DType::f32, outputs.front().shape});
  return outputs;
}

Cost Appended::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  return cost_over(outputs[0].shape, inputs, outputs);
}

std::string Appended::attributes() const {
  return fmt::format("{} {{{}}}, and {}", base()->name(), base()->attributes(), formula().str());
}

}  // namespace concord::ops
