// StopGradient: shape rule, and a gradient that is none.
#include "concord/ops/stop_gradient.hpp"

#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> StopGradient::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  return {inputs[0]};
}

std::vector<Value> StopGradient::gradient(const Node& node, std::span<const Value>, const std::vector<bool>&) const {
  return no_gradients(node);
}

}  // namespace ops

Value stop_gradient(Value x) { return x.graph().add(std::make_shared<ops::StopGradient>(), {x}); }

}  // namespace concord
