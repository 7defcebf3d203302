// Depthwise convolutions: those whose channels are each convolved by themselves. Used by depthwise.cpp, whose own
// kernels compute what those of depthwise_strips.cpp do not.
#pragma once

#include <memory>
#include <string_view>

#include "concord/opencl/conv/problem.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

/// Whether it is one, of a size that the kernels can index.
[[nodiscard]] bool conv_is_depthwise(const ops::ConvSizes& sizes);

/// Whether the kernels in strips compute it: on GPUs, images without dilation, strides of 1 or 2, kernels of up to
/// 7 x 7.
[[nodiscard]] bool depthwise_strips_support(const Context& context, const ops::ConvSizes& sizes);
/// `label` starts the kernel's name ("conv2d").
[[nodiscard]] std::unique_ptr<Kernel> depthwise_strips_forward(Context& context, const ops::ConvSizes& sizes,
                                                               std::string_view label, const EpilogueText& epilogue);
[[nodiscard]] std::unique_ptr<Kernel> depthwise_strips_backward_data(Context& context, const ops::ConvSizes& sizes,
                                                                     std::string_view label,
                                                                     const EpilogueText& epilogue);
[[nodiscard]] std::unique_ptr<Kernel> depthwise_strips_backward_weights(Context& context, const ops::ConvSizes& sizes,
                                                                        std::string_view label);

/// The gradient of the filters where both images lie channels-last (depthwise_columns.cpp).
[[nodiscard]] PreparedKernel prepare_depthwise_columns(Context& context, const ConvProblem& problem);

}  // namespace concord::opencl
