// Convolution: sizes, shape rules and gradients. Each of the three operators' gradients is made of the other two.
#include "concord/ops/conv.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {
namespace {

using Names = std::array<std::string_view, 3>;
constexpr Names kForward{"conv1d", "conv2d", "conv3d"};
constexpr Names kBackwardData{"conv1d_backward_data", "conv2d_backward_data", "conv3d_backward_data"};
constexpr Names kBackwardWeights{"conv1d_backward_weights", "conv2d_backward_weights", "conv3d_backward_weights"};

std::string_view forward_name(const ConvOptions& options) { return kForward.at(options.rank - 1); }

/// Throws ShapeError unless the numbers of a convolution are in range.
void expect_options(const ConvOptions& o) {
  for (std::size_t i = 3 - o.rank; i < 3; ++i) {
    CONCORD_CHECK(o.stride[i] >= 1 && o.dilation[i] >= 1 && o.padding[i] >= 0 && o.padding_after[i] >= 0, ShapeError,
                  "{}: {}: stride and dilation must be at least 1, padding at least 0", forward_name(o), o.str());
  }
  CONCORD_CHECK(o.groups >= 1, ShapeError, "{}: groups must be at least 1, got {}", forward_name(o), o.groups);
}

Shape dst_shape(const ConvSizes& s) { return with_spatial(s.n, s.o, {s.od, s.oh, s.ow}, s.options.rank); }

Value add_conv(Value x, Value weights, const ConvOptions& options) {
  return x.graph().add(std::make_shared<Conv>(options), {x, weights});
}

Value add_backward_data(Value diff_dst, Value weights, const ConvOptions& options, const Shape& src) {
  return diff_dst.graph().add(std::make_shared<ConvBackwardData>(options, src), {diff_dst, weights});
}

Value add_backward_weights(Value src, Value diff_dst, const ConvOptions& options, const Shape& weights) {
  return src.graph().add(std::make_shared<ConvBackwardWeights>(options, weights), {src, diff_dst});
}

}  // namespace

std::string ConvOptions::str() const {
  const std::string after = padding_after == padding ? "" : fmt::format(" after {}", ops::str(padding_after, rank));
  return fmt::format("stride {} padding {}{} dilation {} groups {}", ops::str(stride, rank), ops::str(padding, rank),
                     after, ops::str(dilation, rank), groups);
}

bool ConvSizes::is_padded() const {
  constexpr Spatial kNone{0, 0, 0};
  return options.padding != kNone || options.padding_after != kNone;
}

ConvSizes conv_sizes(const Shape& src, const Shape& weights, const ConvOptions& options) {
  expect_options(options);
  const std::string_view name = forward_name(options);
  const std::size_t rank = options.rank;
  CONCORD_CHECK(src.rank() == rank + 2 && weights.rank() == rank + 2, ShapeError,
                "{}: expected src {} and weights {}, got {} and {}", name, spatial_form("N, C", "", rank),
                spatial_form("O, C/groups", "k", rank), src.str(), weights.str());
  expect_not_empty(name, "weights", weights);
  const std::int64_t c = src[1], o = weights[0];
  CONCORD_CHECK(weights[1] * options.groups == c, ShapeError,
                "{}: src {} has {} channels, weights {} with groups {} need {}", name, src.str(), c, weights.str(),
                options.groups, weights[1] * options.groups);
  CONCORD_CHECK(o % options.groups == 0, ShapeError, "{}: weights {} have {} outputs, which groups {} does not divide",
                name, weights.str(), o, options.groups);
  const Spatial image = spatial_of(src), kernel = spatial_of(weights);
  CONCORD_CHECK(*std::ranges::min_element(image) >= 1, ShapeError, "{}: src {} has no pixels", name, src.str());
  Spatial dst{};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t reach = options.dilation[i] * (kernel[i] - 1) + 1;
    const std::int64_t room = image[i] + options.padding[i] + options.padding_after[i];
    CONCORD_CHECK(reach <= room, ShapeError,
                  "{}: weights {} with dilation {} span {} along {}, src {} with padding {} before and {} after has {}",
                  name, weights.str(), options.dilation[i], reach, name_of_axis(i), src.str(), options.padding[i],
                  options.padding_after[i], room);
    dst[i] = (room - reach) / options.stride[i] + 1;
  }
  return {src[0], c, image[0], image[1], image[2], o, kernel[0], kernel[1], kernel[2], dst[0], dst[1], dst[2], options};
}

