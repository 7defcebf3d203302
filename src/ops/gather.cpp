// Gather and scatter-add: shape rules; each is the other's gradient.
#include "concord/ops/gather.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> Gather::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "indices", inputs[1], DType::i32);
  const Shape& table = inputs[0].shape;
  CONCORD_CHECK(table.rank() >= 1, ShapeError, "gather: the table needs at least one dimension, got {}", table.str());
  std::vector<std::int64_t> dims(inputs[1].shape.dims().begin(), inputs[1].shape.dims().end());
  dims.insert(dims.end(), table.dims().begin() + 1, table.dims().end());
  return {{inputs[0].dtype, Shape(std::move(dims))}};
}

std::vector<Value> Gather::gradient(const Node& node, std::span<const Value> diff_dst,
                                    const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  const Value table = node.inputs[0];
  if (!diff_dst[0] || !wanted[0] || table.dtype() != DType::f32) return diffs;
  diffs[0] = scatter_add(diff_dst[0], node.inputs[1], table.shape()[0], padding_);
  return diffs;
}

std::string Gather::attributes() const { return padding_ < 0 ? "" : fmt::format("padding {}", padding_); }

std::vector<TensorSpec> ScatterAdd::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, inputs.size() > kBase ? 3 : 2);
  expect_type(name(), "src", inputs[0], DType::f32);
  expect_type(name(), "indices", inputs[1], DType::i32);
  const auto src = inputs[0].shape.dims();
  const auto indices = inputs[1].shape.dims();
  CONCORD_CHECK(rows_ >= 1, ShapeError, "scatter_add: {} rows, at least 1 needed", rows_);
  CONCORD_CHECK(src.size() >= indices.size() && std::ranges::equal(src.first(indices.size()), indices), ShapeError,
                "scatter_add: src {} must begin with the dimensions of indices {}", inputs[0].shape.str(),
                inputs[1].shape.str());
  std::vector<std::int64_t> dims{rows_};
  dims.insert(dims.end(), src.begin() + static_cast<std::ptrdiff_t>(indices.size()), src.end());
  const TensorSpec sums{DType::f32, Shape(std::move(dims))};
  CONCORD_CHECK(inputs.size() <= kBase || inputs[kBase] == sums, ShapeError, "scatter_add: {} cannot be added to {}",
                inputs[kBase].str(), sums.str());
  return {sums};
}

std::vector<Value> ScatterAdd::gradient(const Node& node, std::span<const Value> diff_dst,
                                        const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (node.inputs.size() > kBase) diffs[kBase] = diff_dst[0];
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value src = node.inputs[0];
  const Value indices = node.inputs[1];
  // Gather gives NaN for the indices that scatter-add skips; their gradient is zero.
  std::vector<std::int64_t> dims(src.shape().rank(), 1);
  std::ranges::copy(indices.shape().dims(), dims.begin());
  const Scalar index = scalar::input(1);
  Scalar valid = is_inside(name(), index, rows_);
  if (padding_ >= 0) valid = valid * (1.0F - scalar::equal(index, static_cast<float>(padding_)));
  diffs[0] = pointwise("scatter_add_backward", {gather(diff_dst[0], indices), reshape(indices, Shape(std::move(dims)))},
                       scalar::select(valid, scalar::input(0), 0.0F));
  return diffs;
}

Scalar is_inside(std::string_view op, const Scalar& index, std::int64_t size) {
  constexpr std::int64_t kMost = 1 << 24;
  CONCORD_CHECK(size <= kMost, NotSupported, "{}: no gradient for indices up to {}; formulas can count to {}", op, size,
                kMost);
  return scalar::less_equal(0.0F, index) * scalar::less(index, Scalar(static_cast<float>(size)));
}

std::string ScatterAdd::attributes() const { return fmt::format("rows {} padding {}", rows_, padding_); }

}  // namespace ops

Value gather(Value table, Value indices, std::int64_t padding) {
  return table.graph().add(std::make_shared<ops::Gather>(padding), {table, indices});
}

Value scatter_add(Value src, Value indices, std::int64_t rows, std::int64_t padding) {
  return src.graph().add(std::make_shared<ops::ScatterAdd>(rows, padding), {src, indices});
}

}  // namespace concord
