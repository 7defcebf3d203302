// A convolution as one implicit GEMM: rows are channels, columns the positions of all images, batches the groups. Used
// by conv.cpp, where no other implementation is faster, and by the implementations that change an operand of it.
#pragma once

#include "concord/opencl/conv/problem.hpp"
#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// inputs src, weights.
[[nodiscard]] Gemm conv_forward_gemm(const ops::ConvSizes& sizes);
/// inputs diff_dst, weights.
[[nodiscard]] Gemm conv_backward_data_gemm(const ops::ConvSizes& sizes);
/// inputs src, diff_dst; k runs over the positions of all images.
[[nodiscard]] Gemm conv_backward_weights_gemm(const ops::ConvSizes& sizes);

/// Whether a CPU reads the patches of a data gradient as the left operand (left_patches.cpp): the image is large enough
/// that reading the weights for each is little.
[[nodiscard]] bool conv_pixels_support(const ops::ConvSizes& sizes);

/// Multiplications and additions a second on a core of a CPU: of PoCL on two cores with AVX-512.
inline constexpr double kCpuProductsASecond = 2e10;
[[nodiscard]] double multiplications(const Gemm& gemm);
/// The time that a pass is expected to take in fp32 as one GEMM, without an epilogue.
[[nodiscard]] double conv_gemm_seconds(Context& context, const ops::ConvSizes& sizes, ConvPass pass);

}  // namespace concord::opencl
