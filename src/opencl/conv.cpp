// Convolution and its two gradients on OpenCL devices: one implicit product each. CONCORD_CONV=im2col takes the
// reference way instead, where no epilogue is wanted.
#include "concord/opencl/conv.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/opencl/kernels.hpp"

namespace concord::opencl {
namespace {

bool im2col_is_forced() {
  const std::optional<std::string> forced = environment("CONCORD_CONV");
  CONCORD_CHECK(!forced || *forced == "im2col" || *forced == "gemm", ArgumentError,
                "CONCORD_CONV is \"{}\"; there are gemm and im2col", *forced);
  return forced && *forced == "im2col";
}

/// The groups of dimensions of dst (N, O, …) that an epilogue's operand is read along.
std::array<std::size_t, 3> groups_of(const TensorSpec& dst) { return {1, 2, dst.shape.rank()}; }

}  // namespace

PreparedKernel prepare_conv(Context& context, const ops::Conv& op, const KernelRequest& request) {
  const ops::ConvSizes sizes = op.sizes(request.inputs);
  if (im2col_is_forced()) return prepared(request, conv_forward_im2col(context, sizes));
  return prepared(request, prepare_gemm(context, conv_forward_gemm(sizes), op.name()));
}

PreparedKernel prepare_conv_backward_data(Context& context, const ops::ConvBackwardData& op,
                                          const KernelRequest& request) {
  const ops::ConvSizes sizes = op.sizes(request.inputs);
  if (im2col_is_forced()) return prepared(request, conv_backward_data_im2col(context, sizes));
  return prepared(request, prepare_gemm(context, conv_backward_data_gemm(sizes), op.name()));
}

PreparedKernel prepare_conv_backward_weights(Context& context, const ops::ConvBackwardWeights& op,
                                             const KernelRequest& request) {
  const ops::ConvSizes sizes = op.sizes(request.inputs);
  if (im2col_is_forced()) return prepared(request, conv_backward_weights_im2col(context, sizes));
  const Gemm gemm = context.limits().is_cpu ? conv_backward_weights_transposed_gemm(context, sizes)
                                            : conv_backward_weights_gemm(sizes);
  return prepared(request, prepare_gemm(context, gemm, op.name()));
}

bool conv_accepts(const ops::Conv&, std::span<const TensorSpec>, const TensorSpec& output, const Expression& epilogue,
                  std::span<const TensorSpec> extra) {
  if (epilogue.uses_coordinates() || epilogue.results().size() != 1 || output.dtype != DType::f32) return false;
  return std::all_of(extra.begin(), extra.end(), [&](const TensorSpec& spec) {
    return grouped_strides(spec.shape, output.shape, groups_of(output)).has_value();
  });
}

PreparedKernel prepare_conv(Context& context, const ops::Conv& op, const KernelRequest& request,
                            const Epilogue& epilogue) {
  const ops::ConvSizes sizes = op.sizes(std::span(request.inputs).first(2));
  std::vector<GemmExtra> extra;
  for (std::size_t i = epilogue.first_extra; i < request.inputs.size(); ++i) {
    const std::vector<std::int64_t> strides =
        grouped_strides(request.inputs[i].shape, request.outputs[0].shape, groups_of(request.outputs[0])).value();
    extra.push_back({i, request.inputs[i].dtype, sizes.group_o() * strides[1], strides[1], strides[0], strides[2]});
  }
  Gemm gemm = conv_forward_gemm(sizes);
  gemm.epilogue = gemm_epilogue(epilogue.expression, extra);
  return prepared(request, prepare_gemm(context, gemm, op.name()));
}

}  // namespace concord::opencl
