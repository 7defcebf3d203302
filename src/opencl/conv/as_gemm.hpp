// The passes of a convolution as products: rows are channels, columns are positions of all images, batches are groups.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

/// inputs src, weights.
[[nodiscard]] Gemm conv_forward_gemm(const ops::ConvSizes& sizes);
/// inputs diff_dst, weights.
[[nodiscard]] Gemm conv_backward_data_gemm(const ops::ConvSizes& sizes);
/// inputs src, diff_dst; k runs over the positions of all images.
[[nodiscard]] Gemm conv_backward_weights_gemm(const ops::ConvSizes& sizes);
/// The same with rows and columns exchanged and src padded first, so that patches are the left operand, which CPUs read
/// element by element: nothing is gathered.
[[nodiscard]] Gemm conv_backward_weights_transposed_gemm(Context& context, const ops::ConvSizes& sizes);

/// For CPUs, the data gradient likewise: rows are pixels of an image, columns channels, batches images; diff_dst is
/// padded first. A fused operand is then read along (image, pixel, channel).
[[nodiscard]] Gemm conv_backward_data_pixels_gemm(Context& context, const ops::ConvSizes& sizes);
/// Whether it can be computed so, with images large enough that reading the weights for each of them is little.
[[nodiscard]] bool conv_pixels_serve(const ops::ConvSizes& sizes);

}  // namespace concord::opencl
