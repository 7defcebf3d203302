// ConvProblem: a pass of a convolution as a kernel is wanted for it, and the text of its epilogue. Used by conv.cpp and
// by the implementations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

enum class ConvPass : std::uint8_t { forward, backward_data, backward_weights };

struct ConvProblem {
  ConvPass pass;
  ops::ConvSizes sizes;
  /// Inputs are (src, weights), (diff_dst, weights) or (src, diff_dst); the epilogue's follow.
  const KernelRequest& request;
  std::string_view label;              // starts the kernel's name ("conv2d")
  const Epilogue* epilogue = nullptr;  // null for none

  /// The images, and the weights, of which one is the result.
  [[nodiscard]] const TensorSpec& src() const;
  [[nodiscard]] const TensorSpec& weights() const;
  [[nodiscard]] const TensorSpec& dst() const;
  /// "conv2d (1, 3, 8, 8) * (4, 3, 3, 3) stride 1x1 … in fp32": for the log.
  [[nodiscard]] std::string str() const;
};

/// Whether the kernels below can apply an epilogue to this result: `extra` are its further operands.
[[nodiscard]] bool conv_supports_epilogue(const TensorSpec& output, const Expression& epilogue,
                                          std::span<const TensorSpec> extra);
/// The epilogue for a kernel whose z is the group, m its channel, n_outer the image and n_inner the pixel; empty for
/// none.
[[nodiscard]] EpilogueText conv_epilogue(const ConvProblem& problem);
/// The epilogue for a kernel whose m is the image and n_inner the channel, of images of one pixel.
[[nodiscard]] EpilogueText conv_epilogue_by_images(const ConvProblem& problem);
/// The epilogue for a kernel whose z is the image, m the pixel and n_outer the channel.
[[nodiscard]] EpilogueText conv_epilogue_by_pixels(const ConvProblem& problem);

}  // namespace concord::opencl
