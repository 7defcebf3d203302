// Polyphase: the data gradient of a strided convolution as one product for each phase of the stride.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "concord/opencl/conv/problem.hpp"
#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Where a tap of the weights goes: into which phase's block of the workspace, of how many taps, as which of them.
using PhaseTap = std::array<std::uint32_t, 4>;  // begin in elements, taps (0: to none), number, unused
struct Polyphase {
  std::vector<Gemm>
      products;  // inputs diff_dst, weights; the left operand is in the workspace where there are several taps
  std::vector<PhaseTap> taps;
  std::size_t packed_bytes;  // of the weights by phase, at the workspace's begin
};
[[nodiscard]] Polyphase conv_polyphase(const ops::ConvSizes& sizes);
/// Why a convolution has no phases, or too many of them; empty where it has.
[[nodiscard]] std::string_view conv_polyphase_refusal(const ops::ConvSizes& sizes);
/// The data gradient by phases.
[[nodiscard]] std::unique_ptr<Kernel> prepare_polyphase(Context& context, const ConvProblem& problem,
                                                        const EpilogueText& epilogue);
/// The same of images that lie channels-last, and the layout of its weights.
struct PolyphaseBlocks {
  std::unique_ptr<Kernel> kernel;
  Layout filters;
};
[[nodiscard]] PolyphaseBlocks prepare_polyphase_blocks(Context& context, const ConvProblem& problem,
                                                       const EpilogueText& epilogue);

}  // namespace concord::opencl
