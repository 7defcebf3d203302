// The kernel for a matrix multiplication, and the list of GEMM implementations. Used by matmul, convolutions, recurrent
// layers and the tuner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

struct GemmChoice;

/// The kernel for a matrix multiplication: the implementation that the option gemm of CONCORD_DEBUG names, if it
/// supports the problem; else the choice of a tuning table (tuning/table.hpp), if it is usable; else the planned
/// implementation. The kernel's name starts with `label` ("matmul").
[[nodiscard]] std::unique_ptr<Kernel> prepare_gemm(Context& context, const Gemm& gemm, std::string_view label);

/// The kernel of this choice. Null where the implementation or tiling does not exist or does not support the problem.
[[nodiscard]] std::unique_ptr<Kernel> prepare_choice(Context& context, const Gemm& gemm, const GemmChoice& choice,
                                                     std::string_view label);

/// A matrix multiplication as launches of a larger kernel. The parts of a split k stay separate: the launch that reads
/// the result adds up `parts` matrices, each (batch, m, n).
struct PartialProduct {
  std::vector<StagedKernel::AnyStage> stages;
  BufferArgument result;  // in the workspace
  std::int64_t parts;
  std::size_t workspace;  // bytes in all
};
/// This function sets gemm.c and uses the begin of the workspace. It applies no epilogue.
[[nodiscard]] PartialProduct prepare_partial_gemm(Context& context, Gemm gemm, std::string_view label);

/// The best first: "panel" (CPUs), "scaled", "tma", "wgmma" and "mma" (NVIDIA's matrix cores), "wave" (AMD's and
/// Intel's), "tiled", "sliced" and "lanes" (GPUs), "direct" (small ones on NVIDIA's), "clblast" (dense matrices), "reference"
/// (anything).
[[nodiscard]] std::span<const GemmImplementation* const> gemm_implementations();
/// Null where there is no implementation of this name.
[[nodiscard]] const GemmImplementation* find_gemm_implementation(std::string_view name);
/// Why the implementation does not support the matrix multiplication on this device; empty where it does. May run a
/// check on the device.
[[nodiscard]] std::string gemm_refusal(const GemmImplementation& one, Context& context, const Gemm& gemm);
/// The implementation with the least expected time among those that support the problem; the first of equals. Logs, at
/// level debug, the reason against each earlier one.
[[nodiscard]] const GemmImplementation& planned_implementation(Context& context, const Gemm& gemm);
/// The expected time of the planned implementation.
[[nodiscard]] double planned_seconds(Context& context, const Gemm& gemm);

}  // namespace concord::opencl
