// Matrix multiplications in tiles that pass through local memory: the tiles, the cut of k, and the definitions and
// arguments of the kernel.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/gemm/patch_tables.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "concord/opencl/gemm/split.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

/// The GPUs for which a shape is planned (GpuModel::has_shallow_tiles); a tuner tries all shapes.
enum class Planned : std::uint8_t { everywhere, deep, shallow };

struct TileShape {
  GemmTile tile;
  std::int64_t thread_m, thread_n, registers;  // of an item, as compilers need them
  double whole_gain, along_k_gain;             // of the rate, for whole tiles and for two matrices along k
  Planned planned;
  [[nodiscard]] std::int64_t threads() const { return tile.m * tile.n / (thread_m * thread_n); }
  [[nodiscard]] std::int64_t local_bytes() const { return 8 * tile.k * (tile.m + tile.n + 8); }
  [[nodiscard]] std::string name() const {
    const std::string size = fmt::format("{}x{}", tile.m, tile.n);
    return planned == Planned::shallow ? size + " shallow" : size;
  }
};
// Rates were measured on an H200; for other generations they are scaled by the ratio of their units. Shallow tiles,
// which allow more groups with a small local memory, have the rates of the deep ones.
constexpr std::array<TileShape, 6> kTiles{
    {{{128, 128, 8, 2, 0, 1.34e11, 0.55}, 8, 8, 128, 1.2, 1.2, Planned::everywhere},
     {{128, 64, 8, 4, 24, 1.42e11, 0.3}, 8, 8, 128, 1.2, 1.05, Planned::everywhere},
     {{64, 64, 16, 4, 0, 1.1e11, 0.3}, 4, 4, 64, 1.1, 1, Planned::deep},
     {{32, 32, 32, 16, 0, 0.78e11, 0.1}, 4, 4, 96, 1, 1, Planned::deep},
     {{64, 64, 8, 6, 0, 1.1e11, 0.2}, 8, 4, 80, 1.1, 1, Planned::shallow},
     {{32, 32, 8, 14, 0, 0.78e11, 0.1}, 4, 4, 64, 1, 1, Planned::shallow}}};

bool are_matrices(const Gemm& gemm) {
  return !gemm.a.is_patch && !gemm.b.is_patch && gemm.a.block == 0 && gemm.b.block == 0;
}
bool are_along_k(const Gemm& gemm) { return gemm.a.k == 1 && gemm.b.along_k; }

/// Whether k of two plain matrices is a multiple of the tile's depth: a kernel that reads four elements at once then
/// needs no bounds checks (its WHOLE_TILES). False for two matrices along k: there NVIDIA's compiler would need too
/// many registers.
bool has_whole_tiles(const Gemm& gemm, std::int64_t depth) {
  return are_matrices(gemm) && !are_along_k(gemm) && gemm.k % depth == 0;
}

double gain_of(const Gemm& gemm, const TileShape& shape) {
  if (has_whole_tiles(gemm, shape.tile.k)) return shape.whole_gain;
  return are_matrices(gemm) && are_along_k(gemm) ? shape.along_k_gain : 1;
}

bool fits(const Context& context, const TileShape& tile) {
  return size(tile.threads()) <= context.limits().max_work_group &&
         size(tile.local_bytes()) <= context.limits().local_memory;
}

std::vector<TileShape> fitting_tiles(const Context& context) {
  std::vector<TileShape> list;
  std::ranges::copy_if(kTiles, std::back_inserter(list), [&](const TileShape& tile) { return fits(context, tile); });
  return list;
}

/// The tiles that a plan chooses among.
std::vector<TileShape> supported_tiles(const Context& context) {
  const GpuModel& gpu = context.gpu();
  const Planned other = gpu.has_shallow_tiles ? Planned::deep : Planned::shallow;
  std::vector<TileShape> list = fitting_tiles(context);
  std::erase_if(list,
                [&](const TileShape& shape) { return shape.planned == other || shape.registers > gpu.item_registers; });
  return list;
}

/// A tile and the cut of k with the least expected time.
struct TilePlan {
  TileShape shape;
  std::int64_t parts;
  double seconds;
};
TilePlan plan_of(const Context& context, const Gemm& gemm, const std::vector<TileShape>& shapes) {
  const GpuModel& gpu = context.gpu();
  std::vector<GemmTile> tiles;
  for (const TileShape& shape : shapes) {
    tiles.push_back(resident_tile(gpu, shape.tile, shape.local_bytes()));
    tiles.back().products_a_second *= gain_of(gemm, shape) * gpu.products_a_second / kMeasuredProductsASecond;
  }
  const GemmPlan plan = gemm_plan(gpu, gemm, tiles);
  return {shapes[plan.tile], plan.parts, plan.seconds};
}

