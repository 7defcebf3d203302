// The conditions of 16-bit storage.
#include "concord/opencl/gemm/channels_last.hpp"

#include <string>

#include "concord/core/debug_options.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/alternatives.hpp"

namespace concord::opencl {

const GemmImplementation& tma_gemm() { return *find_gemm_implementation("tma"); }

std::string_view storage_refusal(const Context& context, Precision precision) {
  if (precision != Precision::bf16 && precision != Precision::fp16) return "the precision has no 16 bits";
  if (debug_choice("storage", {"fp32"})) return "CONCORD_DEBUG stores values in fp32";
  OpenClAlternatives& alternatives = context.alternatives();
  const bool is_other_preferred = alternatives.preferred(alternative::kProduct).value_or("tma") != "tma";
  if (debug_option("gemm") || is_other_preferred) return "another GEMM is asked for";
  if (!alternatives.is_enabled(std::string(alternative::kProduct) + "tma")) return "its GEMM, tma, is disabled";
  if (!alternatives.is_enabled(alternative::kChannelsLast)) return "the layout is disabled";
  return context.limits().is_nvidia ? std::string_view{} : "it is for NVIDIA's GPUs";
}

}  // namespace concord::opencl
