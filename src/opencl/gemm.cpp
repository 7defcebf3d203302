// The list of GEMM implementations and how sizes choose among their tiles.
#include "concord/opencl/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/opencl/gemm_panel.hpp"
#include "concord/opencl/gemm_tiled.hpp"
#include "concord/opencl/sizes.hpp"
#include "concord/opencl/tuning.hpp"
#include "concord/opencl/variants.hpp"

namespace concord::opencl {
namespace {

// --- reference: everything.
std::unique_ptr<Kernel> prepare_reference(Context& context, const Gemm& gemm, std::string_view label) {
  Stage multiply{gemm_program(context, gemm, "gemm_reference.cl", true, {}),
                 "gemm_reference_multiply",
                 gemm_arguments(gemm, 1, gemm.k),
                 {size(gemm.n), size(gemm.m), size(gemm.batch)},
                 {0, 0, 0}};
  return gemm_staged(context, gemm, fmt::format("{} reference", label), std::move(multiply), 1);
}

bool any_device(Context&, Precision) { return true; }
bool any_product(const Context&, const Gemm&) { return true; }
double always(const Context&, const Gemm&) { return 0; }
double at_last(const Context&, const Gemm&) { return INFINITY; }
std::vector<GemmTiling> no_tilings(const Context&, const Gemm&) { return {}; }
std::unique_ptr<Kernel> no_tiling(Context&, const Gemm&, const GemmTiling&, std::string_view) { return nullptr; }

constexpr std::array<GemmImplementation, 9> kImplementations{{
    {"panel",
     [](Context& context, Precision) { return context.limits().is_cpu; },
     any_product,
     always,
     prepare_panel,
     {"gemm_panel.cl"},
     panel_tilings,
     prepare_panel_tiling},
    {"scaled",
     scaled_suits,
     scaled_accepts,
     scaled_seconds,
     prepare_scaled,
     {"nvidia/gemm_tma.cl", "nvidia/planes_pack.cl", "nvidia/planes_measure.cl"},
     scaled_tilings,
     prepare_scaled_tiling},
    {"tma",
     tma_suits,
     tma_accepts,
     tma_seconds,
     prepare_tma,
     {"nvidia/gemm_tma.cl", "nvidia/planes_pack.cl"},
     tma_tilings,
     prepare_tma_tiling},
    {"wgmma",
     wgmma_suits,
     wgmma_accepts,
     wgmma_seconds,
     prepare_wgmma,
     {"nvidia/gemm_wgmma.cl", "nvidia/gemm_pack.cl"},
     wgmma_tilings,
     prepare_wgmma_tiling},
    {"mma", mma_suits, mma_accepts, mma_seconds, prepare_mma, {"nvidia/gemm_mma.cl"}, mma_tilings, prepare_mma_tiling},
    {"wave", wave_suits, wave_accepts, wave_seconds, prepare_wave, {"gemm_wave.cl"}, wave_tilings, prepare_wave_tiling},
    {"tiled",
     any_device,
     tiled_accepts,
     tiled_seconds,
     prepare_tiled,
     {"gemm_tiled.cl"},
     tiled_tilings,
     prepare_tiled_tiling},
    {"clblast", any_device, clblast_accepts, at_last, prepare_clblast, {}, no_tilings, no_tiling},
    {"reference", any_device, any_product, at_last, prepare_reference, {"gemm_reference.cl"}, no_tilings, no_tiling},
}};

/// Whether nothing speaks against it on this device.
bool may(const Context& context, const GemmImplementation& one) {
  return context.variants().may(std::string(variant::kProduct) + std::string(one.name));
}

/// That CONCORD_GEMM names or the device's user prefers, where it can compute the product.
std::unique_ptr<Kernel> prepare_forced(Context& context, const Gemm& gemm, std::string_view label) {
  std::optional<std::string> forced = environment("CONCORD_GEMM");
  if (!forced) forced = context.variants().preferred(variant::kProduct);
  if (!forced) return nullptr;
  const auto* const named = std::ranges::find(kImplementations, *forced, &GemmImplementation::name);
  CONCORD_CHECK(named != kImplementations.end(), ArgumentError,
                "CONCORD_GEMM is \"{}\"; there are panel, scaled, tma, wgmma, mma, wave, tiled, clblast and reference",
                *forced);
  const bool knows_layout = !gemm.has_channels_last() || named->name == "tma";
  if (!knows_layout || !may(context, *named) || !named->accepts(context, gemm)) return nullptr;
  // Panels run on any device, which their tests use; matrix units have to be there.
  if (named->name != "panel" && !named->suits(context, gemm.precision)) return nullptr;
  context.variants().count(std::string(variant::kProduct) + *forced);
  return named->prepare(context, gemm, label);
}

}  // namespace

std::vector<std::int64_t> parts_around(std::int64_t planned) {
  std::vector<std::int64_t> list{1};
  for (const std::int64_t parts : {planned / 2, planned, 2 * planned}) {
    if (parts > list.back()) list.push_back(parts);
  }
  return list;
}

std::unique_ptr<Kernel> gemm_staged(Context& context, const Gemm& gemm, std::string name, Stage multiply,
                                    std::int64_t parts) {
  std::vector<StagedKernel::AnyStage> stages(gemm.before.begin(), gemm.before.end());
  stages.emplace_back(std::move(multiply));
  if (parts > 1) {
    stages.emplace_back(gemm_combine_stage(context, gemm, parts));
    name += fmt::format(", k in {}", parts);
  }
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), gemm_workspace(gemm, parts));
}

std::span<const GemmImplementation> gemm_implementations() { return kImplementations; }

bool gemm_serves(const GemmImplementation& one, Context& context, const Gemm& gemm) {
  if (gemm.has_channels_last() && one.name != "tma") return false;
  // What a device suits may take a check on it: asked for last.
  return may(context, one) && one.accepts(context, gemm) && one.suits(context, gemm.precision);
}

const GemmImplementation& planned_implementation(Context& context, const Gemm& gemm) {
  if (gemm.has_channels_last()) return *std::ranges::find(kImplementations, "tma", &GemmImplementation::name);
  std::vector<std::pair<double, const GemmImplementation*>> expected;
  for (const GemmImplementation& one : kImplementations) {
    if (may(context, one) && one.accepts(context, gemm)) expected.emplace_back(one.seconds(context, gemm), &one);
  }
  std::ranges::stable_sort(expected, {}, &decltype(expected)::value_type::first);
  return *std::ranges::find_if(expected, [&](const auto& one) {
            return one.second->suits(context, gemm.precision);
          })->second;
}

double planned_seconds(Context& context, const Gemm& gemm) {
  return planned_implementation(context, gemm).seconds(context, gemm);
}

Gemm dense_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool a_along_k, bool b_along_k) {
  Gemm gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.a.row = a_along_k ? k : 1;
  gemm.a.k = a_along_k ? 1 : m;
  gemm.b.k = b_along_k ? 1 : n;
  gemm.b.n = b_along_k ? k : 1;
  gemm.b.along_k = b_along_k;
  gemm.c.row = n;
  gemm.largest = std::max({m * k, k * n, m * n});
  return gemm;
}

std::unique_ptr<Kernel> prepare_gemm(Context& context, const Gemm& gemm, std::string_view label) {
  const std::optional<GemmChoice> tuned = context.tuning().choice_of(gemm);
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
