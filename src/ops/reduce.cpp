// Reductions: shape rule, gradients, and the functions that choose axes.
#include "concord/ops/reduce.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/graph/scalar_functions.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

/// Whether there is a result of no elements.
bool has_identity(ReduceKind kind) {
  return kind == ReduceKind::sum || kind == ReduceKind::product || kind == ReduceKind::norm;
}

/// Of a product with one factor of 0, only that factor's gradient is not 0.
Value product_gradient(Value src, Value dst, Value diff_dst, const std::vector<std::size_t>& axes) {
  const auto reduced = [&](ReduceKind kind, Value x) {
    return src.graph().add(std::make_shared<Reduce>(kind, axes), {x});
  };
  const Scalar x = scalar::input(0), is_zero = scalar::equal(x, 0.0F);
  const Value others = reduced(ReduceKind::product, pointwise("factors", {src}, scalar::select(is_zero, 1.0F, x)));
  const Value zeros = reduced(ReduceKind::sum, pointwise("zero_factors", {src}, is_zero));
  const Scalar product = scalar::input(1), diff = scalar::input(2), rest = scalar::input(3), count = scalar::input(4);
  const Scalar only = is_zero * scalar::equal(count, 1.0F);
  const Scalar slope = scalar::select(scalar::equal(count, 0.0F), product / x, scalar::select(only, rest, 0.0F));
  return pointwise("reduce_prod_backward", {src, dst, diff_dst, others, zeros}, scalar::chain(slope, diff));
}

}  // namespace

std::string_view Reduce::name() const {
  switch (kind_) {
    case ReduceKind::sum: return "reduce_sum";
    case ReduceKind::product: return "reduce_prod";
    case ReduceKind::maximum: return "reduce_max";
    case ReduceKind::minimum: return "reduce_min";
    case ReduceKind::norm: return "reduce_norm";
    case ReduceKind::argmax: return "argmax";
  }
  throw Error("unknown reduction");
}

std::vector<TensorSpec> Reduce::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  const Shape& src = inputs[0].shape;
  CONCORD_CHECK(kind_ != ReduceKind::argmax || axes_.size() == 1, ShapeError, "argmax: of {} needs one axis, got {}",
                src.str(), axes_.size());
  std::vector<std::int64_t> dims(src.dims().begin(), src.dims().end());
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    CONCORD_CHECK(axes_[i] < src.rank(), ShapeError, "{}: axis {} is outside src {}", name(), axes_[i], src.str());
    CONCORD_CHECK(i == 0 || axes_[i - 1] < axes_[i], ShapeError, "{}: axes [{}] of src {} must be sorted and distinct",
                  name(), fmt::join(axes_, ", "), src.str());
    CONCORD_CHECK(dims[axes_[i]] > 0 || has_identity(kind_), ShapeError, "{}: axis {} of src {} is empty", name(),
                  axes_[i], src.str());
    dims[axes_[i]] = 1;
  }
  return {{kind_ == ReduceKind::argmax ? DType::i32 : DType::f32, Shape(std::move(dims))}};
}

std::vector<Value> Reduce::gradient(const Node& node, std::span<const Value> diff_dst,
                                    const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0] || kind_ == ReduceKind::argmax) return diffs;
  const Value src = node.inputs[0];
  if (kind_ == ReduceKind::sum) {
    diffs[0] = pointwise("expand", {diff_dst[0]}, scalar::input(0), DType::f32, src.shape());
    return diffs;
  }
  const Value dst = output_of(node, 0);
  if (kind_ == ReduceKind::product) {
    diffs[0] = product_gradient(src, dst, diff_dst[0], axes_);
    return diffs;
  }
  if (kind_ == ReduceKind::norm) {
    const Scalar slope = scalar::input(0) / scalar::input(1);
    diffs[0] = pointwise("norm_backward", {src, dst, diff_dst[0]},
                         scalar::select(scalar::input(1), slope * scalar::input(2), 0.0F));
    return diffs;
  }
  // Winners share the gradient evenly; a NaN wins.
  const Scalar is_number = scalar::equal(scalar::input(0), scalar::input(0));
  const Scalar wins = scalar::max(scalar::equal(scalar::input(0), scalar::input(1)), 1.0F - is_number);
  const Value winners = pointwise("winners", {src, dst}, wins);
  const Value count = src.graph().add(std::make_shared<Reduce>(ReduceKind::sum, axes_), {winners});
  diffs[0] = pointwise(std::string(name()) + "_backward", {src, dst, diff_dst[0], count},
                       scalar::select(wins, scalar::input(2) / scalar::input(3), 0.0F));
  return diffs;
}

