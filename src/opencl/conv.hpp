// The ways to compute the passes of a convolution: as one implicit product over patches; channel by channel where each
// has kernels of its own; patch by patch through im2col and CLBlast. Used by conv.cpp.
#pragma once

#include "concord/opencl/gemm.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

// conv_gemm.cpp: rows are channels, columns are positions of all images, batches are groups.
/// inputs src, weights.
[[nodiscard]] Gemm conv_forward_gemm(const ops::ConvSizes& sizes);
/// inputs diff_dst, weights.
[[nodiscard]] Gemm conv_backward_data_gemm(const ops::ConvSizes& sizes);
/// inputs src, diff_dst; k runs over the positions of all images.
[[nodiscard]] Gemm conv_backward_weights_gemm(const ops::ConvSizes& sizes);
/// The same with rows and columns exchanged and src padded first, so that patches are the left operand, which CPUs read
/// element by element: nothing is gathered.
[[nodiscard]] Gemm conv_backward_weights_transposed_gemm(Context& context, const ops::ConvSizes& sizes);

// conv_depthwise.cpp: each channel by itself.
/// Whether these kernels serve.
[[nodiscard]] bool conv_is_depthwise(const ops::ConvSizes& sizes);
/// `label` starts the kernel's name ("conv2d").
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_forward(Context& context, const ops::ConvSizes& sizes,
                                                             std::string_view label, const EpilogueText& epilogue);
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_backward_data(Context& context, const ops::ConvSizes& sizes,
                                                                   std::string_view label);
[[nodiscard]] std::unique_ptr<Kernel> conv_depthwise_backward_weights(Context& context, const ops::ConvSizes& sizes,
                                                                      std::string_view label);

// conv_im2col.cpp: the reference, image by image and group by group.
[[nodiscard]] std::unique_ptr<Kernel> conv_forward_im2col(Context& context, const ops::ConvSizes& sizes);
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_data_im2col(Context& context, const ops::ConvSizes& sizes);
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_weights_im2col(Context& context, const ops::ConvSizes& sizes);

}  // namespace concord::opencl
