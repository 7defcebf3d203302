// Convolutions of 3x3 with stride 1 by Winograd's F(4x4, 3x3), and their gradients by the weights by F(3x3, 4x4): a
// quarter of the multiplications, as 36 products between transforms, in fp32. Used by conv.cpp.
#pragma once

#include <string_view>

#include "concord/opencl/conv/winograd_tiles.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

// winograd.cpp
enum class ConvPass : std::uint8_t { forward, backward_data, backward_weights };
/// Whether kernel, stride, padding, dilation, groups and precision are such, and images flat.
[[nodiscard]] bool conv_winograd_serves(const ops::ConvSizes& sizes, Precision precision);
/// Whether a pass that serves should be faster so than as one product.
[[nodiscard]] bool conv_winograd_pays(Context& context, const ops::ConvSizes& sizes, ConvPass pass);

/// inputs src, weights. `label` starts the kernel's name ("conv2d").
[[nodiscard]] std::unique_ptr<Kernel> conv_forward_winograd(Context& context, const ops::ConvSizes& sizes,
                                                            std::string_view label, const EpilogueText& epilogue);
/// inputs diff_dst, weights.
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_data_winograd(Context& context, const ops::ConvSizes& sizes,
                                                                  std::string_view label, const EpilogueText& epilogue);

// winograd_weights.cpp
[[nodiscard]] WinogradWork conv_backward_weights_winograd_work(const Context& context, const ops::ConvSizes& sizes);
/// inputs src, diff_dst.
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_weights_winograd(Context& context, const ops::ConvSizes& sizes,
                                                                     std::string_view label);

}  // namespace concord::opencl
