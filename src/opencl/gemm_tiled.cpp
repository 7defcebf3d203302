// Products in tiles that pass through local memory: the tiles, the cut of k, and how a product is told.
#include "concord/opencl/gemm_tiled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/gemm_split.hpp"
#include "concord/opencl/matrix_units.hpp"
#include "concord/opencl/patch_tables.hpp"

namespace concord::opencl {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

struct TileShape {
  std::int64_t m, n, k, thread_m, thread_n;
  [[nodiscard]] std::int64_t threads() const { return m * n / (thread_m * thread_n); }
  [[nodiscard]] std::int64_t local_bytes() const { return 8 * k * (m + n + 8); }
  [[nodiscard]] std::string name() const { return fmt::format("{}x{}", m, n); }
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

// Few tiles leave most of a GPU's work-items idle, however long k is: cut it until each unit has some groups.
std::int64_t tiled_parts(const Context& context, const Gemm& gemm, const TileShape& tile) {
  constexpr std::int64_t kShortestPart = 64, kItemsAUnit = 1024;
  const std::int64_t units = context.limits().compute_units, tiles = tiles_of(gemm, tile);
  const std::int64_t wanted = units * kItemsAUnit / tile.threads();
  if (2 * tiles >= wanted || gemm.k < 2 * kShortestPart) return 1;
  return std::min(divide_up(wanted, tiles), gemm.k / kShortestPart);
}

/// Whether four neighbours of a row of the result are adjacent, aligned, and in range together.
bool result_in_fours(const Gemm& gemm, std::int64_t parts) {
  const GemmResult& c = gemm.c;
  if (gemm.n % 4 != 0) return false;
  return parts > 1 ||
         (!c.is_stepped() && c.buffer.extra_bytes % 16 == 0 && in_fours({c.row, c.batch, c.block, c.outer}));
}

std::unique_ptr<Kernel> prepare_tile(Context& context, const Gemm& gemm, const TileShape& tile, std::int64_t parts,
                                     std::string_view label) {
  const Split split = parts == 1 ? Split{1, gemm.k} : split_of(gemm.k, parts, tile.k);
  std::vector<std::string> definitions{fmt::format("TILE_M={}", tile.m),
                                       fmt::format("TILE_N={}", tile.n),
                                       fmt::format("TILE_K={}", tile.k),
                                       fmt::format("THREAD_M={}", tile.thread_m),
                                       fmt::format("THREAD_N={}", tile.thread_n),
                                       fmt::format("THREADS={}", tile.threads()),
                                       fmt::format("A_VECTOR={}", !gemm.a.is_patch && left_in_fours(gemm) ? 4 : 1),
                                       fmt::format("C_VECTOR={}", result_in_fours(gemm, split.parts) ? 4 : 1)};
  RightOperand right;
  if (!gemm.b.is_patch || has_patch_tables(gemm)) right = right_operand(context, gemm);
  if (!right.arguments.empty()) definitions.emplace_back("B_TABLES");
  definitions.emplace_back(right.fours ? "B_VECTOR=4" : "B_VECTOR=1");
  const std::int64_t tiles = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n);
  Stage multiply{gemm_program(context, gemm, "gemm_tiled.cl", split.parts == 1, std::move(definitions)),
                 "gemm_tiled_multiply",
                 gemm_arguments(gemm, split.parts, split.length, right.arguments),
                 {size(tiles * tile.threads()), 1, size(gemm.batch * split.parts)},
                 {size(tile.threads()), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} tiled {}", label, tile.name()), std::move(multiply), split.parts);
}

}  // namespace

bool tiled_accepts(const Context& context, const Gemm&) {
  return std::any_of(kTiles.begin(), kTiles.end(), [&](const TileShape& tile) { return fits(context, tile); });
}

std::unique_ptr<Kernel> prepare_tiled(Context& context, const Gemm& gemm, std::string_view label) {
  const TileShape tile = tile_of(context, gemm);
  return prepare_tile(context, gemm, tile, tiled_parts(context, gemm, tile), label);
}

std::vector<GemmTiling> tiled_tilings(const Context& context, const Gemm& gemm) {
  std::vector<GemmTiling> list;
  for (const TileShape& tile : kTiles) {
    if (!fits(context, tile)) continue;
    for (const std::int64_t parts : parts_around(tiled_parts(context, gemm, tile)))
      list.push_back({tile.name(), parts});
  }
  return list;
}

std::unique_ptr<Kernel> prepare_tiled_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                             std::string_view label) {
  const auto* const tile = std::ranges::find(kTiles, tiling.tile, &TileShape::name);
  if (tile == kTiles.end() || !fits(context, *tile) || tiling.parts > gemm.k) return nullptr;
  return prepare_tile(context, gemm, *tile, tiling.parts, label);
}

}  // namespace concord::opencl
