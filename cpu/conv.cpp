// Convolution and its gradients through oneDNN. Images are channels-last, which its AVX-512 kernels are fastest with
// for few channels and pass on without padding; weights take the format the chosen implementation asks for.
#include "concord/ops/conv.hpp"

#include "epilogue.hpp"
#include "families.hpp"

namespace concord::cpu {
namespace {

ConvGeometry geometry_of(const ops::ConvSizes& s) {
  const auto& o = s.options;
  // What oneDNN may need after the last element so that its output has our size: it rounds down as we do.
  return {.stride = {o.stride[0], o.stride[1]},
          .dilation = {o.dilation[0] - 1, o.dilation[1] - 1},
          .padding_before = {o.padding[0], o.padding[1]},
          .padding_after = {o.padding[0], o.padding[1]}};
}

// (O, C/groups, kH, kW), with the groups as a dimension of their own where there are several.
Dims weights_dims(const ops::ConvSizes& s) {
  const std::int64_t groups = s.options.groups;
  if (groups == 1) return {s.o, s.c, s.kh, s.kw};
  return {groups, s.o / groups, s.c / groups, s.kh, s.kw};
}

}  // namespace

PreparedKernel prepare_conv_with(const ops::Conv2d& op, const Epilogue& epilogue, const KernelRequest& request) {
  const ops::ConvSizes s = op.sizes(request.inputs);
  const TensorSpec& output = request.outputs[0];
  const Desc src = channels_last_desc(request.inputs[0]);
  const Desc dst = channels_last_desc(output);
  return guarded(request.op->name(), [&] {
    std::vector<PrimitiveArgument> arguments{input_argument(DNNL_ARG_SRC, 0, src),
                                             output_argument(DNNL_ARG_DST, 0, dst)};
    PreparedKernel prepared{.kernel = nullptr,
                            .input_layouts = std::vector<Layout>(request.inputs.size()),
                            .output_layouts = {channels_last(output)}};
    Desc bias;
    if (epilogue.bias >= 0) {
      bias = plain_desc(DType::f32, {s.o});
      arguments.push_back(input_argument(DNNL_ARG_BIAS, static_cast<std::size_t>(epilogue.bias), bias));
    }
    const auto post_ops = post_ops_of(
        epilogue,
        [&](std::size_t operand) {
          const TensorSpec& spec = request.inputs[operand];
          if (spec.shape != output.shape) return plain_desc(DType::f32, {1, s.o, 1, 1});
          prepared.input_layouts[operand] = channels_last(spec);
          return dst;
        },
        arguments);
    const auto desc =
        conv_forward(src, any_desc(DType::f32, weights_dims(s)), bias, dst, geometry_of(s), attributes(post_ops));
    arguments.push_back(input_argument(DNNL_ARG_WEIGHTS, 1, desc.weights_desc()));
    prepared.input_layouts[0] = channels_last(request.inputs[0]);
    prepared.input_layouts[1] = layout_of(request.inputs[1], desc.weights_desc());
    prepared.kernel = primitive_kernel(dnnl::convolution_forward(desc), desc, std::move(arguments));
    return prepared;
  });
}

PreparedKernel prepare_conv(Backend&, const ops::Conv2d& op, const KernelRequest& request) {
  return prepare_conv_with(op, {}, request);
}

PreparedKernel prepare_conv_backward_data(Backend&, const ops::Conv2dBackwardData& op, const KernelRequest& request) {
  const ops::ConvSizes s = op.sizes(request.inputs);
  const Desc diff_dst = channels_last_desc(request.inputs[0]);
  const Desc diff_src = channels_last_desc(request.outputs[0]);
  return guarded(op.name(), [&] {
    const auto desc =
        conv_backward_data(diff_src, any_desc(DType::f32, weights_dims(s)), diff_dst, geometry_of(s), attributes());
    return PreparedKernel{
        .kernel = primitive_kernel(
            dnnl::convolution_backward_data(desc), desc,
            {input_argument(DNNL_ARG_DIFF_DST, 0, diff_dst), input_argument(DNNL_ARG_WEIGHTS, 1, desc.weights_desc()),
             output_argument(DNNL_ARG_DIFF_SRC, 0, diff_src)}),
        .input_layouts = {channels_last(request.inputs[0]), layout_of(request.inputs[1], desc.weights_desc())},
        .output_layouts = {channels_last(request.outputs[0])}};
  });
}

PreparedKernel prepare_conv_backward_weights(Backend&, const ops::Conv2dBackwardWeights& op,
                                             const KernelRequest& request) {
  const ops::ConvSizes s = op.sizes(request.inputs);
  const Desc src = channels_last_desc(request.inputs[0]);
  const Desc diff_dst = channels_last_desc(request.inputs[1]);
  return guarded(op.name(), [&] {
    const auto desc =
        conv_backward_weights(src, any_desc(DType::f32, weights_dims(s)), diff_dst, geometry_of(s), attributes());
    return PreparedKernel{.kernel = primitive_kernel(
                              dnnl::convolution_backward_weights(desc), desc,
                              {input_argument(DNNL_ARG_SRC, 0, src), input_argument(DNNL_ARG_DIFF_DST, 1, diff_dst),
                               output_argument(DNNL_ARG_DIFF_WEIGHTS, 0, desc.diff_weights_desc())}),
                          .input_layouts = {channels_last(request.inputs[0]), channels_last(request.inputs[1])},
                          .output_layouts = {layout_of(request.outputs[0], desc.diff_weights_desc())}};
  });
}

}  // namespace concord::cpu
