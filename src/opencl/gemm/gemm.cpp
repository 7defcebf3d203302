// The kernel for a matrix multiplication: the list of the implementations, and the choice among them.
#include "concord/opencl/gemm/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/choice_log.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {

extern const GemmImplementation kPanelGemm, kScaledGemm, kTmaGemm, kWgmmaGemm, kMmaGemm, kWaveGemm, kTiledGemm,
    kSlicedGemm, kLanesGemm, kDirectGemm, kClblastGemm, kReferenceGemm;

namespace {

constexpr std::array<const GemmImplementation*, 12> kGemmImplementations{
    &kPanelGemm, &kScaledGemm, &kTmaGemm,   &kWgmmaGemm,  &kMmaGemm,     &kWaveGemm,
    &kTiledGemm, &kSlicedGemm, &kLanesGemm, &kDirectGemm, &kClblastGemm, &kReferenceGemm};

/// Without the check on the device.
std::string_view cheap_refusal(const GemmImplementation& one, const Context& context, const Gemm& gemm) {
  if (!context.alternatives().is_enabled(std::string(alternative::kProduct) + std::string(one.name)))
    return "it is disabled";
  if (gemm.has_channels_last() && !one.reads_channels_last)
    return "an operand or the result is channels-last, or filters";
  return one.refusal(context, gemm);
}

/// Says so of devices that never have it.
void add_refusal(ChoiceLog& choice, const Context& context, const GemmImplementation& one, std::string_view why) {
  const bool is_for_device = one.is_alternative_of(context) || &one == &kReferenceGemm;
  choice.refused(one.name, is_for_device ? why : "not for this device");
}

const GemmImplementation& planned(Context& context, const Gemm& gemm, ChoiceLog choice) {
  struct Expected {
    double seconds;
    const GemmImplementation* one;
  };
  std::vector<Expected> expected;
  for (const GemmImplementation* one : kGemmImplementations) {
    if (const std::string_view why = cheap_refusal(*one, context, gemm); !why.empty()) {
      add_refusal(choice, context, *one, why);
    } else {
      expected.push_back({one->seconds(context, gemm), one});
    }
  }
  std::ranges::stable_sort(expected, {}, &Expected::seconds);
  // Only tma supports channels-last operands, and devices without tma do not use that layout.
  const GemmImplementation* chosen = nullptr;
  for (const Expected& next : expected) {
    if (chosen != nullptr) {
      choice.slower(next.one->name, next.seconds);
    } else if (const std::string_view why = next.one->device_refusal(context, gemm.precision); why.empty()) {
      chosen = next.one;
    } else {
      add_refusal(choice, context, *next.one, why);
    }
  }
  if (chosen == nullptr) chosen = gemm.has_channels_last() ? &kTmaGemm : &kReferenceGemm;
  if (choice.is_heard()) {
    const std::string product =
        fmt::format("{} x {} x {} matrix multiplication in {}", gemm.m, gemm.n, gemm.k, name_of(gemm.precision));
    choice.write(context.name(), product, chosen->name);
  }
  return *chosen;
}

/// The implementation that CONCORD_DEBUG=gemm=NAME names or the user prefers, if it supports the problem.
std::unique_ptr<Kernel> prepare_forced(Context& context, const Gemm& gemm, std::string_view label) {
  std::optional<std::string> forced = debug_option("gemm");
  if (!forced) forced = context.alternatives().preferred(alternative::kProduct);
  if (!forced) return nullptr;
  const GemmImplementation* const named = find_gemm_implementation(*forced);
  CONCORD_CHECK(named != nullptr, ArgumentError, "CONCORD_DEBUG: gemm is \"{}\"; there are {}", *forced,
                names_of(kGemmImplementations));
  // Panels run on every device; their tests use this.
  const bool is_panel = named->name == "panel" && !gemm.has_channels_last();
  if (is_panel ? !context.alternatives().is_enabled(std::string(alternative::kProduct) + *forced)
               : !gemm_refusal(*named, context, gemm).empty()) {
    return nullptr;
  }
  context.alternatives().count(std::string(alternative::kProduct) + *forced);
  return named->prepare(context, gemm, label);
}

}  // namespace

std::span<const GemmImplementation* const> gemm_implementations() { return kGemmImplementations; }

const GemmImplementation* find_gemm_implementation(std::string_view name) {
  const auto* const found = std::ranges::find(kGemmImplementations, name, &GemmImplementation::name);
  return found == kGemmImplementations.end() ? nullptr : *found;
}

std::string gemm_refusal(const GemmImplementation& one, Context& context, const Gemm& gemm) {
  std::string_view why = cheap_refusal(one, context, gemm);
  if (why.empty()) why = one.device_refusal(context, gemm.precision);
  return std::string(why);
}

const GemmImplementation& planned_implementation(Context& context, const Gemm& gemm) {
  return planned(context, gemm, ChoiceLog());
}

double planned_seconds(Context& context, const Gemm& gemm) {
  return planned(context, gemm, ChoiceLog(false)).seconds(context, gemm);
}

std::unique_ptr<Kernel> prepare_choice(Context& context, const Gemm& gemm, const GemmChoice& choice,
                                       std::string_view label) {
  const GemmImplementation* const one = find_gemm_implementation(choice.implementation);
  if (one == nullptr || !gemm_refusal(*one, context, gemm).empty()) return nullptr;
  return choice.tiling ? one->prepare_tiling(context, gemm, *choice.tiling, label) : one->prepare(context, gemm, label);
}

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
  gemm.before_bytes = aligned(size(gemm.batch * gemm.m * gemm.n) * sizeof(float));
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
