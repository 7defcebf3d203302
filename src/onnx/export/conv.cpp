// Convolutions: Conv and ConvTranspose. The gradient with respect to the data is a transposed convolution; that with
// respect to the weights is a convolution of the images with the gradients, whose stride and dilation change places.
#include "concord/ops/conv.hpp"

#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {
namespace {

using Numbers = std::vector<std::int64_t>;

/// The last `rank` numbers.
Numbers last(const ops::Spatial& values, std::size_t rank) {
  return {values.end() - static_cast<std::ptrdiff_t>(rank), values.end()};
}

Numbers pads_of(const ops::ConvOptions& options) {
  Numbers pads = last(options.padding, options.rank);
  const Numbers after = last(options.padding_after, options.rank);
  pads.insert(pads.end(), after.begin(), after.end());
  return pads;
}

/// Spatial axes of an image or of weights: 2, 3, ….
Numbers order_of(std::initializer_list<std::int64_t> first, std::size_t rank, std::int64_t from) {
  Numbers order(first);
  for (std::size_t i = 0; i < rank; ++i) order.push_back(from + static_cast<std::int64_t>(i));
  return order;
}

/// src (N, g·C, …), diff_dst (N, g·O, …) → (g·O, C, k…): the samples are the channels of a grouped convolution of the
/// images (C, g·N, …) with the weights (g·O, N, …).
void write_backward_weights(NodeExport& x) {
  const auto& op = x.op<ops::ConvBackwardWeights>();
  const ops::ConvOptions& o = op.options();
  const Shape &src = x.node().inputs[0].shape(), &weights = x.node().outputs[0].shape;
  const std::int64_t g = o.groups, c = src[1] / g, n = src[0];
  const auto with_spatial = [&](Numbers first) {
    for (std::size_t i = 2; i < src.rank(); ++i) first.push_back(src.dims()[i]);
    return fixed_sizes(Shape(std::move(first)));
  };
  std::string images = x.reshape(x.in(0), x.in_sizes(0), with_spatial({n, g, c}));
  images = x.transpose(images, order_of({2, 1, 0}, o.rank, 3));
  images = x.reshape(images, {}, with_spatial({c, g * n}));
  const std::string diffs = x.transpose(x.in(1), order_of({1, 0}, o.rank, 2));
  std::string result = x.add("Conv", {images, diffs},
                             {wholes("pads", pads_of(o)), wholes("strides", last(o.dilation, o.rank)),
                              wholes("dilations", last(o.stride, o.rank)), whole("group", g)});
  // Pixels that no window reaches would give more kernel elements.
  for (std::size_t i = 0; i < o.rank; ++i) {
    const auto axis = static_cast<std::int64_t>(i) + 2;
    result = x.slice(result, axis, 0, weights[axis]);
  }
  x.bind(0, x.transpose(result, order_of({1, 0}, o.rank, 2)));
}

}  // namespace

std::string write_conv(NodeExport& x, const Node& node, const std::string& bias) {
  const ops::ConvOptions& o = static_cast<const ops::ConvFamily&>(*node.op).options();
  const Shape& weights = node.inputs[1].shape();
  return x.add("Conv", {x.name_of(node.inputs[0]), x.name_of(node.inputs[1]), bias},
               {wholes("kernel_shape", {weights.dims().begin() + 2, weights.dims().end()}), wholes("pads", pads_of(o)),
                wholes("strides", last(o.stride, o.rank)), wholes("dilations", last(o.dilation, o.rank)),
                whole("group", o.groups)});
}

std::string write_conv_transpose(NodeExport& x, const Node& node, const std::string& bias) {
  const ops::ConvOptions& o = static_cast<const ops::ConvFamily&>(*node.op).options();
  const Shape &src = node.inputs[0].shape(), &weights = node.inputs[1].shape(), &dst = node.outputs[0].shape;
  const Numbers stride = last(o.stride, o.rank), dilation = last(o.dilation, o.rank), pads = pads_of(o);
  Numbers more;  // pixels at the end that the formula of the size leaves out
  for (std::size_t i = 0; i < o.rank; ++i) {
    const auto axis = static_cast<std::int64_t>(i) + 2;
    const std::int64_t size =
        (src[axis] - 1) * stride[i] - pads[i] - pads[i + o.rank] + dilation[i] * (weights[axis] - 1) + 1;
    more.push_back(dst[axis] - size);
  }
  return x.add("ConvTranspose", {x.name_of(node.inputs[0]), x.name_of(node.inputs[1]), bias},
               {wholes("kernel_shape", {weights.dims().begin() + 2, weights.dims().end()}), wholes("pads", pads),
                wholes("strides", stride), wholes("dilations", dilation), wholes("output_padding", more),
                whole("group", o.groups)});
}

void add_conv_rules(Rules& rules) {
  rules[typeid(ops::Conv)] = [](NodeExport& x) { x.bind(0, write_conv(x, x.node(), {})); };
  rules[typeid(ops::ConvBackwardData)] = [](NodeExport& x) { x.bind(0, write_conv_transpose(x, x.node(), {})); };
  rules[typeid(ops::ConvBackwardWeights)] = write_backward_weights;
}

}  // namespace concord::onnx
