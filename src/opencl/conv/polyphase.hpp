// The data gradient of a strided convolution as one product for each phase of the stride.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

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

}  // namespace concord::opencl
