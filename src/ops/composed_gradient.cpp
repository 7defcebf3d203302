// A gradient rule from a composition: the gradient of the composition, taken at views of the inputs.
#include "concord/ops/composed_gradient.hpp"

#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {

std::vector<Value> composed_gradient(const Node& node, std::span<const Value> diff_dst, const std::vector<bool>& wanted,
                                     const Composition& compose) {
  // Inputs may depend on each other; as views of their own they do not, and further gradients pass through these.
  std::vector<Value> inputs, asked;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value input = node.inputs[i];
    inputs.push_back(input.graph().add(std::make_shared<Reshape>(input.shape()), {input}));
    if (wanted[i]) asked.push_back(inputs.back());
  }
  const std::vector<Value> outputs = compose(inputs);
  Value weighted;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!diff_dst[k]) continue;
    const Value part = sum(outputs[k] * diff_dst[k]);
    weighted = weighted ? weighted + part : part;
  }
  std::vector<Value> diffs = no_gradients(node);
  if (!weighted || asked.empty()) return diffs;
  const std::vector<Value> slopes = gradient(weighted, asked);
  for (std::size_t i = 0, next = 0; i < diffs.size(); ++i) {
    if (wanted[i]) diffs[i] = slopes[next++];
  }
  return diffs;
}

}  // namespace concord::ops