Cost ConvFamily::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  const ConvSizes s = sizes(inputs);
  cost.flops = 2.0 * static_cast<double>(s.n * s.o) * static_cast<double>(s.dst_plane()) *
               static_cast<double>(s.group_c() * s.taps());
  return cost;
}

std::string_view Conv::name() const { return forward_name(options()); }

ConvSizes Conv::sizes(std::span<const TensorSpec> inputs) const {
  return conv_sizes(inputs[0].shape, inputs[1].shape, options());
}

std::vector<TensorSpec> Conv::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "src", inputs[0], DType::f32);
  expect_type(name(), "weights", inputs[1], DType::f32);
  return {{DType::f32, dst_shape(sizes(inputs))}};
}

std::vector<Value> Conv::gradient(const Node& node, std::span<const Value> diff_dst,
                                  const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0]) return diffs;
  const Value src = node.inputs[0];
  const Value weights = node.inputs[1];
  if (wanted[0]) diffs[0] = add_backward_data(diff_dst[0], weights, options(), src.shape());
  if (wanted[1]) diffs[1] = add_backward_weights(src, diff_dst[0], options(), weights.shape());
  return diffs;
}

std::string_view ConvBackwardData::name() const { return kBackwardData.at(options().rank - 1); }

ConvSizes ConvBackwardData::sizes(std::span<const TensorSpec> inputs) const {
  return conv_sizes(src_, inputs[1].shape, options());
}

std::vector<TensorSpec> ConvBackwardData::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "weights", inputs[1], DType::f32);
  expect_spec(name(), "diff_dst", inputs[0], DType::f32, dst_shape(sizes(inputs)));
  return {{DType::f32, src_}};
}

std::vector<Value> ConvBackwardData::gradient(const Node& node, std::span<const Value> diff_dst,
                                              const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0]) return diffs;
  const Value forward_diff = node.inputs[0];
  const Value weights = node.inputs[1];
  if (wanted[0]) diffs[0] = add_conv(diff_dst[0], weights, options());
  if (wanted[1]) diffs[1] = add_backward_weights(diff_dst[0], forward_diff, options(), weights.shape());
  return diffs;
}

std::string_view ConvBackwardWeights::name() const { return kBackwardWeights.at(options().rank - 1); }

ConvSizes ConvBackwardWeights::sizes(std::span<const TensorSpec> inputs) const {
  return conv_sizes(inputs[0].shape, weights_, options());
}

std::vector<TensorSpec> ConvBackwardWeights::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 2);
  expect_type(name(), "src", inputs[0], DType::f32);
  expect_not_empty(name(), "src", inputs[0].shape);
  expect_spec(name(), "diff_dst", inputs[1], DType::f32, dst_shape(sizes(inputs)));
  return {{DType::f32, weights_}};
}

std::vector<Value> ConvBackwardWeights::gradient(const Node& node, std::span<const Value> diff_dst,
                                                 const std::vector<bool>& wanted) const {
  std::vector<Value> diffs = no_gradients(node);
  if (!diff_dst[0]) return diffs;
  const Value src = node.inputs[0];
  const Value forward_diff = node.inputs[1];
  if (wanted[0]) diffs[0] = add_backward_data(forward_diff, diff_dst[0], options(), src.shape());
  if (wanted[1]) diffs[1] = add_conv(src, diff_dst[0], options());
  return diffs;
}

}  // namespace concord::ops
