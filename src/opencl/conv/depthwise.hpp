// The kernels of depthwise convolution for GPUs. Used by depthwise.cpp, whose own kernels compute the rest.
#pragma once

#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

/// Whether the kernels below serve: on GPUs, images without dilation, strides of 1 or 2, kernels of up to 7 × 7.
[[nodiscard]] bool conv_depthwise_strips_serve(const Context& context, const ops::ConvSizes& sizes);

[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_strips_forward(Context& context, const ops::ConvSizes& sizes,
                                                                    std::string_view label,
                                                                    const EpilogueText& epilogue);
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_strips_backward_data(Context& context, const ops::ConvSizes& sizes,
                                                                          std::string_view label);
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_strips_backward_weights(Context& context,
                                                                             const ops::ConvSizes& sizes,
                                                                             std::string_view label);

/// Whether these kernels serve.
[[nodiscard]] bool conv_is_depthwise(const ops::ConvSizes& sizes);
/// `label` starts the kernel's name ("conv2d").
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_forward(Context& context, const ops::ConvSizes& sizes,
                                                             std::string_view label, const EpilogueText& epilogue);
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_backward_data(Context& context, const ops::ConvSizes& sizes,
                                                                   std::string_view label);
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_backward_weights(Context& context, const ops::ConvSizes& sizes,
                                                                      std::string_view label);

}  // namespace concord::opencl
