// Matrix multiplications in panels that stay in the caches of a CPU: the shapes of their tiles, the number of panels
// per work-item, and the cuts of rows and of k that keep the cores busy.

#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/gemm/split.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kCutUnit = 64;  // of parts of k

// A tile of 8 x 32 fills half of the 32 registers of AVX-512; 4 x 2 vectors fit the 16 of AVX and NEON.
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

// A cut of rows repeats the packing; a cut of k adds a pass.
std::int64_t panel_parts(const Context& context, const Gemm& gemm, const PanelShape& shape) {
  const std::int64_t wanted = panel_items(context);
  const std::int64_t panels = divide_up(gemm.n, shape.columns()) * gemm.batch;
  const bool small_result = gemm.m * gemm.n * gemm.batch < gemm.k * 16;
  return panels < wanted && small_result ? divide_up(wanted, panels) : 1;
}

/// The panels of columns and the rows of one work-item.
struct PanelCut {
  std::int64_t panels, m_part;
};

/// Bytes of the left operand for one part of k.
std::int64_t left_bytes(const Gemm& gemm, const Split& split) {
  return gemm.m * split.length * static_cast<std::int64_t>(sizeof(float));
}

/// Adjacent panels of a work-item share the reads of A, which matters where A does not fit into a near cache. With
/// patches, packing takes most of the time and one panel is as good.
std::int64_t panels_an_item(const Context& context, const Gemm& gemm, const Split& split, std::int64_t all_panels) {
  constexpr std::int64_t kMost = 8, kNear = 512 << 10;  // panels of 32 KiB, in a second-level cache
  const std::int64_t fewest_items = panel_items(context) / 2;
  std::int64_t panels = 1;
  while (!gemm.b.is_patch && panels < kMost && left_bytes(gemm, split) > panels * kNear &&
         all_panels / (2 * panels) >= fewest_items) {
    panels *= 2;
  }
  return panels;
}

PanelCut panel_cut(const Context& context, const Gemm& gemm, const PanelShape& shape, const Split& split) {
  const std::int64_t columns = divide_up(gemm.n, shape.columns()), copies = gemm.batch * split.parts;
  const std::int64_t panels = panels_an_item(context, gemm, split, columns * copies), wanted = panel_items(context);
  const std::int64_t items = divide_up(columns, panels) * copies;
  std::int64_t row_parts = items < wanted ? divide_up(wanted, items) : 1;
  // The rows of A of a part stay in a second-level cache while each panel reads them. With too few rows, packing B
  // costs more.
  constexpr std::int64_t kBytes = 1 << 20, kFewestRows = 128;
  row_parts = std::max(row_parts, std::min(divide_up(left_bytes(gemm, split) / panels, kBytes), gemm.m / kFewestRows));
  return {panels, round_up(divide_up(gemm.m, row_parts), shape.rows)};
}

std::unique_ptr<Kernel> prepare_panel_shape(Context& context, const Gemm& gemm, const PanelShape& shape,
                                            std::int64_t parts, std::string_view label) {
  constexpr std::int64_t kPanelDepth = 256;
  const Split split = parts == 1 ? Split{1, gemm.k} : split_of(gemm.k, parts, kCutUnit);
  const PanelCut cut = panel_cut(context, gemm, shape, split);
  Stage multiply{gemm_program(context, gemm, "gemm/panel.cl", split.parts == 1,
                              {fmt::format("WIDTH={}", shape.width), fmt::format("VECTORS={}", shape.vectors),
                               fmt::format("ROWS={}", shape.rows), fmt::format("DEPTH={}", kPanelDepth),
                               fmt::format("PANELS={}", cut.panels)}),
                 "gemm_panel_multiply",
                 gemm_arguments(gemm, split.parts, split.length, {static_cast<std::uint32_t>(cut.m_part)}),
                 {size(divide_up(gemm.n, shape.columns() * cut.panels)), size(divide_up(gemm.m, cut.m_part)),
                  size(gemm.batch * split.parts)},
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
    for (const std::int64_t parts : parts_around(panel_parts(context, gemm, shape), gemm.k, kCutUnit)) {
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
  const bool is_near_plan = tiling.parts <= 2 * panel_parts(context, gemm, *shape);
  if (!is_near_plan && !has_room_for_parts(gemm, tiling.parts)) return nullptr;
  return prepare_panel_shape(context, gemm, *shape, tiling.parts, label);
}

}  // namespace

extern const GemmImplementation kPanelGemm{
    .name = "panel",
    .is_alternative_of = [](const Context& context) { return context.limits().is_cpu; },
    .refusal = [](const Context&, const Gemm&) { return kNoRefusal; },
    .device_refusal = [](Context& context,
                         Precision) { return context.limits().is_cpu ? kNoRefusal : "it is for CPUs"; },
    .seconds = [](const Context&, const Gemm&) { return 0.0; },
    .prepare = prepare_panel,
    .files = {"gemm/panel.cl"},
    .tilings = panel_tilings,
    .prepare_tiling = prepare_panel_tiling};

}  // namespace concord::opencl
