// The list of GEMM implementations and how sizes choose among their tiles.
#include "concord/opencl/gemm.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"

namespace concord::opencl {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// A cut of k: `parts` of `length` values each, the last one shorter.
struct Split {
  std::int64_t parts = 1, length = 0;
};
Split split_of(std::int64_t k, std::int64_t parts, std::int64_t unit) {
  const std::int64_t length = std::max(unit, divide_up(divide_up(k, std::max<std::int64_t>(parts, 1)), unit) * unit);
  return {std::max<std::int64_t>(1, divide_up(k, length)), length};
}

// --- panel: CPUs. A tile of 8 x 32 fills the 32 registers of AVX-512; 4 x 2 vectors fit the 16 of AVX and NEON.
struct PanelShape {
  std::int64_t rows, width, vectors;
  [[nodiscard]] std::int64_t columns() const { return width * vectors; }
};

std::unique_ptr<Kernel> prepare_panel(Context& context, const Gemm& gemm, std::string_view label) {
  constexpr std::int64_t kDepth = 256;
  const auto native = context.device().get_info<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  PanelShape shape{native >= 16 ? 8 : 4, native >= 16 ? 16 : 8, 2};
  if (gemm.n <= shape.width) shape.vectors = 1;

  // Enough work-items for the cores to stay busy to the end; cutting rows repeats the packing, cutting k adds a pass.
  const std::int64_t wanted = 4 * std::int64_t{context.limits().compute_units};
  const std::int64_t panels = divide_up(gemm.n, shape.columns()) * gemm.batch;
  const bool small_result = gemm.m * gemm.n * gemm.batch < gemm.k * 16;
  Split split{1, gemm.k};
  if (panels < wanted && small_result) split = split_of(gemm.k, divide_up(wanted, panels), 64);
  const std::int64_t items = panels * split.parts;
  std::int64_t row_parts = items < wanted ? divide_up(wanted, items) : 1;
  const std::int64_t m_part = divide_up(divide_up(gemm.m, row_parts), shape.rows) * shape.rows;
  row_parts = divide_up(gemm.m, m_part);

  Stage multiply{gemm_program(context, gemm, "gemm_panel.cl", split.parts == 1,
                              {fmt::format("WIDTH={}", shape.width), fmt::format("VECTORS={}", shape.vectors),
                               fmt::format("ROWS={}", shape.rows), fmt::format("DEPTH={}", kDepth)}),
                 "gemm_panel_multiply",
                 gemm_arguments(gemm, split.parts, split.length, {static_cast<std::uint32_t>(m_part)}),
                 {size(divide_up(gemm.n, shape.columns())), size(row_parts), size(gemm.batch * split.parts)},
                 {1, 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} panel {}x{}", label, shape.rows, shape.columns()),
                     std::move(multiply), split.parts);
}

// --- tiled: GPUs.
struct TileShape {
  std::int64_t m, n, k, thread_m, thread_n;
  [[nodiscard]] std::int64_t threads() const { return m * n / (thread_m * thread_n); }
  [[nodiscard]] std::int64_t local_bytes() const { return 8 * k * (m + n + 8); }
};
constexpr std::array<TileShape, 4> kTiles{
    {{128, 128, 8, 8, 8}, {128, 64, 16, 8, 8}, {64, 64, 16, 4, 4}, {32, 32, 32, 4, 4}}};

bool fits(const Context& context, const TileShape& tile) {
  return size(tile.threads()) <= context.limits().max_work_group &&
         size(tile.local_bytes()) <= context.limits().local_memory;
}

std::int64_t tiles_of(const Gemm& gemm, const TileShape& tile) {
  return divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n) * gemm.batch;
}

bool tiled_accepts(const Context& context, const Gemm&) {
  return std::any_of(kTiles.begin(), kTiles.end(), [&](const TileShape& tile) { return fits(context, tile); });
}

