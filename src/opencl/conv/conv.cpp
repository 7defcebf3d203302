// Convolution and its two gradients on OpenCL devices: one implicit product each, or a direct kernel where each channel
// is convolved by itself; the data gradient of a strided one as a product for each phase; one of 3x3 by Winograd's
// transforms. CONCORD_CONV names another way: gemm one product for every convolution, phases and winograd those
// wherever they serve, im2col the reference, where no epilogue is wanted.

#include "concord/ops/conv.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/opencl/conv/as_gemm.hpp"
#include "concord/opencl/conv/channels_last.hpp"
#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/conv/depthwise_channels_last.hpp"
#include "concord/opencl/conv/im2col.hpp"
#include "concord/opencl/conv/polyphase.hpp"
#include "concord/opencl/conv/winograd.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

enum class Way { gemm, phases, winograd, depthwise, im2col };

/// What CONCORD_CONV names, where that serves.
std::optional<Way> forced_way(const ops::ConvSizes& sizes, Precision precision) {
  constexpr std::array<std::pair<std::string_view, Way>, 4> kWays{
      {{"gemm", Way::gemm}, {"phases", Way::phases}, {"winograd", Way::winograd}, {"im2col", Way::im2col}}};
  const std::optional<std::string> forced = debug_option("conv");
  if (!forced) return std::nullopt;
  const auto* const named = std::ranges::find(kWays, *forced, &std::pair<std::string_view, Way>::first);
  CONCORD_CHECK(named != kWays.end(), ArgumentError,
                "CONCORD_DEBUG: conv is \"{}\"; there are gemm, phases, winograd and im2col", *forced);
  const Way way = named->second;
  if (way == Way::winograd && !conv_winograd_serves(sizes, precision)) return Way::gemm;
  return way == Way::phases && !conv_phases_serve(sizes) ? Way::gemm : way;
}

bool by_itself(const Context& context, const ops::ConvSizes& sizes) {
  return conv_is_depthwise(sizes) && context.variants().takes(variant::kDepthwise, true);
}

bool by_winograd(Context& context, const ops::ConvSizes& sizes, Precision precision, ConvPass pass) {
  return conv_winograd_serves(sizes, precision) &&
         context.variants().takes(variant::kWinograd, conv_winograd_pays(context, sizes, pass));
}

Way way_of(Context& context, const ops::ConvSizes& sizes, Precision precision) {
  if (const std::optional<Way> forced = forced_way(sizes, precision)) return *forced;
  if (by_itself(context, sizes)) return Way::depthwise;
  return by_winograd(context, sizes, precision, ConvPass::forward) ? Way::winograd : Way::gemm;
}

Way way_of_data_gradient(Context& context, const ops::ConvSizes& sizes, Precision precision) {
  if (const std::optional<Way> forced = forced_way(sizes, precision)) return *forced;
  if (by_itself(context, sizes)) return Way::depthwise;
  if (by_winograd(context, sizes, precision, ConvPass::backward_data)) return Way::winograd;
  const bool phases =
      conv_phases_serve(sizes) && context.variants().takes(variant::kPhases, conv_phases_pay(context, sizes));
  return phases ? Way::phases : Way::gemm;
}

Way way_of_weights_gradient(Context& context, const ops::ConvSizes& sizes, Precision precision) {
  if (const std::optional<Way> forced = forced_way(sizes, precision)) return *forced;
  if (by_itself(context, sizes)) return Way::depthwise;
  return by_winograd(context, sizes, precision, ConvPass::backward_weights) ? Way::winograd : Way::gemm;
}

bool by_pixels(const Context& context, const ops::ConvSizes& sizes) {
  return context.limits().is_cpu && conv_pixels_serve(sizes);
}

Gemm data_gradient_gemm(Context& context, const ops::ConvSizes& sizes) {
  return by_pixels(context, sizes) ? conv_backward_data_pixels_gemm(context, sizes) : conv_backward_data_gemm(sizes);
}

