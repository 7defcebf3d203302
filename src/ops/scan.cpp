// Cumulative sums: shape rule and gradient.
#include "concord/ops/scan.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> CumSum::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  CONCORD_CHECK(axis_ < inputs[0].shape.rank(), ShapeError, "cumsum: axis {} is outside src {}", axis_,
                inputs[0].shape.str());
  return {inputs[0]};
}

std::vector<Value> CumSum::gradient(const Node& node, std::span<const Value> diff_dst,
                                    const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  diffs[0] = diff_dst[0].graph().add(std::make_shared<CumSum>(axis_, exclusive_, !reverse_), {diff_dst[0]});
  return diffs;
}

std::string CumSum::attributes() const {
  return fmt::format("axis {}{}{}", axis_, exclusive_ ? " exclusive" : "", reverse_ ? " reverse" : "");
}

}  // namespace ops

Value cumsum(Value x, std::int64_t axis, const CumSumOptions& options) {
  return x.graph().add(std::make_shared<ops::CumSum>(x.shape().index_of(axis), options.exclusive, options.reverse),
                       {x});
}

}  // namespace concord
