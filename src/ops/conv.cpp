// Convolution: sizes, shape rules and gradients. Each of the three operators' gradients is made of the other two.
#include "concord/ops/conv.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {
namespace {

/// Throws ShapeError unless the numbers of a convolution are in range.
void expect_options(const ConvOptions& o) {
  for (std::size_t i = 0; i < 2; ++i) {
    CONCORD_CHECK(o.stride[i] >= 1 && o.dilation[i] >= 1 && o.padding[i] >= 0, ShapeError,
                  "conv2d: {}: stride and dilation must be at least 1, padding at least 0", o.str());
  }
  CONCORD_CHECK(o.groups >= 1, ShapeError, "conv2d: groups must be at least 1, got {}", o.groups);
}

Shape dst_shape(const ConvSizes& s) { return {s.n, s.o, s.oh, s.ow}; }

Value add_conv(Value x, Value weights, const ConvOptions& options) {
  return x.graph().add(std::make_shared<Conv2d>(options), {x, weights});
}

Value add_backward_data(Value diff_dst, Value weights, const ConvOptions& options, const Shape& src) {
  return diff_dst.graph().add(std::make_shared<Conv2dBackwardData>(options, src), {diff_dst, weights});
}

Value add_backward_weights(Value src, Value diff_dst, const ConvOptions& options, const Shape& weights) {
  return src.graph().add(std::make_shared<Conv2dBackwardWeights>(options, weights), {src, diff_dst});
}

}  // namespace

std::string ConvOptions::str() const {
  return fmt::format("stride {}x{} padding {}x{} dilation {}x{} groups {}", stride[0], stride[1], padding[0],
                     padding[1], dilation[0], dilation[1], groups);
}

ConvSizes conv_sizes(const Shape& src, const Shape& weights, const ConvOptions& options) {
  expect_options(options);
  CONCORD_CHECK(src.rank() == 4 && weights.rank() == 4, ShapeError,
                "conv2d: expected src (N, C, H, W) and weights (O, C/groups, kH, kW), got {} and {}", src.str(),
                weights.str());
  expect_not_empty("conv2d", "src", src);
  expect_not_empty("conv2d", "weights", weights);
  ConvSizes s{};
  s.n = src[0], s.c = src[1], s.h = src[2], s.w = src[3];
  s.o = weights[0], s.kh = weights[2], s.kw = weights[3];
  s.options = options;
  CONCORD_CHECK(weights[1] * options.groups == s.c, ShapeError,
                "conv2d: src {} has {} channels, weights {} with groups {} want {}", src.str(), s.c, weights.str(),
                options.groups, weights[1] * options.groups);
  CONCORD_CHECK(s.o % options.groups == 0, ShapeError,
                "conv2d: weights {} have {} outputs, which groups {} does not divide", weights.str(), s.o,
                options.groups);
  const auto output_size = [&](std::size_t axis, std::int64_t size, std::int64_t kernel) {
    const std::int64_t reach = options.dilation[axis] * (kernel - 1) + 1;
    const std::int64_t room = size + 2 * options.padding[axis];
    CONCORD_CHECK(reach <= room, ShapeError,
                  "conv2d: weights {} with dilation {} span {} along {}, src {} with padding {} has {}", weights.str(),
                  options.dilation[axis], reach, axis == 0 ? "H" : "W", src.str(), options.padding[axis], room);
    return (room - reach) / options.stride[axis] + 1;
  };
  s.oh = output_size(0, s.h, s.kh);
  s.ow = output_size(1, s.w, s.kw);
  return s;
}

Cost ConvFamily::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  const ConvSizes s = sizes(inputs);
  cost.flops = 2.0 * static_cast<double>(s.n * s.o) * static_cast<double>(s.oh * s.ow) *
               static_cast<double>(s.c / s.options.groups * s.kh * s.kw);
  return cost;
}

ConvSizes Conv2d::sizes(std::span<const TensorSpec> inputs) const {
  return conv_sizes(inputs[0].shape, inputs[1].shape, options());
}

std::vector<TensorSpec> Conv2d::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "src", inputs[0], DType::f32);
  expect_type(name(), "weights", inputs[1], DType::f32);
  return {{DType::f32, dst_shape(sizes(inputs))}};
}

std::vector<Value> Conv2d::gradient(const Node& node, std::span<const Value> diff_dst,
                                    const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0]) return diffs;
  const Value src = node.inputs[0];
  const Value weights = node.inputs[1];
  if (wanted[0]) diffs[0] = add_backward_data(diff_dst[0], weights, options(), src.shape());
  if (wanted[1]) diffs[1] = add_backward_weights(src, diff_dst[0], options(), weights.shape());
  return diffs;
}

ConvSizes Conv2dBackwardData::sizes(std::span<const TensorSpec> inputs) const {
  return conv_sizes(src_, inputs[1].shape, options());
}

std::vector<TensorSpec> Conv2dBackwardData::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "weights", inputs[1], DType::f32);
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, dst_shape(sizes(inputs)));
  return {{DType::f32, src_}};
}

std::vector<Value> Conv2dBackwardData::gradient(const Node& node, std::span<const Value> diff_dst,
                                                const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0]) return diffs;
  const Value forward_diff = node.inputs[0];
  const Value weights = node.inputs[1];
  if (wanted[0]) diffs[0] = add_conv(diff_dst[0], weights, options());
  if (wanted[1]) diffs[1] = add_backward_weights(diff_dst[0], forward_diff, options(), weights.shape());
  return diffs;
}

ConvSizes Conv2dBackwardWeights::sizes(std::span<const TensorSpec> inputs) const {
  return conv_sizes(inputs[0].shape, weights_, options());
}

std::vector<TensorSpec> Conv2dBackwardWeights::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "src", inputs[0], DType::f32);
  expect_spec(name(), "diff_dst", inputs[1], DType::f32, dst_shape(sizes(inputs)));
  return {{DType::f32, weights_}};
}

std::vector<Value> Conv2dBackwardWeights::gradient(const Node& node, std::span<const Value> diff_dst,
                                                   const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0]) return diffs;
  const Value src = node.inputs[0];
  const Value forward_diff = node.inputs[1];
  if (wanted[0]) diffs[0] = add_backward_data(forward_diff, diff_dst[0], options(), src.shape());
  if (wanted[1]) diffs[1] = add_conv(src, diff_dst[0], options());
  return diffs;
}

}  // namespace ops

Value conv2d(Value x, Value weights, const Conv2dOptions& options) { return ops::add_conv(x, weights, options); }

}  // namespace concord