PreparedKernel product(Context& context, Gemm gemm, const Operator& op, const KernelRequest& request) {
  gemm.precision = request.precision;
  return prepared(request, prepare_gemm(context, gemm, op.name()));
}

/// The groups of dimensions of dst (N, O, …) that an epilogue's operand is read along.
std::array<std::size_t, 3> groups_of(const TensorSpec& dst) { return {1, 2, dst.shape.rank()}; }

PreparedKernel prepare_conv(Context& context, const ops::Conv& op, const KernelRequest& request) {
  const ops::ConvSizes sizes = op.sizes(request.inputs);
  if (auto kernel = conv_forward_channels_last(context, sizes, request, op.name(), nullptr)) return *std::move(kernel);
  switch (way_of(context, sizes, request.precision)) {
    case Way::im2col: return prepared(request, conv_forward_im2col(context, sizes));
    case Way::winograd: return prepared(request, conv_forward_winograd(context, sizes, op.name(), {}));
    case Way::depthwise: return prepared(request, conv_depthwise_forward(context, sizes, op.name(), {}));
    default: return product(context, conv_forward_gemm(sizes), op, request);
  }
}

PreparedKernel prepare_conv_backward_data(Context& context, const ops::ConvBackwardData& op,
                                          const KernelRequest& request) {
  const ops::ConvSizes sizes = op.sizes(request.inputs);
  if (auto kernel = conv_backward_data_channels_last(context, sizes, request, op.name(), nullptr)) {
    return *std::move(kernel);
  }
  switch (way_of_data_gradient(context, sizes, request.precision)) {
    case Way::im2col: return prepared(request, conv_backward_data_im2col(context, sizes));
    case Way::winograd: return prepared(request, conv_backward_data_winograd(context, sizes, op.name(), {}));
    case Way::depthwise: return prepared(request, conv_depthwise_backward_data(context, sizes, op.name()));
    case Way::phases:
      return prepared(request, conv_backward_data_by_phases(context, sizes, request.precision, op.name(), {}));
    default: return product(context, data_gradient_gemm(context, sizes), op, request);
  }
}

PreparedKernel prepare_conv_backward_weights(Context& context, const ops::ConvBackwardWeights& op,
                                             const KernelRequest& request) {
  const ops::ConvSizes sizes = op.sizes(request.inputs);
  if (auto kernel = conv_backward_weights_channels_last(context, sizes, request, op.name())) return *std::move(kernel);
  const Way way = way_of_weights_gradient(context, sizes, request.precision);
  if (way == Way::im2col) return prepared(request, conv_backward_weights_im2col(context, sizes));
  if (way == Way::depthwise) return prepared(request, conv_depthwise_backward_weights(context, sizes, op.name()));
  if (way == Way::winograd) return prepared(request, conv_backward_weights_winograd(context, sizes, op.name()));
  return product(context,
                 context.limits().is_cpu ? conv_backward_weights_transposed_gemm(context, sizes)
                                         : conv_backward_weights_gemm(sizes),
                 op, request);
}

bool takes_epilogue(const TensorSpec& output, const Expression& epilogue, std::span<const TensorSpec> extra) {
  if (epilogue.uses_coordinates() || epilogue.results().size() != 1 || output.dtype != DType::f32) return false;
  return std::all_of(extra.begin(), extra.end(), [&](const TensorSpec& spec) {
    return grouped_strides(spec.shape, output.shape, groups_of(output)).has_value();
  });
}

/// The epilogue with operand i, of strides along images, channels and pixels, read as `extra_of` (i, strides) says.
template <class Extra>
EpilogueText epilogue_text(const KernelRequest& request, const Epilogue& epilogue, const Extra& extra_of) {
  std::vector<EpilogueOperand> extra;
  for (std::size_t i = epilogue.first_extra; i < request.inputs.size(); ++i) {
    extra.push_back(extra_of(
        i, grouped_strides(request.inputs[i].shape, request.outputs[0].shape, groups_of(request.outputs[0])).value()));
  }
  return gemm_epilogue(epilogue.expression, extra);
}

