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

// Of images that lie channels-last, depthwise_columns.cpp: by columns that go down the rows.

/// Writes the filters to the workspace as (tap, channel), in fp32; `flip` turns them from the last tap to the first.
[[nodiscard]] Stage depthwise_turn(Context& context, const ops::ConvSizes& sizes, bool flip);
/// Rows and columns of an image, or of padding.
struct ImageSizes {
  std::int64_t height, width;
};
/// The forward pass, or the data gradient of stride 1 as one over flipped filters.
[[nodiscard]] std::unique_ptr<Kernel> depthwise_columns(Context& context, const ConvProblem& problem,
                                                        const ImageSizes& source, const ImageSizes& result,
                                                        const ImageSizes& padding, const EpilogueText& epilogue);
[[nodiscard]] PreparedKernel depthwise_columns_backward_weights(Context& context, const ConvProblem& problem);

}  // namespace concord::opencl
