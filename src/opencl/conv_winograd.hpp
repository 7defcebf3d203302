// Convolutions of 3x3 with stride 1 by Winograd's F(4x4, 3x3): a quarter of the multiplications, as 36 products between
// transforms, in fp32. Used by conv.cpp.
#pragma once

#include <string_view>

#include "concord/opencl/gemm.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

/// Whether kernel, stride, dilation, groups and precision are such, and images flat.
[[nodiscard]] bool conv_winograd_serves(const ops::ConvSizes& sizes, Precision precision);
/// Whether a pass that serves should be faster so than by `direct`, which computes it as one product.
[[nodiscard]] bool conv_winograd_pays(Context& context, const ops::ConvSizes& sizes, const Gemm& direct);

/// inputs src, weights. `label` starts the kernel's name ("conv2d").
[[nodiscard]] std::unique_ptr<Kernel> conv_forward_winograd(Context& context, const ops::ConvSizes& sizes,
                                                            std::string_view label, const EpilogueText& epilogue);
/// inputs diff_dst, weights.
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_data_winograd(Context& context, const ops::ConvSizes& sizes,
                                                                  std::string_view label, const EpilogueText& epilogue);

}  // namespace concord::opencl
