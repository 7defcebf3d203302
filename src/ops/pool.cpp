// Pooling: output sizes as PyTorch computes them, shape rules, gradients.
#include "concord/ops/pool.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {
namespace {

Shape dst_shape(const PoolSizes& s) { return with_spatial(s.n, s.c, s.dst, s.options.rank); }

std::int64_t output_size(const Shape& src, std::size_t axis, std::int64_t size, const PoolOptions& o) {
  const std::int64_t reach = o.dilation[axis] * (o.kernel[axis] - 1) + 1;
  const std::int64_t room = size + 2 * o.padding[axis] - reach;
  // With ceil_mode the only window may reach beyond the padding.
  CONCORD_CHECK(room >= 0 || (o.ceil_mode && room + o.stride[axis] > 0), ShapeError,
                "pool: kernel {} with padding {} and dilation {} does not fit src {}", str(o.kernel, o.rank),
                str(o.padding, o.rank), str(o.dilation, o.rank), src.str());
  if (!o.ceil_mode) return room / o.stride[axis] + 1;
  const std::int64_t count = (room + o.stride[axis] - 1) / o.stride[axis] + 1;
  // The last window must start inside the source or its left padding.
  return (count - 1) * o.stride[axis] >= size + o.padding[axis] ? count - 1 : count;
}

void expect_windows(const PoolOptions& o) {
  for (std::size_t i = 3 - o.rank; i < 3; ++i) {
    CONCORD_CHECK(o.kernel[i] >= 1 && o.stride[i] >= 1 && o.dilation[i] >= 1, ShapeError,
                  "pool: {}: kernel, stride and dilation must be at least 1", o.str());
    const std::int64_t reach = o.dilation[i] * (o.kernel[i] - 1) + 1;
    CONCORD_CHECK(o.padding[i] >= 0 && 2 * o.padding[i] <= std::max(reach, o.kernel[i]), ShapeError,
                  "pool: {}: padding must lie between 0 and half the kernel", o.str());
  }
  CONCORD_CHECK(o.divisor >= 0, ShapeError, "pool: {}: the divisor must be positive", o.str());
}

// Values and indices of the same shape (N, C, …).
void expect_indexed(std::string_view name, const TensorSpec& values, const TensorSpec& indices) {
  const std::size_t rank = indices.shape.rank();
  CONCORD_CHECK(rank >= 3 && rank <= 5 && values.shape.rank() == rank && values.shape[0] == indices.shape[0] &&
                    values.shape[1] == indices.shape[1],
                ShapeError, "{}: values and indices must be (N, C, …) with equal N and C, got {} and {}", name,
                values.shape.str(), indices.shape.str());
  expect_type(name, "values", values, DType::f32);
  expect_type(name, "indices", indices, DType::i32);
  expect_not_empty(name, "values", values.shape);
  expect_not_empty(name, "indices", indices.shape);
}

}  // namespace

std::string PoolOptions::str() const {
  const std::string divided = divisor == 0 ? "" : fmt::format(" divisor {}", divisor);
  if (is_adaptive()) return fmt::format("adaptive {}{}", ops::str(adaptive, rank), divided);
  const std::string dilated = dilation == Spatial{1, 1, 1} ? "" : fmt::format(" dilation {}", ops::str(dilation, rank));
  return fmt::format("kernel {} stride {} padding {}{}{}{}{}", ops::str(kernel, rank), ops::str(stride, rank),
                     ops::str(padding, rank), dilated, ceil_mode ? " ceil" : "",
                     count_include_pad ? "" : " exclude_pad", divided);
}

PoolSizes pool_sizes(const Shape& src, const PoolOptions& options) {
  CONCORD_CHECK(src.rank() == options.rank + 2, ShapeError, "pool: expected src {}, got {}",
                spatial_form("N, C", "", options.rank), src.str());
  CONCORD_CHECK(*std::ranges::min_element(src.dims().subspan(1)) >= 1, ShapeError,
                "pool: src {} has no channels or pixels", src.str());
  PoolSizes s{src[0], src[1], spatial_of(src), options.adaptive, options};
  if (options.is_adaptive()) {
    CONCORD_CHECK(*std::ranges::min_element(s.dst) >= 1, ShapeError, "pool: {}: sizes must be at least 1",
                  options.str());
    return s;
  }
  PoolOptions& o = s.options;
  for (std::size_t i = 0; i < 3; ++i) {
    if (o.stride[i] == 0) o.stride[i] = o.kernel[i];
  }
  expect_windows(o);
  for (std::size_t i = 0; i < 3; ++i) s.dst[i] = output_size(src, i, s.src[i], o);
  return s;
}

