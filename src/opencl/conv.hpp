// The ways to compute the passes of a convolution: as one implicit product over patches; channel by channel where each
// has kernels of its own; patch by patch through im2col and CLBlast. Used by conv.cpp.
#pragma once

#include <optional>
#include <string_view>

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

/// For CPUs, the data gradient likewise: rows are pixels of an image, columns channels, batches images; diff_dst is
/// padded first. A fused operand is then read along (image, pixel, channel).
[[nodiscard]] Gemm conv_backward_data_pixels_gemm(Context& context, const ops::ConvSizes& sizes);
/// Whether it can be computed so, with images large enough that reading the weights for each of them is little.
[[nodiscard]] bool conv_pixels_serve(const ops::ConvSizes& sizes);

// conv_phases.cpp: the data gradient of a strided convolution as one product for each phase of the stride.
/// Where a tap of the weights goes: into which phase's block of the workspace, of how many taps, as which of them.
using PhaseTap = std::array<std::uint32_t, 4>;  // begin in elements, taps (0: to none), number, unused
struct ConvPhases {
  std::vector<Gemm>
      products;  // inputs diff_dst, weights; the left operand is in the workspace where there are several taps
  std::vector<PhaseTap> taps;
  std::size_t packed_bytes;  // of the weights by phase, at the workspace's begin
};
[[nodiscard]] ConvPhases conv_backward_data_phases(const ops::ConvSizes& sizes);
/// Whether there are phases, and not too many of them.
[[nodiscard]] bool conv_phases_serve(const ops::ConvSizes& sizes);
/// Whether they should be faster than one product with zeros in it.
[[nodiscard]] bool conv_phases_pay(const Context& context, const ops::ConvSizes& sizes);
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_data_by_phases(Context& context, const ops::ConvSizes& sizes,
                                                                   Precision precision, std::string_view label,
                                                                   const EpilogueText& epilogue,
                                                                   bool channels_last = false);

// conv_lines.cpp: images with few channels, unrolled along their lines into images that lie channels-last.
[[nodiscard]] bool conv_lines_serve(const ops::ConvSizes& sizes);
[[nodiscard]] Gemm conv_lines_forward_gemm(Context& context, const ops::ConvSizes& sizes, Precision precision);
/// The product, and the launch after it.
struct ConvLinesGradient {
  Gemm gemm;
  Stage last;
};
[[nodiscard]] ConvLinesGradient conv_lines_backward_weights_gemm(Context& context, const ops::ConvSizes& sizes,
                                                                 Precision precision);

// conv_channels_last.cpp: the passes on images that lie channels-last; nothing where these do not serve. `epilogue` may
// be null.
[[nodiscard]] std::optional<PreparedKernel> conv_forward_channels_last(Context& context, const ops::ConvSizes& sizes,
                                                                       const KernelRequest& request,
                                                                       std::string_view label,
                                                                       const Epilogue* epilogue);
[[nodiscard]] std::optional<PreparedKernel> conv_backward_data_channels_last(Context& context,
                                                                             const ops::ConvSizes& sizes,
                                                                             const KernelRequest& request,
                                                                             std::string_view label,
                                                                             const Epilogue* epilogue);
[[nodiscard]] std::optional<PreparedKernel> conv_backward_weights_channels_last(Context& context,
                                                                                const ops::ConvSizes& sizes,
                                                                                const KernelRequest& request,
                                                                                std::string_view label);

// conv_depthwise_channels_last.cpp: likewise where each channel is convolved by itself and an image lies so.
[[nodiscard]] std::optional<PreparedKernel> conv_depthwise_forward_channels_last(Context& context,
                                                                                 const ops::ConvSizes& sizes,
                                                                                 const KernelRequest& request,
                                                                                 std::string_view label,
                                                                                 const Epilogue* epilogue);
[[nodiscard]] std::optional<PreparedKernel> conv_depthwise_backward_data_channels_last(Context& context,
                                                                                       const ops::ConvSizes& sizes,
                                                                                       const KernelRequest& request,
                                                                                       std::string_view label);
[[nodiscard]] std::optional<PreparedKernel> conv_depthwise_backward_weights_channels_last(Context& context,
                                                                                          const ops::ConvSizes& sizes,
                                                                                          const KernelRequest& request,
                                                                                          std::string_view label);

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
