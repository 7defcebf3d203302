// The kernel for a product: the implementation that is named or tuned, else the planned one.
#include "concord/opencl/gemm/gemm.hpp"

#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/registry.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// The one that CONCORD_DEBUG=gemm=NAME names or the device's user prefers, where it can compute the product.
std::unique_ptr<Kernel> prepare_forced(Context& context, const Gemm& gemm, std::string_view label) {
  std::optional<std::string> forced = debug_option("gemm");
  if (!forced) forced = context.variants().preferred(variant::kProduct);
  if (!forced) return nullptr;
  const GemmImplementation* const named = find_gemm_implementation(*forced);
  CONCORD_CHECK(named != nullptr, ArgumentError, "CONCORD_DEBUG: gemm is \"{}\"; there are {}", *forced,
                gemm_implementation_names());
  // Panels compute on any device, which their tests use.
  const bool is_panel = named->name == "panel" && !gemm.has_channels_last();
  if (is_panel ? !context.variants().may(std::string(variant::kProduct) + *forced)
               : !gemm_refusal(*named, context, gemm).empty()) {
    return nullptr;
  }
  context.variants().count(std::string(variant::kProduct) + *forced);
  return named->prepare(context, gemm, label);
}

}  // namespace

std::unique_ptr<Kernel> prepare_gemm(Context& context, const Gemm& gemm, std::string_view label) {
  std::optional<GemmChoice> tuned;
  if (Tuning* const tuning = context.tuning()) tuned = tuning->choice_of(gemm);
  if (std::unique_ptr<Kernel> forced = prepare_forced(context, gemm, label)) return forced;
  if (tuned) {
    if (std::unique_ptr<Kernel> chosen = prepare_choice(context, gemm, *tuned, label)) return chosen;
  }
  return planned_implementation(context, gemm).prepare(context, gemm, label);
}

PartialProduct prepare_partial_gemm(Context& context, Gemm gemm, std::string_view label) {
  gemm.before_bytes = (size(gemm.batch * gemm.m * gemm.n) * sizeof(float) + 255) / 256 * 256;
  gemm.c = {workspace(), gemm.m * gemm.n, gemm.n};
  gemm.partial = true;
  const std::unique_ptr<Kernel> kernel = prepare_gemm(context, gemm, label);
  PartialProduct product{dynamic_cast<const StagedKernel&>(*kernel).stages(), workspace(), 1, kernel->workspace()};
  const auto* multiply = std::get_if<Stage>(&product.stages.front());
  if (multiply != nullptr) product.parts = static_cast<std::int64_t>(multiply->global[2]) / gemm.batch;
  if (product.parts > 1) {
    product.stages.pop_back();  // what adds the parts up
    product.result = workspace(gemm.before_bytes);
  }
  return product;
}

}  // namespace concord::opencl
