// Convolutions of 3x3 with stride 1 by Winograd's F(4x4, 3x3), and their gradients by the weights by F(3x3, 4x4): a
// quarter of the multiplications, as 36 products between transforms, in fp32.
#pragma once

#include <memory>
#include <string_view>

#include "concord/opencl/conv/problem.hpp"
#include "concord/opencl/conv/winograd_tiles.hpp"

namespace concord::opencl {

// winograd.cpp
/// Why the transforms do not compute a convolution; empty where they do.
[[nodiscard]] std::string_view conv_winograd_refusal(const ops::ConvSizes& sizes, Precision precision);
/// The time that a pass is expected to take.
[[nodiscard]] double conv_winograd_seconds(Context& context, const ops::ConvSizes& sizes, ConvPass pass);

// winograd_weights.cpp
[[nodiscard]] WinogradWork winograd_weights_work(const Context& context, const ops::ConvSizes& sizes);
/// inputs src, diff_dst. `label` starts the kernel's name ("conv2d").
[[nodiscard]] std::unique_ptr<Kernel> prepare_winograd_weights(Context& context, const ops::ConvSizes& sizes,
                                                               std::string_view label);

}  // namespace concord::opencl