bool PoolSizes::is_global() const {
  const bool has_all = options.is_adaptive() || (options.kernel == src && options.padding == Spatial{0, 0, 0} &&
                                                 options.dilation == Spatial{1, 1, 1});
  return has_all && dst == Spatial{1, 1, 1};
}

std::int64_t PoolSizes::global_divisor() const {
  return options.divisor != 0 ? options.divisor : src[0] * src[1] * src[2];
}

std::vector<TensorSpec> MaxPool::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  const Shape dst = dst_shape(pool_sizes(inputs[0].shape, options()));
  return {{DType::f32, dst}, {DType::i32, dst}};
}

std::vector<Value> MaxPool::gradient(const Node& node, std::span<const Value> diff_dst,
                                     const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value src = node.inputs[0];
  diffs[0] =
      src.graph().add(std::make_shared<MaxPoolBackward>(options(), src.shape()), {diff_dst[0], output_of(node, 1)});
  return diffs;
}

std::vector<TensorSpec> MaxPoolBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  const Shape dst = dst_shape(pool_sizes(src_, options()));
  expect_not_empty(name(), "src", src_);
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, dst);
  expect_spec(name(), "indices", inputs[1], DType::i32, dst);
  return {{DType::f32, src_}};
}

std::vector<Value> MaxPoolBackward::gradient(const Node& node, std::span<const Value> diff_dst,
                                             const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  diffs[0] = diff_dst[0].graph().add(std::make_shared<MaxUnpoolBackward>(), {diff_dst[0], node.inputs[1]});
  return diffs;
}

std::vector<TensorSpec> AvgPool::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  CONCORD_CHECK((options().dilation == Spatial{1, 1, 1}), ShapeError, "avg_pool: {}: only max pooling is dilated",
                options().str());
  expect_type(name(), "src", inputs[0], DType::f32);
  return {{DType::f32, dst_shape(pool_sizes(inputs[0].shape, options()))}};
}

std::vector<Value> AvgPool::gradient(const Node& node, std::span<const Value> diff_dst,
                                     const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value src = node.inputs[0];
  const PoolSizes sizes = pool_sizes(src.shape(), options());
  if (sizes.is_global()) {
    // One value for each image and channel: operators that read the gradient read these, so it is not stored.
    diffs[0] = pointwise("avg_pool_backward", {diff_dst[0]},
                         scalar::input(0) / static_cast<float>(sizes.global_divisor()), DType::f32, src.shape());
    return diffs;
  }
  diffs[0] = src.graph().add(std::make_shared<AvgPoolBackward>(options(), src.shape()), {diff_dst[0]});
  return diffs;
}

std::vector<TensorSpec> AvgPoolBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_not_empty(name(), "src", src_);
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, dst_shape(pool_sizes(src_, options())));
  return {{DType::f32, src_}};
}

std::vector<Value> AvgPoolBackward::gradient(const Node& node, std::span<const Value> diff_dst,
                                             const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (diff_dst[0] && wanted[0]) diffs[0] = avg_pool(diff_dst[0], options());
  return diffs;
}

std::vector<TensorSpec> MaxUnpool::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_indexed(name(), inputs[0], inputs[1]);
  expect_spec(name(), "indices", inputs[1], DType::i32, inputs[0].shape);
  expect_not_empty(name(), "dst", dst_);
  return {{DType::f32, dst_}};
}

std::vector<Value> MaxUnpool::gradient(const Node& node, std::span<const Value> diff_dst,
                                       const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  diffs[0] = diff_dst[0].graph().add(std::make_shared<MaxUnpoolBackward>(), {diff_dst[0], node.inputs[1]});
  return diffs;
}

std::vector<TensorSpec> MaxUnpoolBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_indexed(name(), inputs[0], inputs[1]);
  return {{DType::f32, inputs[1].shape}};
}

std::vector<Value> MaxUnpoolBackward::gradient(const Node& node, std::span<const Value> diff_dst,
                                               const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value src = node.inputs[0], indices = node.inputs[1];
  const std::int64_t n = src.shape()[0], c = src.shape()[1], pixels = src.shape().elements() / (n * c);
  const Value sums = scatter_add_along(reshape(diff_dst[0], {n, c, -1}), reshape(indices, {n, c, -1}), 2, pixels);
  diffs[0] = reshape(sums, src.shape());
  return diffs;
}

}  // namespace concord::ops
