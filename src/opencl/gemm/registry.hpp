// The list of GEMM implementations, and which of them a product takes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "concord/opencl/gemm/implementation.hpp"

namespace concord::opencl {

/// The best first: "panel" (CPUs), "scaled", "tma", "wgmma" and "mma" (NVIDIA's matrix cores), "wave" (AMD's and
/// Intel's), "tiled" (GPUs), "clblast" (dense matrices), "reference" (anything).
[[nodiscard]] std::span<const GemmImplementation* const> gemm_implementations();
/// Null where there is none of this name.
[[nodiscard]] const GemmImplementation* find_gemm_implementation(std::string_view name);
/// Their names, for messages: "panel, scaled, … and reference".
[[nodiscard]] std::string gemm_implementation_names();
/// Why the product is not computed so on this device; empty where it can be. May run a check on the device.
[[nodiscard]] std::string gemm_refusal(const GemmImplementation& one, Context& context, const Gemm& gemm);
/// Of those that refuse nothing, the one with the least expected time, the first of several. The log says at level
/// debug why each before it was not taken.
[[nodiscard]] const GemmImplementation& planned_implementation(Context& context, const Gemm& gemm);
/// The time that it is expected to take.
[[nodiscard]] double planned_seconds(Context& context, const Gemm& gemm);

}  // namespace concord::opencl