Cost Reduce::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  cost.flops = (kind_ == ReduceKind::norm ? 2 : 1) * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string Reduce::attributes() const { return fmt::format("axes [{}]", fmt::join(axes_, ", ")); }

}  // namespace ops

namespace {

/// `axes` as sorted indices; all when empty.
std::vector<std::size_t> sorted_axes(const Shape& shape, const std::vector<std::int64_t>& axes) {
  std::vector<std::size_t> sorted;
  for (const std::int64_t axis : axes) sorted.push_back(shape.index_of(axis));
  if (axes.empty()) {
    for (std::size_t i = 0; i < shape.rank(); ++i) sorted.push_back(i);
  }
  std::ranges::sort(sorted);
  CONCORD_CHECK(std::ranges::adjacent_find(sorted) == sorted.end(), ShapeError, "axes [{}] of {} contain an axis twice",
                fmt::join(axes, ", "), shape.str());
  return sorted;
}

Value reduce(ops::ReduceKind kind, Value x, const std::vector<std::int64_t>& axes, bool keep_dims) {
  const std::vector<std::size_t> reduced = sorted_axes(x.shape(), axes);
  if (reduced.empty()) return x;
  const Value kept = x.graph().add(std::make_shared<ops::Reduce>(kind, reduced), {x});
  if (keep_dims) return kept;
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < x.shape().rank(); ++i) {
    if (!std::ranges::binary_search(reduced, i)) dims.push_back(x.shape().dims()[i]);
  }
  return reshape(kept, Shape(std::move(dims)));
}

}  // namespace

Value sum(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(ops::ReduceKind::sum, x, axes, keep_dims);
}

Value mean(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  std::int64_t count = 1;
  for (const std::size_t axis : sorted_axes(x.shape(), axes)) count *= x.shape().dims()[axis];
  CONCORD_CHECK(count > 0, ShapeError, "mean: of no values: {}", x.shape().str());
  return reduce(ops::ReduceKind::sum, x, axes, keep_dims) / static_cast<float>(count);
}

Value prod(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(ops::ReduceKind::product, x, axes, keep_dims);
}

Value reduce_max(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(ops::ReduceKind::maximum, x, axes, keep_dims);
}

Value reduce_min(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(ops::ReduceKind::minimum, x, axes, keep_dims);
}

Value norm(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(ops::ReduceKind::norm, x, axes, keep_dims);
}

Value argmax(Value x, std::int64_t axis, bool keep_dims) {
  return reduce(ops::ReduceKind::argmax, x, {axis}, keep_dims);
}

Value sum_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  CONCORD_CHECK(shape.rank() <= x.shape().rank() && broadcast(x.shape(), shape) == x.shape(), ShapeError,
                "sum_to: {} does not broadcast to {}", shape.str(), x.shape().str());
  const std::size_t leading = x.shape().rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.shape().rank(); ++i) {
    const std::int64_t kept = i < leading ? 1 : shape.dims()[i - leading];
    if (kept != x.shape().dims()[i]) axes.push_back(static_cast<std::int64_t>(i));
  }
  return reshape(axes.empty() ? x : sum(x, axes, true), shape);
}

}  // namespace concord