/// `channels` of the result are in a group.
EpilogueText epilogue_text(const KernelRequest& request, const Epilogue& epilogue, std::int64_t channels) {
  return epilogue_text(request, epilogue, [&](std::size_t i, const std::vector<std::int64_t>& strides) {
    return EpilogueOperand{i, request.inputs[i].dtype, channels * strides[1], strides[1], strides[0], strides[2]};
  });
}

/// Of a product by pixels.
EpilogueText epilogue_text_by_pixels(const KernelRequest& request, const Epilogue& epilogue) {
  return epilogue_text(request, epilogue, [&](std::size_t i, const std::vector<std::int64_t>& strides) {
    return EpilogueOperand{i, request.inputs[i].dtype, strides[0], strides[2], strides[1], 0};
  });
}

bool conv_accepts(const ops::Conv&, std::span<const TensorSpec>, const TensorSpec& output, const Expression& epilogue,
                  std::span<const TensorSpec> extra) {
  return takes_epilogue(output, epilogue, extra);
}

PreparedKernel prepare_fused_conv(Context& context, const ops::Conv& op, const KernelRequest& request,
                                  const Epilogue& epilogue) {
  const ops::ConvSizes sizes = op.sizes(std::span(request.inputs).first(2));
  if (auto kernel = conv_forward_channels_last(context, sizes, request, op.name(), &epilogue)) {
    return *std::move(kernel);
  }
  const EpilogueText text = epilogue_text(request, epilogue, sizes.group_o());
  const Way way = way_of(context, sizes, request.precision);
  if (way == Way::depthwise) return prepared(request, conv_depthwise_forward(context, sizes, op.name(), text));
  if (way == Way::winograd) return prepared(request, conv_forward_winograd(context, sizes, op.name(), text));
  Gemm gemm = conv_forward_gemm(sizes);
  gemm.epilogue = text;
  return product(context, gemm, op, request);
}

bool conv_backward_data_accepts(const ops::ConvBackwardData& op, std::span<const TensorSpec> inputs,
                                const TensorSpec& output, const Expression& epilogue,
                                std::span<const TensorSpec> extra) {
  return !conv_is_depthwise(op.sizes(inputs)) && takes_epilogue(output, epilogue, extra);
}

PreparedKernel prepare_fused_conv_backward_data(Context& context, const ops::ConvBackwardData& op,
                                                const KernelRequest& request, const Epilogue& epilogue) {
  const ops::ConvSizes sizes = op.sizes(std::span(request.inputs).first(2));
  if (auto kernel = conv_backward_data_channels_last(context, sizes, request, op.name(), &epilogue)) {
    return *std::move(kernel);
  }
  const EpilogueText text = epilogue_text(request, epilogue, sizes.group_c());
  const Way way = way_of_data_gradient(context, sizes, request.precision);
  if (way == Way::winograd) return prepared(request, conv_backward_data_winograd(context, sizes, op.name(), text));
  if (way == Way::phases) {
    return prepared(request, conv_backward_data_by_phases(context, sizes, request.precision, op.name(), text));
  }
  Gemm gemm = data_gradient_gemm(context, sizes);
  gemm.epilogue = by_pixels(context, sizes) ? epilogue_text_by_pixels(request, epilogue) : text;
  return product(context, gemm, op, request);
}

}  // namespace

void add_conv(Kernels& kernels) {
  kernels.add<ops::Conv, prepare_conv>();
  kernels.add<ops::ConvBackwardData, prepare_conv_backward_data>();
  kernels.add<ops::ConvBackwardWeights, prepare_conv_backward_weights>();
  kernels.add_fused<ops::Conv, conv_accepts, prepare_fused_conv>();
  kernels.add_fused<ops::ConvBackwardData, conv_backward_data_accepts, prepare_fused_conv_backward_data>();
}

}  // namespace concord::opencl