/// Whether four consecutive elements of a row of the result are adjacent, aligned, and in range together.
bool result_in_fours(const Gemm& gemm, std::int64_t parts) {
  const GemmResult& c = gemm.c;
  if (gemm.n % 4 != 0) return false;
  return parts > 1 ||
         (!c.is_stepped() && c.buffer.extra_bytes % 16 == 0 && in_fours({c.row, c.batch, c.block, c.outer}));
}

std::unique_ptr<Kernel> prepare_tile(Context& context, const Gemm& gemm, const TileShape& shape, std::int64_t parts,
                                     std::string_view label) {
  const GemmTile& tile = shape.tile;
  const Split split = parts == 1 ? Split{1, gemm.k} : split_of(gemm.k, parts, tile.k);
  const bool left_fours = !gemm.a.is_patch && left_in_fours(gemm);
  std::vector<std::string> definitions{fmt::format("TILE_M={}", tile.m),
                                       fmt::format("TILE_N={}", tile.n),
                                       fmt::format("TILE_K={}", tile.k),
                                       fmt::format("THREAD_M={}", shape.thread_m),
                                       fmt::format("THREAD_N={}", shape.thread_n),
                                       fmt::format("THREADS={}", shape.threads()),
                                       fmt::format("A_VECTOR={}", left_fours ? 4 : 1),
                                       fmt::format("C_VECTOR={}", result_in_fours(gemm, split.parts) ? 4 : 1)};
  RightOperand right;
  if (!gemm.b.is_patch || has_patch_tables(gemm)) right = right_operand(context, gemm);
  if (!right.arguments.empty()) definitions.emplace_back("B_TABLES");
  definitions.emplace_back(right.fours ? "B_VECTOR=4" : "B_VECTOR=1");
  if (left_fours && right.fours && has_whole_tiles(gemm, tile.k)) definitions.emplace_back("WHOLE_TILES");
  const std::int64_t tiles = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n);
  Stage multiply{gemm_program(context, gemm, "gemm/tiled.cl", split.parts == 1, std::move(definitions)),
                 "gemm_tiled_multiply",
                 gemm_arguments(gemm, split.parts, split.length, right.arguments),
                 {size(tiles * shape.threads()), 1, size(gemm.batch * split.parts)},
                 {size(shape.threads()), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} tiled {}", label, shape.name()), std::move(multiply), split.parts);
}

std::string_view tiled_refusal(const Context& context, const Gemm&) {
  return supported_tiles(context).empty() ? "no tile fits the device's work-groups and local memory" : kNoRefusal;
}

double tiled_seconds(const Context& context, const Gemm& gemm) {
  return product_seconds_with_epilogue(context.gpu(), gemm, plan_of(context, gemm, supported_tiles(context)).seconds,
                                       1);
}

std::unique_ptr<Kernel> prepare_tiled(Context& context, const Gemm& gemm, std::string_view label) {
  const TilePlan plan = plan_of(context, gemm, supported_tiles(context));
  return prepare_tile(context, gemm, plan.shape, plan.parts, label);
}

std::vector<GemmTiling> tiled_tilings(const Context& context, const Gemm& gemm) {
  std::vector<GemmTiling> list;
  for (const TileShape& shape : fitting_tiles(context)) {
    for (const std::int64_t parts : parts_around(plan_of(context, gemm, {shape}).parts, gemm.k, shape.tile.k)) {
      if (has_room_for_parts(gemm, parts)) list.push_back({shape.name(), parts});
    }
  }
  return list;
}

std::unique_ptr<Kernel> prepare_tiled_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                             std::string_view label) {
  const auto* const shape = std::ranges::find(kTiles, tiling.tile, &TileShape::name);
  if (shape == kTiles.end() || !fits(context, *shape) || tiling.parts > gemm.k) return nullptr;
  if (!has_room_for_parts(gemm, tiling.parts)) return nullptr;
  return prepare_tile(context, gemm, *shape, tiling.parts, label);
}

}  // namespace

extern const GemmImplementation kTiledGemm{.name = "tiled",
                                           .is_alternative_of = [](const Context&) { return true; },
                                           .refusal = tiled_refusal,
                                           .device_refusal = [](Context&, Precision) { return kNoRefusal; },
                                           .seconds = tiled_seconds,
                                           .prepare = prepare_tiled,
                                           .files = {"gemm/tiled.cl"},
                                           .tilings = tiled_tilings,
                                           .prepare_tiling = prepare_tiled_tiling};

}  // namespace concord::opencl
