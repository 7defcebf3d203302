// AllFinite: the shape rule. It has no gradient.
#include "concord/ops/all_finite.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> AllFinite::infer(std::span<const TensorSpec> inputs) const {
  CONCORD_CHECK(!inputs.empty() && inputs.size() == names_.size(), ShapeError,
                "all_finite: expected a name for each of one or more inputs, got {} for {}", names_.size(),
                inputs.size());
  for (const TensorSpec& input : inputs) expect_type(name(), "src", input, DType::f32);
  return {{DType::f32, Shape{}}};
}

std::vector<TensorSpec> AllFiniteWithNumbers::infer(std::span<const TensorSpec> inputs) const {
  const auto others = static_cast<std::size_t>(formulas_.expression().inputs()) - 1;
  expect_inputs(name(), inputs, tensors_ + others);
  for (const TensorSpec& input : inputs.first(tensors_)) expect_type(name(), "src", input, DType::f32);
  std::vector<TensorSpec> operands{{DType::f32, Shape{}}};
  operands.insert(operands.end(), inputs.begin() + static_cast<std::ptrdiff_t>(tensors_), inputs.end());
  std::vector<TensorSpec> outputs = formulas_.infer(operands);
  outputs.insert(outputs.begin(), {DType::f32, Shape{}});
  return outputs;
}

}  // namespace ops

Value all_finite(std::vector<Value> values, std::vector<std::string> names) {
  CONCORD_CHECK(!values.empty(), ArgumentError, "all_finite: no values given");
  Graph& graph = values.front().graph();
  return graph.add(std::make_shared<ops::AllFinite>(std::move(names)), std::move(values));
}

}  // namespace concord
