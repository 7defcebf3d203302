// Gather and scatter-add along an axis: shape rules; each is the other's gradient.
#include "concord/ops/gather_along.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/axis.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> GatherAlong::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  const Shape& src = inputs[0].shape;
  const Shape& indices = inputs[1].shape;
  expect_type(name(), "indices", inputs[1], DType::i32);
  CONCORD_CHECK(
      axis_ < src.rank() && indices.rank() == src.rank() && with_size(src, axis_, indices.dims()[axis_]) == indices,
      ShapeError, "gather_along: indices {} may differ from src {} in axis {} only", indices.str(), src.str(), axis_);
  return {{inputs[0].dtype, indices}};
}

std::vector<Value> GatherAlong::gradient(const Node& node, std::span<const Value> diff_dst,
                                         const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  const Value src = node.inputs[0];
  if (!diff_dst[0] || !wanted[0] || src.dtype() != DType::f32) return diffs;
  diffs[0] =
      scatter_add_along(diff_dst[0], node.inputs[1], static_cast<std::int64_t>(axis_), src.shape().dims()[axis_]);
  return diffs;
}

std::string GatherAlong::attributes() const { return fmt::format("axis {}", axis_); }

std::vector<TensorSpec> ScatterAddAlong::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "src", inputs[0], DType::f32);
  const Shape& src = inputs[0].shape;
  expect_spec(name(), "indices", inputs[1], DType::i32, src);
  CONCORD_CHECK(axis_ < src.rank(), ShapeError, "scatter_add_along: axis {} is outside src {}", axis_, src.str());
  CONCORD_CHECK(size_ >= 1, ShapeError, "scatter_add_along: a size of {}, at least 1 needed", size_);
  return {{DType::f32, with_size(src, axis_, size_)}};
}

std::vector<Value> ScatterAddAlong::gradient(const Node& node, std::span<const Value> diff_dst,
                                             const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value indices = node.inputs[1];
  // Gathering gives NaN for the indices that scatter-add skips; their gradient is zero.
  const Scalar index = scalar::input(1);
  diffs[0] = pointwise("scatter_add_along_backward",
                       {gather_along(diff_dst[0], indices, static_cast<std::int64_t>(axis_)), indices},
                       scalar::select(is_inside(name(), index, size_), scalar::input(0), 0.0F));
  return diffs;
}

std::string ScatterAddAlong::attributes() const { return fmt::format("axis {} size {}", axis_, size_); }

}  // namespace ops

Value gather_along(Value x, Value indices, std::int64_t axis) {
  return x.graph().add(std::make_shared<ops::GatherAlong>(x.shape().index_of(axis)), {x, indices});
}

Value scatter_add_along(Value src, Value indices, std::int64_t axis, std::int64_t size) {
  return src.graph().add(std::make_shared<ops::ScatterAddAlong>(src.shape().index_of(axis), size), {src, indices});
}

}  // namespace concord