// The largest tile that still gives every compute unit a group; where even the smallest does not, k is split, each part
// long enough to be worth its second pass.
TileShape tile_of(const Context& context, const Gemm& gemm) {
  const std::int64_t units = context.limits().compute_units;
  TileShape best = kTiles.back();
  for (const TileShape& tile : kTiles) {
    if (!fits(context, tile)) continue;
    best = tile;
    if (tiles_of(gemm, tile) >= units && gemm.m * 2 > tile.m && gemm.n * 2 > tile.n) break;
  }
  return best;
}

std::unique_ptr<Kernel> prepare_tiled(Context& context, const Gemm& gemm, std::string_view label) {
  const TileShape tile = tile_of(context, gemm);
  const std::int64_t units = context.limits().compute_units, tiles = tiles_of(gemm, tile);
  Split split{1, gemm.k};
  // Few tiles leave most of a GPU's work-items idle, however long k is: cut it until each unit has some groups.
  constexpr std::int64_t kShortestPart = 64, kItemsAUnit = 1024;
  const std::int64_t wanted = units * kItemsAUnit / tile.threads();
  if (2 * tiles < wanted && gemm.k >= 2 * kShortestPart) {
    split = split_of(gemm.k, std::min(divide_up(wanted, tiles), gemm.k / kShortestPart), tile.k);
  }
  Stage multiply{gemm_program(context, gemm, "gemm_tiled.cl", split.parts == 1,
                              {fmt::format("TILE_M={}", tile.m), fmt::format("TILE_N={}", tile.n),
                               fmt::format("TILE_K={}", tile.k), fmt::format("THREAD_M={}", tile.thread_m),
                               fmt::format("THREAD_N={}", tile.thread_n), fmt::format("THREADS={}", tile.threads())}),
                 "gemm_tiled_multiply",
                 gemm_arguments(gemm, split.parts, split.length),
                 {size(divide_up(gemm.n, tile.n) * tile.threads()), size(divide_up(gemm.m, tile.m)),
                  size(gemm.batch * split.parts)},
                 {size(tile.threads()), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} tiled {}x{}", label, tile.m, tile.n), std::move(multiply),
                     split.parts);
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

constexpr std::array<GemmImplementation, 7> kImplementations{{
    {"panel", [](Context& context, Precision) { return context.limits().is_cpu; }, any_product, any_product,
     prepare_panel},
    {"tma", tma_suits, tma_accepts, tma_pays, prepare_tma},
    {"wgmma", wgmma_suits, wgmma_accepts, wgmma_pays, prepare_wgmma},
    {"mma", mma_suits, mma_accepts, mma_pays, prepare_mma},
    {"tiled", any_device, tiled_accepts, any_product, prepare_tiled},
    {"clblast", any_device, clblast_accepts, any_product, prepare_clblast},
    {"reference", any_device, any_product, any_product, prepare_reference},
}};

}  // namespace

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

std::unique_ptr<Kernel> prepare_gemm(Context& context, const Gemm& gemm, std::string_view label) {
  if (gemm.has_channels_last()) return prepare_tma(context, gemm, label);
  const std::optional<std::string> forced = environment("CONCORD_GEMM");
  if (forced) {
    const auto named = std::find_if(kImplementations.begin(), kImplementations.end(),
                                    [&](const GemmImplementation& one) { return one.name == *forced; });
    CONCORD_CHECK(named != kImplementations.end(), ArgumentError,
                  "CONCORD_GEMM is \"{}\"; there are panel, tma, wgmma, mma, tiled, clblast and reference", *forced);
    // Panels run on any device, which their tests use; matrix units have to be there.
    const bool can_run = named->name == "panel" || named->suits(context, gemm.precision);
    if (can_run && named->accepts(context, gemm)) return named->prepare(context, gemm, label);
  }
  const auto chosen =
      std::find_if(kImplementations.begin(), kImplementations.end(), [&](const GemmImplementation& one) {
        // What a device suits may take a check on it: asked for last.
        return one.accepts(context, gemm) && one.pays(context, gemm) && one.suits(context, gemm.precision);
      });
  return chosen->prepare(context, gemm, label);
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
