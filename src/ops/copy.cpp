// The copy family: shape rules and gradients; each is undone by another of the family. The functions that build them
// are in views.cpp.
#include "concord/ops/copy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {
namespace {

/// Throws ShapeError unless start + step·i stays inside `outer` for every i below `inner`, along each axis.
void expect_inside(std::string_view op, std::span<const std::int64_t> start, std::span<const std::int64_t> step,
                   const Shape& inner, const Shape& outer) {
  const std::size_t rank = outer.rank();
  CONCORD_CHECK(inner.rank() == rank && start.size() == rank && step.size() == rank, ShapeError,
                "{}: {} of {} with start [{}] step [{}]: the ranks differ", op, inner.str(), outer.str(),
                fmt::join(start, ", "), fmt::join(step, ", "));
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t last = start[i] + step[i] * (inner.dims()[i] - 1);
    CONCORD_CHECK(step[i] >= 1 && start[i] >= 0 && (inner.dims()[i] == 0 || last < outer.dims()[i]), ShapeError,
                  "{}: {} with start [{}] step [{}] does not lie inside {}", op, inner.str(), fmt::join(start, ", "),
                  fmt::join(step, ", "), outer.str());
  }
}

}  // namespace

std::vector<TensorSpec> Reshape::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  CONCORD_CHECK(inputs[0].shape.elements() == shape_.elements(), ShapeError,
                "reshape: {} has {} elements, but {} has {}", inputs[0].shape.str(), inputs[0].shape.elements(),
                shape_.str(), shape_.elements());
  return {{inputs[0].dtype, shape_}};
}

std::vector<Value> Reshape::gradient(const Node& node, std::span<const Value> diff_dst,
                                     const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (diff_dst[0] && wanted[0]) diffs[0] = reshape(diff_dst[0], node.inputs[0].shape());
  return diffs;
}

std::vector<TensorSpec> Transpose::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  const Shape& src = inputs[0].shape;
  std::vector<std::size_t> sorted = order_;
  std::ranges::sort(sorted);
  bool is_permutation = sorted.size() == src.rank();
  for (std::size_t i = 0; is_permutation && i < sorted.size(); ++i) is_permutation = sorted[i] == i;
  CONCORD_CHECK(is_permutation, ShapeError, "transpose: [{}] is not an order of the axes of {}",
                fmt::join(order_, ", "), src.str());
  std::vector<std::int64_t> dims;
  for (const std::size_t axis : order_) dims.push_back(src.dims()[axis]);
  return {{inputs[0].dtype, Shape(std::move(dims))}};
}

std::vector<Value> Transpose::gradient(const Node& node, std::span<const Value> diff_dst,
                                       const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  std::vector<std::size_t> inverse(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) inverse[order_[i]] = i;
  diffs[0] = diff_dst[0].graph().add(std::make_shared<Transpose>(std::move(inverse)), {diff_dst[0]});
  return diffs;
}

std::string Transpose::attributes() const { return fmt::format("order [{}]", fmt::join(order_, ", ")); }

std::vector<TensorSpec> Slice::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_inside(name(), start_, step_, dst_, inputs[0].shape);
  return {{inputs[0].dtype, dst_}};
}

std::vector<Value> Slice::gradient(const Node& node, std::span<const Value> diff_dst,
                                   const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  diffs[0] = diff_dst[0].graph().add(std::make_shared<Pad>(start_, step_, node.inputs[0].shape(), 0.0F), {diff_dst[0]});
  return diffs;
}

std::string Slice::attributes() const {
  return fmt::format("start [{}] step [{}] dst {}", fmt::join(start_, ", "), fmt::join(step_, ", "), dst_.str());
}

std::vector<TensorSpec> Pad::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_inside(name(), before_, step_, inputs[0].shape, dst_);
  const DType type = inputs[0].dtype;
  const auto holds = [&](double least, double end) {
    return value_ == std::floor(value_) && value_ >= least && value_ < end;
  };
  CONCORD_CHECK((type != DType::i32 || holds(-0x1p31, 0x1p31)) && (type != DType::u8 || holds(0, 256)), ArgumentError,
                "{}: {} cannot be {}", name(), name_of(type), value_);
  return {{type, dst_}};
}

std::vector<Value> Pad::gradient(const Node& node, std::span<const Value> diff_dst,
                                 const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  diffs[0] = diff_dst[0].graph().add(std::make_shared<Slice>(before_, step_, node.inputs[0].shape()), {diff_dst[0]});
  return diffs;
}

std::string Pad::attributes() const {
  return fmt::format("before [{}] step [{}] dst {} value {}", fmt::join(before_, ", "), fmt::join(step_, ", "),
                     dst_.str(), value_);
}

std::vector<TensorSpec> Concat::infer(std::span<const TensorSpec> inputs) const {
  CONCORD_CHECK(!inputs.empty(), ShapeError, "concat: needs at least one operand");
  const TensorSpec& first = inputs[0];
  CONCORD_CHECK(axis_ < first.shape.rank(), ShapeError, "concat: axis {} is outside {}", axis_, first.shape.str());
  std::vector<std::int64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  for (const TensorSpec& input : inputs.subspan(1)) {
    bool fits = input.dtype == first.dtype && input.shape.rank() == dims.size();
    for (std::size_t i = 0; fits && i < dims.size(); ++i) fits = i == axis_ || input.shape.dims()[i] == dims[i];
    CONCORD_CHECK(fits, ShapeError, "concat: {} and {} may differ in axis {} only", first.str(), input.str(), axis_);
    dims[axis_] += input.shape.dims()[axis_];
  }
  return {{first.dtype, Shape(std::move(dims))}};
}

std::vector<Value> Concat::gradient(const Node& node, std::span<const Value> diff_dst,
                                    const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0]) return diffs;
  const auto axis = static_cast<std::int64_t>(axis_);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < diffs.size(); ++i) {
    const std::int64_t size = node.inputs[i].shape()[axis];
    if (wanted[i]) diffs[i] = slice(diff_dst[0], axis, start, start + size);
    start += size;
  }
  return diffs;
}

std::string Concat::attributes() const { return fmt::format("axis {}", axis_); }

}  // namespace concord::ops
