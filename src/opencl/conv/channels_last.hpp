// What convolutions on images that lie channels-last (formula/channels_last.hpp) have in common. Used by
// channels_last.cpp and row_unrolled.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "concord/opencl/conv/problem.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Whether an image has so few channels that it is to be row-unrolled.
[[nodiscard]] bool has_few_channels(const ops::ConvSizes& sizes);

/// Why the images of a convolution with whole blocks of channels do not lie so, or its kernel does not finish them so;
/// empty where they do. All three passes answer alike, but for their epilogues.
[[nodiscard]] std::string_view channels_last_refusal(const Context& context, const ConvProblem& problem);
[[nodiscard]] std::string_view channels_last_device_refusal(Context& context, const ConvProblem& problem);
/// 0 where the convolution is large enough for matrix cores, else infinite.
[[nodiscard]] double channels_last_seconds(Context& context, const ConvProblem& problem);

/// The epilogue of a GEMM whose result lies so, or row-major where its channels are no whole blocks; empty for none.
[[nodiscard]] EpilogueText channels_last_epilogue(const ConvProblem& problem);
/// The product that makes a gradient of weights of two images that lie so, as the weights lie; nothing where it is made
/// otherwise.
[[nodiscard]] std::optional<Gemm> channels_last_weights_product(Context& context, const ConvProblem& problem);

/// The kernel with the layouts that it takes and gives; `filters` is that of the weights, if it reads them.
[[nodiscard]] PreparedKernel prepared_channels_last(const ConvProblem& problem, std::unique_ptr<Kernel> kernel,
                                                    const Layout& filters = nullptr);

}  // namespace concord::opencl
