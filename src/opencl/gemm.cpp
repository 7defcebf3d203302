// The list of GEMM implementations and how sizes choose among their tiles.
#include "concord/opencl/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/opencl/gemm_split.hpp"
#include "concord/opencl/gemm_tiled.hpp"
#include "concord/opencl/sizes.hpp"
#include "concord/opencl/tuning.hpp"
#include "concord/opencl/variants.hpp"

namespace concord::opencl {
namespace {

// --- panel: CPUs. A tile of 8 x 32 fills the 32 registers of AVX-512; 4 x 2 vectors fit the 16 of AVX and NEON.
struct PanelShape {
  std::int64_t rows, width, vectors;
  [[nodiscard]] std::int64_t columns() const { return width * vectors; }
  [[nodiscard]] std::string name() const { return fmt::format("{}x{}", rows, columns()); }
};

/// The usual one first.
std::vector<PanelShape> panel_shapes(const Context& context) {
  const auto native = context.device().get_info<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  const std::int64_t rows = native >= 16 ? 8 : 4, width = native >= 16 ? 16 : 8;
  return {{rows, width, 2}, {rows, width, 1}, {rows / 2, width, 2}, {rows / 2, width, 1}};
}

PanelShape panel_shape(const Context& context, const Gemm& gemm) {
  const std::vector<PanelShape> shapes = panel_shapes(context);
  return gemm.n <= shapes[0].width ? shapes[1] : shapes[0];
}

/// Enough work-items for the cores to stay busy to the end.
std::int64_t panel_items(const Context& context) { return 4 * std::int64_t{context.limits().compute_units}; }

// Cutting rows repeats the packing, cutting k adds a pass.
std::int64_t panel_parts(const Context& context, const Gemm& gemm, const PanelShape& shape) {
  const std::int64_t wanted = panel_items(context);
  const std::int64_t panels = divide_up(gemm.n, shape.columns()) * gemm.batch;
  const bool small_result = gemm.m * gemm.n * gemm.batch < gemm.k * 16;
  return panels < wanted && small_result ? divide_up(wanted, panels) : 1;
}

std::unique_ptr<Kernel> prepare_panel_shape(Context& context, const Gemm& gemm, const PanelShape& shape,
                                            std::int64_t parts, std::string_view label) {
  constexpr std::int64_t kDepth = 256, kUnit = 64;
  const Split split = parts == 1 ? Split{1, gemm.k} : split_of(gemm.k, parts, kUnit);
  const std::int64_t wanted = panel_items(context);
  const std::int64_t items = divide_up(gemm.n, shape.columns()) * gemm.batch * split.parts;
  std::int64_t row_parts = items < wanted ? divide_up(wanted, items) : 1;
  // Rows of A that stay in a second-level cache while panel after panel reads them; too few, and packing B costs more.
  constexpr std::int64_t kBytes = 1 << 20, kFewestRows = 128;
  const std::int64_t bytes = gemm.m * split.length * static_cast<std::int64_t>(sizeof(float));
  row_parts = std::max(row_parts, std::min(divide_up(bytes, kBytes), gemm.m / kFewestRows));
  const std::int64_t m_part = divide_up(divide_up(gemm.m, row_parts), shape.rows) * shape.rows;
  row_parts = divide_up(gemm.m, m_part);

  Stage multiply{gemm_program(context, gemm, "gemm_panel.cl", split.parts == 1,
                              {fmt::format("WIDTH={}", shape.width), fmt::format("VECTORS={}", shape.vectors),
                               fmt::format("ROWS={}", shape.rows), fmt::format("DEPTH={}", kDepth)}),
                 "gemm_panel_multiply",
                 gemm_arguments(gemm, split.parts, split.length, {static_cast<std::uint32_t>(m_part)}),
                 {size(divide_up(gemm.n, shape.columns())), size(row_parts), size(gemm.batch * split.parts)},
                 {1, 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} panel {}", label, shape.name()), std::move(multiply), split.parts);
}

std::unique_ptr<Kernel> prepare_panel(Context& context, const Gemm& gemm, std::string_view label) {
  const PanelShape shape = panel_shape(context, gemm);
  return prepare_panel_shape(context, gemm, shape, panel_parts(context, gemm, shape), label);
}

std::vector<GemmTiling> panel_tilings(const Context& context, const Gemm& gemm) {
  std::vector<GemmTiling> list;
  for (const PanelShape& shape : panel_shapes(context)) {
    for (const std::int64_t parts : parts_around(panel_parts(context, gemm, shape))) {
      list.push_back({shape.name(), parts});
    }
  }
  return list;
}

std::unique_ptr<Kernel> prepare_panel_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                             std::string_view label) {
  const std::vector<PanelShape> shapes = panel_shapes(context);
  const auto shape = std::ranges::find(shapes, tiling.tile, &PanelShape::name);
  if (shape == shapes.end() || tiling.parts > gemm.k) return nullptr;
  return prepare_panel_shape(context, gemm, *shape, tiling.parts, label);
}

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
