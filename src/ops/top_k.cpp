// Top-k: shape rule and gradient.
#include "concord/ops/top_k.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/axis.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> TopK::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  const Shape& src = inputs[0].shape;
  CONCORD_CHECK(axis_ < src.rank(), ShapeError, "top_k: axis {} is outside src {}", axis_, src.str());
  CONCORD_CHECK(k_ >= 1 && k_ <= src.dims()[axis_], ShapeError, "top_k: {} values of axis {} of src {}", k_, axis_,
                src.str());
  const Shape dst = with_size(src, axis_, k_);
  return {{DType::f32, dst}, {DType::i32, dst}};
}

std::vector<Value> TopK::gradient(const Node& node, std::span<const Value> diff_dst,
                                  const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  diffs[0] = scatter_add_along(diff_dst[0], output_of(node, 1), static_cast<std::int64_t>(axis_),
                               node.inputs[0].shape().dims()[axis_]);
  return diffs;
}

std::string TopK::attributes() const {
  return fmt::format("k {} axis {} {}", k_, axis_, largest_ ? "largest" : "smallest");
}

}  // namespace ops

TopKResult top_k(Value x, std::int64_t k, std::int64_t axis, bool largest) {
  Graph& graph = x.graph();
  const Value values = graph.add(std::make_shared<ops::TopK>(k, x.shape().index_of(axis), largest), {x});
  return {values, Value(&graph, values.node_id(), 1)};
}

}  // namespace concord
