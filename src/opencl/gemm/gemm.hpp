// The kernel for a product, and the list of the implementations that it is chosen from. Used by matmul, convolutions,
// recurrent layers and the tuner.
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

/// The kernel for a product: the implementation that the option gemm of CONCORD_DEBUG names where that accepts it;
/// the choice that a tuning table holds (tuning/table.hpp) where it serves; else the planned one. `label` starts the
/// kernel's name ("matmul").
[[nodiscard]] std::unique_ptr<Kernel> prepare_gemm(Context& context, const Gemm& gemm, std::string_view label);

/// The kernel that the choice names. Null where there is no such implementation or tiling, or where it refuses.
[[nodiscard]] std::unique_ptr<Kernel> prepare_choice(Context& context, const Gemm& gemm, const GemmChoice& choice,
                                                     std::string_view label);

/// A product as launches of a larger kernel. Where k is cut, what a part gives stays apart: the launch that reads the
/// product adds up `parts` matrices, each (batch, m, n).
struct PartialProduct {
  std::vector<StagedKernel::AnyStage> stages;
  BufferArgument result;  // in the workspace
  std::int64_t parts;
  std::size_t workspace;  // bytes in all
};
/// gemm.c and the begin of the workspace are this function's to choose; no epilogue.
[[nodiscard]] PartialProduct prepare_partial_gemm(Context& context, Gemm gemm, std::string_view label);

/// The best first: "panel" (CPUs), "scaled", "tma", "wgmma" and "mma" (NVIDIA's matrix cores), "wave" (AMD's and
/// Intel's), "tiled" (GPUs), "clblast" (dense matrices), "reference" (anything).
[[nodiscard]] std::span<const GemmImplementation* const> gemm_implementations();
/// Null where there is none of this name.
[[nodiscard]] const GemmImplementation* find_gemm_implementation(std::string_view name);
/// Why the product is not computed so on this device; empty where it can be. May run a check on the device.
[[nodiscard]] std::string gemm_refusal(const GemmImplementation& one, Context& context, const Gemm& gemm);
/// Of those that refuse nothing, the one with the least expected time, the first of several. The log says at level
/// debug why each before it was not taken.
[[nodiscard]] const GemmImplementation& planned_implementation(Context& context, const Gemm& gemm);
/// The time that it is expected to take.
[[nodiscard]] double planned_seconds(Context& context, const Gemm& gemm);

}  // namespace concord::opencl
