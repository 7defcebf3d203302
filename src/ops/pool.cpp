// Pooling: output sizes as PyTorch computes them, shape rules, gradients.
#include "concord/ops/pool.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

Shape dst_shape(const PoolSizes& s) { return {s.n, s.c, s.oh, s.ow}; }

std::int64_t output_size(const Shape& src, std::size_t axis, const PoolOptions& o) {
  const std::int64_t size = src[static_cast<std::int64_t>(axis) + 2];
  const std::int64_t room = size + 2 * o.padding[axis] - o.kernel[axis];
  CONCORD_CHECK(room >= 0, ShapeError, "pool: kernel {}x{} with padding {}x{} does not fit src {}", o.kernel[0],
                o.kernel[1], o.padding[0], o.padding[1], src.str());
  if (!o.ceil_mode) return room / o.stride[axis] + 1;
  const std::int64_t count = (room + o.stride[axis] - 1) / o.stride[axis] + 1;
  // The last window must start inside the source or its left padding.
  return (count - 1) * o.stride[axis] >= size + o.padding[axis] ? count - 1 : count;
}

}  // namespace

std::string PoolOptions::str() const {
  return fmt::format("kernel {}x{} stride {}x{} padding {}x{}{}{}", kernel[0], kernel[1], stride[0], stride[1],
                     padding[0], padding[1], ceil_mode ? " ceil" : "", count_include_pad ? "" : " exclude_pad");
}

PoolSizes pool_sizes(const Shape& src, const PoolOptions& options) {
  CONCORD_CHECK(src.rank() == 4, ShapeError, "pool: expected src (N, C, H, W), got {}", src.str());
  expect_not_empty("pool", "src", src);
  PoolSizes s{src[0], src[1], src[2], src[3], 0, 0, options};
  PoolOptions& o = s.options;
  for (std::size_t i = 0; i < 2; ++i) {
    if (o.stride[i] == 0) o.stride[i] = o.kernel[i];
    CONCORD_CHECK(o.kernel[i] >= 1 && o.stride[i] >= 1, ShapeError, "pool: {}: kernel and stride must be at least 1",
                  options.str());
    CONCORD_CHECK(o.padding[i] >= 0 && 2 * o.padding[i] <= o.kernel[i], ShapeError,
                  "pool: {}: padding must lie between 0 and half the kernel", options.str());
  }
  s.oh = output_size(src, 0, o);
  s.ow = output_size(src, 1, o);
  return s;
}

std::vector<TensorSpec> MaxPool::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  const Shape dst = dst_shape(pool_sizes(inputs[0].shape, options_));
  return {{DType::f32, dst}, {DType::i32, dst}};
}

std::vector<Value> MaxPool::gradient(const Node& node, std::span<const Value> diff_dst,
                                     const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value src = node.inputs[0];
  diffs[0] =
      src.graph().add(std::make_shared<MaxPoolBackward>(options_, src.shape()), {diff_dst[0], output_of(node, 1)});
  return diffs;
}

std::vector<TensorSpec> MaxPoolBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  const Shape dst = dst_shape(pool_sizes(src_, options_));
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, dst);
  expect_spec(name(), "argmax", inputs[1], DType::i32, dst);
  return {{DType::f32, src_}};
}

std::vector<TensorSpec> AvgPool::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_type(name(), "src", inputs[0], DType::f32);
  return {{DType::f32, dst_shape(pool_sizes(inputs[0].shape, options_))}};
}

std::vector<Value> AvgPool::gradient(const Node& node, std::span<const Value> diff_dst,
                                     const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0] || !wanted[0]) return diffs;
  const Value src = node.inputs[0];
  diffs[0] = src.graph().add(std::make_shared<AvgPoolBackward>(options_, src.shape()), {diff_dst[0]});
  return diffs;
}

std::vector<TensorSpec> AvgPoolBackward::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, dst_shape(pool_sizes(src_, options_)));
  return {{DType::f32, src_}};
}

std::vector<Value> AvgPoolBackward::gradient(const Node& node, std::span<const Value> diff_dst,
                                             const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (diff_dst[0] && wanted[0]) diffs[0] = avg_pool2d(diff_dst[0], options_);
  return diffs;
}

}  // namespace ops

Value max_pool2d(Value x, const Pool2dOptions& options) {
  return x.graph().add(std::make_shared<ops::MaxPool>(options), {x});
}

Value avg_pool2d(Value x, const Pool2dOptions& options) {
  return x.graph().add(std::make_shared<ops::AvgPool>(options), {x});
}

Value global_avg_pool2d(Value x) {
  CONCORD_CHECK(x.shape().rank() == 4, ShapeError, "global_avg_pool2d: expected (N, C, H, W), got {}", x.shape().str());
  return avg_pool2d(x, {.kernel = {x.shape()[2], x.shape()[3]}});
}

}  // namespace concord
