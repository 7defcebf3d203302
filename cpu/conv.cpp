// Convolution and its gradients through oneDNN. Images are channels-last, which its AVX-512 kernels are fastest with
// for few channels and pass on without padding; weights take the format the chosen implementation asks for. With bf16
// units images and weights are bf16, and gradients of weights fp32.
#include "concord/ops/conv.hpp"

#include <algorithm>

#include "epilogue.hpp"
#include "kernels.hpp"
#include "onednn_faults.hpp"

namespace concord::cpu {
namespace {

// The last `rank` numbers.
Dims spatial_dims(const ops::Spatial& values, std::size_t rank) {
  return {values.end() - static_cast<std::ptrdiff_t>(rank), values.end()};
}

ConvGeometry geometry_of(const ops::ConvSizes& s) {
  const auto& o = s.options;
  ops::Spatial dilation = o.dilation;
  for (std::int64_t& distance : dilation) --distance;
  // oneDNN rounds the size of its output down, as we do.
  return {.stride = spatial_dims(o.stride, o.rank),
          .dilation = spatial_dims(dilation, o.rank),
          .padding_before = spatial_dims(o.padding, o.rank),
          .padding_after = spatial_dims(o.padding_after, o.rank)};
}

// (O, C/groups, k…), with the groups as a dimension of their own where there are several.
Dims weights_dims(const ops::ConvSizes& s) {
  const Dims kernel = spatial_dims({s.kd, s.kh, s.kw}, s.options.rank);
  Dims dims{s.o, s.c};
  if (s.options.groups != 1) dims = {s.options.groups, s.group_o(), s.group_c()};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return dims;
}

/// The operand of the result's shape that the epilogue adds before everything else but a bias, or -1. oneDNN's kernels
/// add what lies in their output as they write it; few of them read another image beside it, and these are slow. Later
/// in a chain the sum of oneDNN 2.6's products of patches crashes. An operand that is read twice stays where it is.
int added_in_place(const Epilogue& epilogue, const KernelRequest& request) {
  if (epilogue.steps.empty()) return -1;
  const EpilogueStep& first = epilogue.steps.front();
  const bool is_image = first.algorithm == dnnl::algorithm::binary_add && first.operand >= 0 &&
                        request.inputs[static_cast<std::size_t>(first.operand)].shape == request.outputs[0].shape;
  const bool is_read_once = std::ranges::count(epilogue.steps, first.operand, &EpilogueStep::operand) == 1;
  return is_image && is_read_once ? first.operand : -1;
}

/// `in_place`: the operand that the primitive adds to its output, or -1.
PreparedKernel conv_stored_as(DType stored, const ops::Conv& op, const Epilogue& epilogue, const KernelRequest& request,
                              int in_place) {
  const ops::ConvSizes s = op.sizes(request.inputs);
  const TensorSpec& output = request.outputs[0];
  const Desc src = channels_last_desc(stored_as(request.inputs[0], stored));
  const Desc dst = channels_last_desc(stored_as(output, stored));
  return guarded(request.op->name(), [&] {
    std::vector<PrimitiveArgument> arguments{input_argument(DNNL_ARG_SRC, 0, src),
                                             output_argument(DNNL_ARG_DST, 0, dst)};
    PreparedKernel prepared{.kernel = nullptr,
                            .input_layouts = std::vector<Layout>(request.inputs.size()),
                            .output_layouts = {channels_last(output, stored)}};
    Desc bias;
    if (epilogue.bias >= 0) {
      bias = plain_desc(DType::f32, {s.o});
      arguments.push_back(input_argument(DNNL_ARG_BIAS, static_cast<std::size_t>(epilogue.bias), bias));
    }
    const auto post_ops = post_ops_of(
        epilogue,
        [&](std::size_t operand) {
          const TensorSpec& spec = request.inputs[operand];
          if (spec.shape != output.shape) {
            Dims channels(output.shape.rank(), 1);
            channels[1] = s.o;
            return plain_desc(DType::f32, channels);
          }
          prepared.input_layouts[operand] = channels_last(spec, stored);
          return dst;
        },
        arguments, in_place);
    if (in_place >= 0) prepared.input_layouts[static_cast<std::size_t>(in_place)] = channels_last(output, stored);
    const auto desc = conv_forward(src, any_desc(stored, weights_dims(s)), bias, dst, geometry_of(s),
                                   attributes(post_ops, request.precision));
    if (in_place >= 0 && is_faulty_sum(desc.impl_info_str(), s.o)) {
      return conv_stored_as(stored, op, epilogue, request, -1);
    }
    arguments.push_back(input_argument(DNNL_ARG_WEIGHTS, 1, desc.weights_desc()));
    prepared.input_layouts[0] = channels_last(request.inputs[0], stored);
    prepared.input_layouts[1] = layout_of(request.inputs[1], desc.weights_desc());
    prepared.kernel = primitive_kernel(dnnl::convolution_forward(desc), desc, std::move(arguments));
    if (in_place >= 0) {
      prepared.kernel = adding_to(std::move(prepared.kernel), static_cast<std::size_t>(in_place), dst.get_size());
      prepared.overwrites = in_place;
    }
    return prepared;
  });
}

PreparedKernel conv_backward_data_stored_as(DType stored, const ops::ConvBackwardData& op,
                                            const KernelRequest& request) {
  const ops::ConvSizes s = op.sizes(request.inputs);
  const Desc diff_dst = channels_last_desc(stored_as(request.inputs[0], stored));
  const Desc diff_src = channels_last_desc(stored_as(request.outputs[0], stored));
  return guarded(op.name(), [&] {
    const auto desc = conv_backward_data(diff_src, any_desc(stored, weights_dims(s)), diff_dst, geometry_of(s),
                                         attributes({}, request.precision));
    return PreparedKernel{
        .kernel = primitive_kernel(
            dnnl::convolution_backward_data(desc), desc,
            {input_argument(DNNL_ARG_DIFF_DST, 0, diff_dst), input_argument(DNNL_ARG_WEIGHTS, 1, desc.weights_desc()),
             output_argument(DNNL_ARG_DIFF_SRC, 0, diff_src)}),
        .input_layouts = {channels_last(request.inputs[0], stored), layout_of(request.inputs[1], desc.weights_desc())},
        .output_layouts = {channels_last(request.outputs[0], stored)}};
  });
}

/// The gradient of weights is fp32.
PreparedKernel conv_backward_weights_stored_as(DType stored, const ops::ConvBackwardWeights& op,
                                               const KernelRequest& request) {
  const ops::ConvSizes s = op.sizes(request.inputs);
  const Desc src = channels_last_desc(stored_as(request.inputs[0], stored));
  const Desc diff_dst = channels_last_desc(stored_as(request.inputs[1], stored));
  return guarded(op.name(), [&] {
    const auto desc = conv_backward_weights(
        src, any_desc(DType::f32, weights_dims(s)), diff_dst, geometry_of(s), attributes({}, request.precision),
        [&](std::string_view implementation) { return !is_faulty_backward_weights(implementation, s); });
    return PreparedKernel{
        .kernel =
            primitive_kernel(dnnl::convolution_backward_weights(desc), desc,
                             {input_argument(DNNL_ARG_SRC, 0, src), input_argument(DNNL_ARG_DIFF_DST, 1, diff_dst),
                              output_argument(DNNL_ARG_DIFF_WEIGHTS, 0, desc.diff_weights_desc())}),
        .input_layouts = {channels_last(request.inputs[0], stored), channels_last(request.inputs[1], stored)},
        .output_layouts = {layout_of(request.outputs[0], desc.diff_weights_desc())}};
  });
}

}  // namespace

PreparedKernel prepare_conv_with(const ops::Conv& op, const Epilogue& epilogue, const KernelRequest& request) {
  const bool is_faulty = is_faulty_in_bf16(op.sizes(request.inputs));
  return in_narrowest_type(is_faulty ? Precision::fp32 : request.precision, [&](DType stored) {
    return conv_stored_as(stored, op, epilogue, request, added_in_place(epilogue, request));
  });
}

namespace {

PreparedKernel prepare_conv(Backend&, const ops::Conv& op, const KernelRequest& request) {
  return prepare_conv_with(op, {}, request);
}

PreparedKernel prepare_conv_backward_data(Backend&, const ops::ConvBackwardData& op, const KernelRequest& request) {
  const bool is_faulty = is_faulty_in_bf16(op.sizes(request.inputs));
  return in_narrowest_type(is_faulty ? Precision::fp32 : request.precision,
                           [&](DType stored) { return conv_backward_data_stored_as(stored, op, request); });
}

PreparedKernel prepare_conv_backward_weights(Backend&, const ops::ConvBackwardWeights& op,
                                             const KernelRequest& request) {
  const bool is_faulty = is_faulty_backward_weights_in_bf16(op.sizes(request.inputs));
  return in_narrowest_type(is_faulty ? Precision::fp32 : request.precision,
                           [&](DType stored) { return conv_backward_weights_stored_as(stored, op, request); });
}

}  // namespace

void add_conv(Kernels& kernels) {
  kernels.add<ops::Conv, by_onednn<ops::Conv, prepare_conv>>();
  kernels.add<ops::ConvBackwardData, by_onednn<ops::ConvBackwardData, prepare_conv_backward_data>>();
  kernels.add<ops::ConvBackwardWeights, by_onednn<ops::ConvBackwardWeights, prepare_conv_backward_weights>>();
}

}  // namespace concord::cpu
